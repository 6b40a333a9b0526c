package metrics

import (
	"fieldmesh.dev/fieldmesh/controller/packets"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// asked is when a flow's client asked for its first connection, by common time.
type asked struct {
	atNs  int64
	offNs int64 // by how much that may be wrong
}

// startsMostNs is how long an iperf3 that was started takes at most until it
// asks. A SYN that comes later waited for its neighbour's hardware address: the
// kernel asks for one again after 1 s (retrans_time_ms).
const startsMostNs = 500e6

// asked tells when a flow's client asked. A capture above the routing daemon has
// the SYN as it leaves its socket. Without one the first on the interface may
// have waited below the socket, and others before it may not have come so far:
// then the client asked between its start and what was seen. It is false where
// nobody knows.
func (at Attempt) asked(f wire.Flow, a packets.Ask, w wire.Window) (asked, bool) {
	if at.trial.Routing.HoldsData() && at.trial.Routing.Protocol != "batman-adv" && a.AtNs != nil {
		return asked{atNs: *a.AtNs}, true
	}
	bootNs, known := at.startedNs(f)
	if !known {
		return asked{}, false
	}
	startNs := a.OpenNs + bootNs - w.OpenBootNs
	if a.AtNs == nil {
		return asked{startNs, startsMostNs}, true
	}
	wait := max(*a.AtNs-startNs, 0)
	if wait < startsMostNs {
		return asked{*a.AtNs, wait}, true
	}
	return asked{startNs, startsMostNs}, true
}

// startedNs is when a flow's client was started, by its node's boot clock.
func (at Attempt) startedNs(f wire.Flow) (bootNs int64, known bool) {
	for _, r := range at.records {
		if r.Node != f.Client() {
			continue
		}
		switch b := r.Body.(type) {
		case *wire.Iperf3:
			if b.Flow == f.Name && b.Side == "client" && b.StartedBootNs != nil {
				return *b.StartedBootNs, true
			}
		case *wire.Edge:
			if b.Edge == "start" && b.Flow == f.Name {
				return b.DueBootNs + int64(b.LateMs*1e6), true
			}
		}
	}
	return 0, false
}

// connecting puts how long the flow's client took to connect or, where it had
// not when the window closed or when it gave up, for how long it had asked.
// Nothing is told where the records do not say that it had none: a capture that
// misses its handshake is no sign of that.
func (s *set) connecting(r packets.Result, f wire.Flow) {
	w := verdict.WindowOf(f.Client(), s.at.records)
	if f.Kind != "iperf3_tcp" || w == nil {
		return
	}
	asked, known := s.at.asked(f, r.Ask, *w)
	if !known {
		return
	}
	untilNs, answered := r.Ask.CloseNs, r.Ask.AnsweredNs
	switch {
	case answered != nil && (r.Ask.AtNs == nil || *answered < *r.Ask.AtNs): // its SYN was missed
		return
	case answered != nil && *answered < untilNs:
		s.put(r.Flow, connectMs, new(float64(*answered-asked.atNs)/1e6))
	case answered == nil && !s.at.neverConnected(f):
		return
	case answered != nil && s.at.hadSocket(f, *w):
		return
	default:
		if b, _ := s.at.iperf3At(f.Client(), f.Name); answered == nil {
			if b.EndedBootNs == nil {
				return // it gave up nobody knows when
			}
			untilNs = min(untilNs, r.Ask.OpenNs+*b.EndedBootNs-w.OpenBootNs)
		}
		s.put(r.Flow, connectCensoredMs, new(float64(max(untilNs-asked.atNs, 0))/1e6))
	}
	if asked.offNs > 0 {
		s.put(r.Flow, connectOffMs, new(float64(asked.offNs)/1e6))
	}
}

// hadSocket reports whether a flow had a connection for data within the window:
// then its first one was answered before, whatever a capture has of it.
func (at Attempt) hadSocket(f wire.Flow, w wire.Window) bool {
	for _, r := range at.records {
		b, ok := r.Body.(*wire.TCPSample)
		if ok && r.Node == f.Client() && r.TBootNs < w.CloseBootNs && b.Flow == f.Name && b.Stream != nil &&
			b.State == "ESTABLISHED" {
			return true
		}
	}
	return false
}
