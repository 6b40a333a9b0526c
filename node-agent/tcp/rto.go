package tcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

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
		return nil, fmt.Errorf("load timer: %w", loadError(err))
	}
	defer coll.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: ebpf.AttachCGroupSockOps, Program: coll.Programs["hold"]})
	if err != nil {
		return nil, fmt.Errorf("attach timer to cgroup %q: %w", cgroup, err)
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

// cgroupRoot is where the machine's control groups of version 2 are mounted.
func cgroupRoot() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("list mounts: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// proc_pid_mountinfo(5): optional fields end with "-"; then comes the type.
		head, tail, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(head)
		if ok && strings.HasPrefix(tail, "cgroup2 ") && len(fields) > 4 && fields[3] == "/" {
			return fields[4], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("list mounts: %w", err)
	}
	return "", &UnsupportedError{Feature: "a timer that does not back off", Needs: "control groups version 2, mounted as /sys/fs/cgroup",
		Err: errors.New("no cgroup2 file system is mounted")}
}
