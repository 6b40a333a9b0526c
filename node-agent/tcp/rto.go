package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// Timer says which connections' retransmission timers are held, and how.
type Timer struct {
	Cookie uint64       // of their network namespace
	Peers  netip.Prefix // IPv4; connections with peers in it
	// Reference gives the reference TCP's timer, which asks why a segment was
	// lost; nil gives the fixed RTO.
	Reference *Congestion
}

// HoldRTO makes the retransmission timers of connections that begin from now on
// constant. It is in force until the result is closed, or the process ends.
func HoldRTO(t Timer) (*HeldRTO, error) {
	cgroup, err := cgroupRoot()
	if err != nil {
		return nil, err
	}
	defer cgroup.Close() // the link holds the group itself
	spec, err := specOf(tcpcc.RTO)
	if err != nil {
		return nil, err
	}
	if err := t.fill(spec); err != nil {
		return nil, fmt.Errorf("prepare timer: %w", err)
	}
	var opts ebpf.CollectionOptions
	if t.Reference != nil {
		opts.MapReplacements = map[string]*ebpf.Map{lossesVariable: t.Reference.losses}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, opts)
	if err != nil {
		return nil, fmt.Errorf("load timer: %w", refused("fixed_rto", needsSockops, err))
	}
	defer coll.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: fmt.Sprintf("/proc/self/fd/%d", cgroup.Fd()), Attach: ebpf.AttachCGroupSockOps, Program: coll.Programs["hold"]})
	if err != nil {
		return nil, fmt.Errorf("attach timer: %w", err)
	}
	return &HeldRTO{l}, nil
}

// HeldRTO is what HoldRTO attached.
type HeldRTO struct{ link link.Link }

// Close lets the timers of later connections back off again; those that are
// there keep their bound until they have measured a round trip.
func (h *HeldRTO) Close() error {
	if err := h.link.Close(); err != nil {
		return fmt.Errorf("detach timer: %w", err)
	}
	return nil
}

func (t Timer) fill(spec *ebpf.CollectionSpec) error {
	if !t.Peers.IsValid() || !t.Peers.Addr().Is4() {
		return fmt.Errorf("peers %s are no IPv4 network", t.Peers)
	}
	var tick unix.Timespec
	// The coarse clocks advance by one jiffy, whose length nothing else tells.
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return fmt.Errorf("read length of a jiffy: %w", err)
	}
	reference := uint32(0)
	if t.Reference != nil {
		if t.Reference.losses == nil {
			return fmt.Errorf("%q is not the reference TCP", t.Reference.Name)
		}
		reference = 1
	}
	network := t.Peers.Masked().Addr().As4()
	mask := ^uint32(0) << (32 - t.Peers.Bits())
	if t.Peers.Bits() == 0 {
		mask = 0
	}
	var netmask [4]byte
	binary.BigEndian.PutUint32(netmask[:], mask)
	for name, value := range map[string]any{
		"namespace_cookie": t.Cookie,
		"network":          binary.NativeEndian.Uint32(network[:]),
		"netmask":          binary.NativeEndian.Uint32(netmask[:]),
		"tick_ns":          uint32(tick.Nano()),
		"reference":        reference,
	} {
		v := spec.Variables[name]
		if v == nil {
			return fmt.Errorf("the object has no variable %q", name)
		}
		if err := v.Set(value); err != nil {
			return fmt.Errorf("set %q: %w", name, err)
		}
	}
	return nil
}

// cgroupRoot opens the root of the machine's control groups of version 2: in a
// mount of its own that is attached nowhere and ends with the file, because
// where they are mounted may not be seen from here ("ip netns exec" hides it).
func cgroupRoot() (*os.File, error) {
	fsfd, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, noCgroups(err)
	}
	fd := -1
	if err = unix.FsconfigCreate(fsfd); err == nil {
		fd, err = unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, 0)
	}
	if err = errors.Join(err, unix.Close(fsfd)); err != nil {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
		return nil, noCgroups(err)
	}
	return os.NewFile(uintptr(fd), "cgroup2"), nil
}

func noCgroups(err error) error {
	return unsupported("fixed_rto", "a kernel with control groups version 2 (CONFIG_CGROUPS, CONFIG_CGROUP_BPF)", fmt.Errorf("mount cgroup2: %w", err))
}
