package verdict

import (
	"cmp"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// timers are data sockets' samples in an outage: of each socket the first after a time-out, with which later ones of
// the same outage are compared.
type timers map[timer]wire.Record

type timer struct {
	node   string
	cookie uint64
}

// backedOff takes a socket's next sample. It returns an earlier one if the RTO backed off between the two: after two
// time-outs more it is more than twice as long, though nothing was acknowledged and no round trip measured. A fixed RTO
// doubles once at most, which a retransmission that does not leave its node puts off; any other doubles each time.
// Of a SYN's timer nothing is judged: another trial's doubles, the reference TCP's among them, and so did a fixed RTO's
// in archives of before it was held.
func (t timers) backedOff(r wire.Record, s *wire.TCPSample) *wire.Record {
	k := timer{r.Node, s.Cookie}
	if s.State == "SYN_SENT" || s.RTOsInARow == nil {
		delete(t, k)
		return nil
	}
	first, known := t[k]
	was, _ := first.Body.(*wire.TCPSample)
	if !known || was.BytesAcked != s.BytesAcked || was.RTTUs != s.RTTUs || was.RTTVarUs != s.RTTVarUs ||
		!inOneOutage(was, s) {
		if t[k] = r; *s.RTOsInARow == 0 {
			delete(t, k)
		}
		return nil
	}
	if timeoutsBetween(was, s) < 2 || int64(s.RTOUs) <= 2*int64(was.RTOUs)+tickUs {
		return nil
	}
	delete(t, k) // it has been told
	return &first
}

// timeoutsBetween is how many time-outs lie between two samples of a socket. The kernel counts those in a row in eight
// bits and, from Linux 6.7 on, all in sixteen.
func timeoutsBetween(was, s *wire.TCPSample) int {
	if was.RTOsTotal == nil || s.RTOsTotal == nil {
		return int(*s.RTOsInARow) - int(*was.RTOsInARow)
	}
	return int(uint16(*s.RTOsTotal - *was.RTOsTotal))
}

// inOneOutage reports whether two samples have all time-outs between them in a row.
func inOneOutage(was, s *wire.TCPSample) bool {
	if was.RTOsTotal == nil || s.RTOsTotal == nil {
		return *s.RTOsInARow > 0
	}
	return uint8(int(*was.RTOsInARow)+timeoutsBetween(was, s)) == uint8(*s.RTOsInARow)
}

// backsOff returns where a socket's RTO, which is to be held, backed off in an outage; zero where none did.
func backsOff(samples []wire.Record) wire.Reason {
	slices.SortStableFunc(samples, func(a, b wire.Record) int { return cmp.Compare(a.TBootNs, b.TBootNs) })
	t := timers{}
	for _, r := range samples {
		s := r.Body.(*wire.TCPSample)
		if first := t.backedOff(r, s); first != nil {
			was := first.Body.(*wire.TCPSample)
			return alienTCP("a socket of flow %s on %s had an RTO of %d µs after time-out %d in a row and of %d µs "+
				"after time-out %d, and the trial's is fixed", s.Flow, r.Node, was.RTOUs, *was.RTOsInARow, s.RTOUs,
				*s.RTOsInARow)
		}
	}
	return wire.Reason{}
}
