package metrics

import (
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// constantRate puts the figures of all flows of kind cbr together: none of them
// when an end of one did not record the whole of it.
func (s *set) constantRate() {
	var flows, due, unsent, arrived, timed, delayedNs float64
	for _, f := range s.at.trial.Traffic {
		if f.Kind != wire.KindCBR {
			continue
		}
		w, came := verdict.WindowOf(f.From, s.at.records), verdict.WindowOf(f.To, s.at.records)
		if w == nil || came == nil {
			return
		}
		e, last := s.at.delayEnds(f, *w), came.CloseBootNs+wire.DelayGrace.Nanoseconds()
		if e.ends[wire.DelaySender] == nil || e.ends[wire.DelayReceiver] == nil || !s.at.reaches(f.To, last) {
			return
		}
		from, fromOff, ok := s.at.ClockOf(f.From)
		to, toOff, too := s.at.ClockOf(f.To)
		if ok && too {
			s.put(f.Name, oneWayError, milliseconds(fromOff+toOff))
		}
		flows++
		due += float64(len(e.sent))
		for number, b := range e.sent {
			a := e.arrived[number]
			switch {
			case b.HandedBootNs == nil:
				unsent++
			case a == nil || *a.ReceivedBootNs > last: // lost
			case ok && too:
				timed++
				delayedNs += float64(to(*a.ReceivedBootNs) - from(*b.HandedBootNs))
				fallthrough
			default:
				arrived++
			}
		}
	}
	if flows == 0 {
		return
	}
	s.put("", cbrFlows, &flows)
	s.put("", cbrUnsent, &unsent)
	if due > 0 {
		s.put("", cbrDelivery, new(arrived/due))
	}
	if timed == arrived && timed > 0 {
		s.put("", cbrLatency, milliseconds(delayedNs/timed))
	}
}
