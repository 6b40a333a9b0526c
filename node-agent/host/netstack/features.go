package netstack

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Features are an interface's, 32 to a word.
type Features struct {
	Names  []string
	Blocks []FeatureBlock
}

// FeatureBlock is struct ethtool_get_features_block (linux/ethtool.h).
type FeatureBlock struct{ Available, Requested, Active, NeverChanged uint32 }

const (
	featureStrings = 4   // ETH_SS_FEATURES
	stringBytes    = 32  // ETH_GSTRING_LEN
	featuresMost   = 256 // that there is room for; Linux 6.18 has 66
)

// ReadFeatures asks for the features' names and states.
func ReadFeatures(device string) (Features, error) {
	var out Features
	names := struct {
		command, set, length uint32
		data                 [featuresMost * stringBytes]byte
	}{command: unix.ETHTOOL_GSTRINGS, set: featureStrings}
	states := struct {
		command, size uint32
		blocks        [featuresMost / 32]FeatureBlock
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
		out.Names = append(out.Names, string(name))
	}
	out.Blocks = append(out.Blocks, states.blocks[:min(states.size, featuresMost/32)]...)
	return out, nil
}

// SetFeatures has the features in changed on as they are in on, and no others.
func SetFeatures(device string, changed, on []uint32) error {
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
