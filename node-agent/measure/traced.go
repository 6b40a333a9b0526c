package measure

import (
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Events are the kernel's own events of TCP (tcp.EventReader).
type Events interface {
	Read(tell func(tcp.Event)) error
	Lost() uint32
	Close() error
}

// eventNames are the events' names in records.
var eventNames = map[tcp.EventKind]string{
	tcp.Retransmission: eventRetransmission, tcp.FailedRetransmission: eventFailedRetransmission,
	tcp.Timeout: eventRTO, tcp.Recovery: eventRecovery, tcp.RecoveryEnd: eventRecoveryEnd,
}

// Trace takes events from the kernel in place of those that lie between
// samples. The source closes them.
func (t *TCP) Trace(e Events) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.traced = e
}

// told adds what the kernel told since it was last asked, each with its own
// time. When it cannot be asked any more, events are told from samples again.
func (t *TCP) told(out []wire.Body, err error) ([]wire.Body, error) {
	readErr := t.traced.Read(func(e tcp.Event) {
		flow, stream, whose := t.match(e.Local, e.Remote)
		if name := eventNames[e.Kind]; whose == ofFlow && stream >= 0 && name != "" {
			out = append(out, At{tracedEvent(e, flow, stream, name), e.BootNs})
		}
	})
	if lost := t.traced.Lost(); lost > t.lost {
		out = append(out, &wire.Event{Level: "warning", Text: fmt.Sprintf("%d events of TCP found no room on their "+
			"way from the kernel; its counters have them", lost-t.lost)})
		t.lost = lost
	}
	if readErr == nil {
		return out, err
	}
	return out, errors.Join(err, fmt.Errorf("%w; events are told from samples", readErr), t.untrace())
}

func tracedEvent(e tcp.Event, flow string, stream int, name string) *wire.TCPEvent {
	out := &wire.TCPEvent{Flow: flow, Stream: &stream, Cookie: e.Cookie, Local: e.Local.String(),
		Remote: e.Remote.String(),
		Event:  name, Source: "tracepoint", Count: e.Count}
	// The stack enters recovery before it reduces the window (tcp_enter_recovery of tcp_input.c).
	if e.Kind == tcp.Recovery {
		out.CwndBefore = &e.CwndSegments
	} else {
		out.CwndSegments = &e.CwndSegments
	}
	if e.SsthreshSegments != infiniteSsthresh {
		out.SsthreshSegments = &e.SsthreshSegments
	}
	return out
}

// untrace gives the kernel's events back.
func (t *TCP) untrace() error {
	if t.traced == nil {
		return nil
	}
	err := t.traced.Close()
	t.traced = nil
	return err
}
