package host

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offloads turns off, on an interface, all by which its driver or the kernel
// merges received segments into one packet or splits a sent one late: what a
// capture sees are then the packets of the wire.
type Offloads struct {
	Interface string `json:"interface"`
}

func (o Offloads) target() string                       { return o.String() }
func (o Offloads) check(p policy) (reason, cure string) { return p.checkInterface(o.Interface) }
func (o Offloads) String() string                       { return "offloads of " + o.Interface + " off" }

// mergesSegments tells the features that do, by the kernel's names of them
// (net/ethtool/common.c).
func mergesSegments(feature string) bool {
	return strings.HasPrefix(feature, "rx-gro") || strings.HasPrefix(feature, "rx-lro") ||
		strings.HasPrefix(feature, "rx-udp-gro") ||
		strings.HasSuffix(feature, "-segmentation")
}

// features are an interface's, 32 to a word.
type features struct {
	names  []string
	blocks []featureBlock
}

// featureBlock is struct ethtool_get_features_block (linux/ethtool.h).
type featureBlock struct{ available, requested, active, neverChanged uint32 }

func (o Offloads) prepare(*kernel, uint64) (*offloadsUndo, error) {
	link, err := findLink(o.Interface)
	if err != nil {
		return nil, err
	}
	f, err := readFeatures(o.Interface)
	if err != nil {
		return nil, &Refused{Reason: err.Error(), Cure: "plan with capture: {offloads: recorded}"}
	}
	u := formerFeatures{Interface: o.Interface, Index: link.Attrs().Index,
		Changed: make([]uint32, len(f.blocks)), Former: make([]uint32, len(f.blocks))}
	var fixed []string
	for i, name := range f.names {
		word, bit := i/32, uint32(1)<<(i%32)
		if !mergesSegments(name) || word >= len(f.blocks) {
			continue
		}
		b := f.blocks[word]
		switch {
		case b.available&^b.neverChanged&bit != 0:
			u.Changed[word] |= bit
			u.Former[word] |= b.requested & bit
		case b.active&bit != 0:
			fixed = append(fixed, name)
		}
	}
	if len(fixed) > 0 {
		reason := fmt.Sprintf("the driver of %s does not let %s be turned off", o.Interface, strings.Join(fixed, ", "))
		return nil, &Refused{Reason: reason, Cure: "plan with capture: {offloads: recorded}"}
	}
	return &offloadsUndo{Offloads: u}, nil
}

// apply turns them off, and checks whether they are.
func (o Offloads) apply(_ *kernel, u *offloadsUndo) error {
	changed := u.Offloads.Changed
	if err := setFeatures(o.Interface, changed, make([]uint32, len(changed))); err != nil {
		return err
	}
	f, err := readFeatures(o.Interface)
	if err != nil {
		return err
	}
	var on []string
	for i, name := range f.names {
		if i/32 < len(f.blocks) && mergesSegments(name) && f.blocks[i/32].active&(1<<(i%32)) != 0 {
			on = append(on, name)
		}
	}
	if len(on) > 0 {
		return fmt.Errorf("turn offloads of %q off: %s stay on", o.Interface, strings.Join(on, ", "))
	}
	return nil
}

const (
	featureStrings = 4   // ETH_SS_FEATURES
	stringBytes    = 32  // ETH_GSTRING_LEN
	featuresMost   = 256 // that there is room for; Linux 6.18 has 66
)

// readFeatures asks for the features' names and states.
func readFeatures(device string) (features, error) {
	var out features
	names := struct {
		command, set, length uint32
		data                 [featuresMost * stringBytes]byte
	}{command: unix.ETHTOOL_GSTRINGS, set: featureStrings}
	states := struct {
		command, size uint32
		blocks        [featuresMost / 32]featureBlock
	}{command: unix.ETHTOOL_GFEATURES, size: featuresMost / 32}
	count := struct {
		command, reserved uint32
		mask              uint64
		data              uint32
		_                 uint32
	}{command: unix.ETHTOOL_GSSET_INFO, mask: 1 << featureStrings}
	if err := ethtool(device, unsafe.Pointer(&count)); err != nil {
		return out, fmt.Errorf("count features of %q: %w", device, err)
	}
	if count.data == 0 || count.data > featuresMost {
		return out, fmt.Errorf("count features of %q: %d are not between 1 and %d", device, count.data, featuresMost)
	}
	if err := errors.Join(ethtool(device, unsafe.Pointer(&names)), ethtool(device, unsafe.Pointer(&states))); err !=
		nil {
		return out, fmt.Errorf("read features of %q: %w", device, err)
	}
	for i := range min(count.data, names.length) {
		name, _, _ := bytes.Cut(names.data[i*stringBytes:(i+1)*stringBytes], []byte{0})
		out.names = append(out.names, string(name))
	}
	out.blocks = append(out.blocks, states.blocks[:min(states.size, featuresMost/32)]...)
	return out, nil
}

// setFeatures has the features in changed on as they are in on, and no others.
func setFeatures(device string, changed, on []uint32) error {
	type wanted struct{ valid, requested uint32 }
	call := struct {
		command, size uint32
		blocks        [featuresMost / 32]wanted
	}{command: unix.ETHTOOL_SFEATURES, size: uint32(len(changed))}
	if len(changed) > len(call.blocks) || len(on) != len(changed) {
		return fmt.Errorf("set features of %q: %d and %d words of them", device, len(changed), len(on))
	}
	for i := range changed {
		call.blocks[i] = wanted{changed[i], on[i] & changed[i]}
	}
	if err := ethtool(device, unsafe.Pointer(&call)); err != nil {
		return fmt.Errorf("set features of %q: %w", device, err)
	}
	return nil
}

// ethtool makes one of ethtool's calls: an ioctl on any socket, whose answer
// lies where the question lay.
func ethtool(device string, call unsafe.Pointer) (err error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(s)) }()
	var ifr struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // a struct ifreq is larger than what is used of it
	}
	if len(device) >= unix.IFNAMSIZ {
		return errors.New("interface name is too long")
	}
	copy(ifr.name[:], device)
	ifr.data = call
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr)))
	runtime.KeepAlive(call)
	if errno != 0 {
		return errno
	}
	return nil
}

// offloadsUndo turns back on what was on.
type offloadsUndo struct {
	placed
	Offloads formerFeatures `json:"offloads"`
}

// formerFeatures are bits, numbered by the running kernel; an undo is of the
// same boot.
type formerFeatures struct {
	Interface string   `json:"interface"`
	Index     int      `json:"index"`
	Changed   []uint32 `json:"changed"`
	Former    []uint32 `json:"former"`
}

func (*offloadsUndo) void(*kernel) bool { return false }

func (u *offloadsUndo) revert(*kernel) (string, error) {
	link, err := sameLink(u.Offloads.Interface, u.Offloads.Index)
	if err != nil || link == nil {
		return gone(u.Offloads.Interface), err
	}
	return "", setFeatures(u.Offloads.Interface, u.Offloads.Changed, u.Offloads.Former)
}
