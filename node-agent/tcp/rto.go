package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// Timer says which connections' retransmission timers are held, and how.
type Timer struct {
	Of
	// Reference gives the reference TCP's timer, which asks why a segment was
	// lost; nil gives the fixed RTO.
	Reference *Congestion
}

// Of are the connections of one network namespace with peers in a network.
type Of struct {
	Cookie uint64       // of their network namespace
	Peers  netip.Prefix // IPv4
}

// HoldRTO makes the retransmission timers of connections that begin from now on
// constant. It is in force until the result is closed, or the process ends.
func HoldRTO(t Timer) (*HeldRTO, error) {
	variables, err := t.variables()
	if err != nil {
		return nil, fmt.Errorf("prepare timer: %w", err)
	}
	var opts ebpf.CollectionOptions
	if t.Reference != nil {
		opts.MapReplacements = map[string]*ebpf.Map{lossesVariable: t.Reference.losses}
	}
	l, err := t.attach("fixed_rto", tcpcc.RTO, "hold", variables, opts)
	if err != nil {
		return nil, err
	}
	return &HeldRTO{l}, nil
}

// attach loads the sockops program entry of an object for the connections, with
// its variables filled in, and attaches it to all the machine's control groups.
func (o Of) attach(feature, object, entry string, variables map[string]any, opts ebpf.CollectionOptions) (link.Link,
	error) {
	cgroup, err := cgroupRoot(feature)
	if err != nil {
		return nil, err
	}
	defer cgroup.Close() // the link holds the group itself
	spec, err := specOf(object)
	if err != nil {
		return nil, err
	}
	if err := o.fill(spec, variables); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", feature, err)
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, opts)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", feature, refused(feature, needsSockops, err))
	}
	defer coll.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: fmt.Sprintf("/proc/self/fd/%d", cgroup.Fd()),
		Attach: ebpf.AttachCGroupSockOps, Program: coll.Programs[entry]})
	if errors.Is(err, unix.E2BIG) { // BPF_CGROUP_MAX_PROGS of include/linux/bpf-cgroup.h
		err = fmt.Errorf("the kernel runs no more than 64 such programs at a time, which nodes on one machine share: "+
			"have TCP flows end at fewer of them (%w)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", feature, err)
	}
	return l, nil
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

func (t Timer) variables() (map[string]any, error) {
	var tick unix.Timespec
	// The coarse clocks advance by one jiffy, whose length nothing else tells.
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return nil, fmt.Errorf("read length of a jiffy: %w", err)
	}
	reference := uint32(0)
	if t.Reference != nil {
		if t.Reference.losses == nil {
			return nil, fmt.Errorf("%q is not the reference TCP", t.Reference.Name)
		}
		reference = 1
	}
	return map[string]any{"tick_ns": uint32(tick.Nano()), "reference": reference}, nil
}

// fill says in an object which connections are meant, and gives it its own variables.
func (o Of) fill(spec *ebpf.CollectionSpec, variables map[string]any) error {
	if !o.Peers.IsValid() || !o.Peers.Addr().Is4() {
		return fmt.Errorf("peers %s are not an IPv4 network", o.Peers)
	}
	network := o.Peers.Masked().Addr().As4()
	mask := ^uint32(0) << (32 - o.Peers.Bits())
	if o.Peers.Bits() == 0 {
		mask = 0
	}
	var netmask [4]byte
	binary.BigEndian.PutUint32(netmask[:], mask)
	all := map[string]any{
		"namespace_cookie": o.Cookie,
		"network":          binary.NativeEndian.Uint32(network[:]),
		"netmask":          binary.NativeEndian.Uint32(netmask[:]),
	}
	maps.Copy(all, variables)
	for name, value := range all {
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
func cgroupRoot(feature string) (*os.File, error) {
	fsfd, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, noCgroups(feature, err)
	}
	fd := -1
	if err = unix.FsconfigCreate(fsfd); err == nil {
		fd, err = unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, 0)
	}
	if err = errors.Join(err, unix.Close(fsfd)); err != nil {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
		return nil, noCgroups(feature, err)
	}
	return os.NewFile(uintptr(fd), "cgroup2"), nil
}

func noCgroups(feature string, err error) error {
	return unsupported(feature, "a kernel with control groups version 2 (CONFIG_CGROUPS, CONFIG_CGROUP_BPF)",
		fmt.Errorf("mount cgroup2: %w", err))
}
