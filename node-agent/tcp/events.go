package tcp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// Ports names a connection by its ports on this node and on its peer.
type Ports struct {
	Local  uint16 `json:"local"`
	Remote uint16 `json:"remote"`
}

// MostTraced bounds the connections that one trace follows: 64 flows of 128
// streams.
const MostTraced = 8192

// EventTrace is the kernel telling what connections do about losses, until it
// is closed or the process ends.
type EventTrace struct {
	links []io.Closer
	ring  *ebpf.Map
}

// TraceEvents attaches to the kernel's tracepoints for the connections of a
// network namespace that have these ports. It needs root; an UnsupportedError
// says what this kernel lacks.
func TraceEvents(cookie uint64, connections []Ports) (*EventTrace, error) {
	if cookie == 0 {
		return nil, &UnsupportedError{Feature: tracepoints, Needs: "Linux " + cookieSince.String()}
	}
	if len(connections) > MostTraced {
		return nil, fmt.Errorf("trace %d connections: at most %d", len(connections), MostTraced)
	}
	spec, err := specOf(tcpcc.Events)
	if err != nil {
		return nil, err
	}
	p, err := providerHere()
	if err != nil {
		return nil, err
	}
	return p.events(spec, cookie, connections)
}

// tracepoints is what events are called that a kernel does not tell.
const tracepoints = "tracepoints of TCP"

// choose puts the connections into their map.
func choose(sockets *ebpf.Map, connections []Ports) error {
	for _, c := range connections {
		if err := sockets.Put(c, uint8(1)); err != nil {
			return fmt.Errorf("choose connections: %w", err)
		}
	}
	return nil
}

func (loaded) events(spec *ebpf.CollectionSpec, cookie uint64, connections []Ports) (trace *EventTrace, err error) {
	failures, err := tellsFailure()
	if err != nil {
		return nil, &UnsupportedError{Feature: tracepoints,
			Needs: "a kernel with BTF (CONFIG_DEBUG_INFO_BTF), Linux 5.19", Err: err}
	}
	if err := errors.Join(spec.Variables["namespace_cookie"].Set(cookie),
		spec.Variables["tells_failure"].Set(failures)); err != nil {
		return nil, fmt.Errorf("prepare trace: %w", err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, &UnsupportedError{Feature: tracepoints, Needs: "a kernel that takes BPF programs on tracepoints, " +
			"Linux 5.19", Err: loadError(err)}
	}
	defer coll.Close() // the links and the ring's own copy keep what they need
	if err := choose(coll.Maps["sockets"], connections); err != nil {
		return nil, err
	}
	trace = &EventTrace{ring: coll.Maps["events"]}
	delete(coll.Maps, "events")
	for _, program := range []string{"retransmitted", "state_set"} {
		l, err := link.AttachTracing(link.TracingOptions{Program: coll.Programs[program]})
		if err != nil {
			return nil, errors.Join(&UnsupportedError{Feature: tracepoints,
				Needs: "a kernel that attaches BPF programs to tracepoints", Err: err}, trace.Close())
		}
		trace.links = append(trace.links, l)
	}
	return trace, nil
}

// tellsFailure checks whether the tracepoint of retransmissions has the
// argument that reports failed ones; both tracepoints must be there. To read the
// kernel's description of itself takes 20 ms, and it stays the same.
var tellsFailure = sync.OnceValues(func() (uint32, error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return 0, err
	}
	var arguments int
	// The second is the one that counts; the first came later, with Linux 5.19.
	for _, name := range []string{"tcp_cong_state_set", "tcp_retransmit_skb"} {
		var made *btf.Typedef
		if err := kernel.TypeByName("btf_trace_"+name, &made); err != nil {
			return 0, fmt.Errorf("find tracepoint %s: %w", name, err)
		}
		pointer, is := made.Type.(*btf.Pointer)
		if !is {
			return 0, fmt.Errorf("tracepoint %s is described as %v", name, made.Type)
		}
		function, is := pointer.Target.(*btf.FuncProto)
		if !is {
			return 0, fmt.Errorf("tracepoint %s is described as %v", name, pointer.Target)
		}
		arguments = len(function.Params) - 1 // the first is the tracepoint's own
	}
	if arguments > 2 {
		return 1, nil
	}
	return 0, nil
})

// Ring gives the events' ring buffer: a file of its own, which an unprivileged
// process may read by NewEventReader. It stays readable when the trace is closed.
func (t *EventTrace) Ring() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(t.ring.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("copy ring buffer: %w", err)
	}
	return os.NewFile(uintptr(fd), "events of TCP"), nil
}

// Close detaches from the kernel.
func (t *EventTrace) Close() error {
	var err error
	for _, l := range t.links {
		err = errors.Join(err, l.Close())
	}
	if err = errors.Join(err, t.ring.Close()); err != nil {
		return fmt.Errorf("detach from tracepoints: %w", err)
	}
	return nil
}
