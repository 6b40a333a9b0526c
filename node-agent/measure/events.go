package measure

import (
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What happened between two samples of a socket is told from their difference, where the kernel's tracepoints do not
// tell it (traced.go). It works on every kernel and costs nothing, and it is as exact as the counters: retransmissions
// and, from Linux 6.7 on, time-outs are counted by the kernel; an episode of recovery that began and ended between two
// samples is told by the slow-start threshold that it left behind.

// Names of events.
const (
	eventRetransmission = "retransmission"
	eventRTO            = "rto"
	eventRecovery       = "recovery"
	eventRecoveryEnd    = "recovery_end"

	eventFailedRetransmission = "failed_retransmission" // by tracepoints only
)

// seen is what the last sample of a socket showed.
type seen struct {
	tBootNs           int64
	retransmits, rtos uint32
	inARow            uint32
	cwnd, ssthresh    uint32
	state             string
}

// events gives what happened to the samples' sockets since their last samples.
func (t *TCP) events(tBootNs int64, samples []*sample) []*wire.TCPEvent {
	var out []*wire.TCPEvent
	for _, s := range samples {
		if s.Stream == nil {
			continue
		}
		was, known := t.seen[s.Cookie]
		is := see(tBootNs, s)
		t.seen[s.Cookie] = is
		if !known {
			was = seen{tBootNs: tBootNs, ssthresh: infiniteSsthresh, state: caStates[0], cwnd: is.cwnd}
		}
		out = was.since(out, is, s, known)
	}
	return out
}

func see(tBootNs int64, s *sample) seen {
	is := seen{tBootNs: tBootNs, retransmits: s.Retransmits, inARow: *s.RTOsInARow, cwnd: s.CwndSegments,
		ssthresh: s.ssthresh, state: s.CongestionState}
	if s.RTOsTotal != nil {
		is.rtos = *s.RTOsTotal
	}
	return is
}

// since adds the events that lie between two sights of one socket.
func (was seen) since(out []*wire.TCPEvent, is seen, s *sample, known bool) []*wire.TCPEvent {
	add := func(name string, count uint32) {
		if count == 0 {
			return
		}
		e := &wire.TCPEvent{Flow: s.Flow, Stream: s.Stream, Cookie: s.Cookie, Local: s.Local, Remote: s.Remote,
			Event: name, Source: "tcp_info",
			Count: count, CwndSegments: &s.CwndSegments, SsthreshSegments: s.SsthreshSegments}
		if known {
			from, before := was.tBootNs, was.cwnd // copies, so that a sample without events allocates nothing
			e.FromBootNs, e.CwndBefore = &from, &before
		}
		out = append(out, e)
	}
	add(eventRetransmission, is.retransmits-was.retransmits) // wraps as the kernel's counter does
	rtos := was.rtosUntil(is, s.RTOsTotal != nil)
	add(eventRTO, rtos)
	const recovery, loss = "recovery", "loss"
	repairing := func(state string) bool { return state == recovery || state == loss }
	halved := is.ssthresh != was.ssthresh && is.ssthresh < infiniteSsthresh
	switch {
	case is.state == recovery && (was.state != recovery || halved):
		add(eventRecovery, 1)
	case rtos == 0 && was.state != recovery && !repairing(is.state) && halved && is.retransmits != was.retransmits:
		add(eventRecovery, 1) // began and ended between the samples
		add(eventRecoveryEnd, 1)
	}
	if repairing(was.state) && !repairing(is.state) {
		add(eventRecoveryEnd, 1)
	}
	return out
}

// rtosUntil counts the time-outs between two sights. Kernels before 6.7 do not
// count them; there a time-out shows as one more in a row, or as the state that
// follows it, and those of a row that started over are the new row's.
func (was seen) rtosUntil(is seen, counted bool) uint32 {
	switch {
	case counted:
		return uint32(uint16(is.rtos) - uint16(was.rtos))
	case is.inARow > was.inARow:
		return is.inARow - was.inARow
	case is.inARow > 0 && is.inARow < was.inARow:
		return is.inARow
	case is.state == "loss" && was.state != "loss":
		return 1
	}
	return 0
}
