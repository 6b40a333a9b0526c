package metrics

import (
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Names of what all flows of kind cbr measure together.
const (
	CBRDelivery        = "cbr_delivery_fraction"
	CBRFlows           = "cbr_flows"
	CBRLatencyMs       = "cbr_latency_ms"
	CBRLatencyExcessMs = "cbr_latency_excess_max_ms"
	CBRUnsent          = "cbr_packets_unsent"
)

// constantRate puts the figures of all flows of kind cbr together: none of them
// when an end of one did not record the whole of it.
func (s *set) constantRate() {
	out := set{at: s.at}
	var flows, due, unsent, arrived, timed, delayedNs, excessNs float64
	for _, f := range s.at.trial.Traffic {
		if f.Kind != wire.KindCBR {
			continue
		}
		w, came := verdict.WindowOf(f.From, s.at.records), verdict.WindowOf(f.To, s.at.records)
		if w == nil || came == nil {
			return
		}
		e, last := s.at.delayEnds(f, *w), came.CloseBootNs+wire.DelayGrace.Nanoseconds()
		if !e.whole(f) || !s.at.reaches(f.To, last) {
			return
		}
		clocks, compared := s.at.Clocks(f.From, f.To)
		from, to := clocks.Fits[f.From].Common, clocks.Fits[f.To].Common
		if compared {
			out.put(f.Name, oneWayError, milliseconds(clocks.UncertaintyNs))
		}
		flows++
		due += float64(len(e.sent))
		for number, b := range e.sent {
			a := e.arrived[number]
			switch {
			case b.HandedBootNs == nil:
				unsent++
			case a == nil || *a.ReceivedBootNs > last: // lost
			case compared:
				ns := float64(to(*a.ReceivedBootNs) - from(*b.HandedBootNs))
				timed++
				delayedNs += ns
				if a.ReceivedStamp != wire.StampKernel {
					excessNs += max(ns, 0)
				}
				fallthrough
			default:
				arrived++
			}
		}
	}
	if flows == 0 {
		return
	}
	out.put("", cbrFlows, &flows)
	out.put("", cbrUnsent, &unsent)
	if due > 0 {
		out.put("", cbrDelivery, new(arrived/due))
	}
	if timed == arrived && timed > 0 {
		out.put("", cbrLatency, milliseconds(delayedNs/timed))
		out.put("", cbrLatencyExcess, milliseconds(excessNs/timed))
	}
	s.rows = append(s.rows, out.rows...)
}

// whole reports whether both ends of a flow of kind cbr have a record of all that they counted.
func (e delayEnds) whole(f wire.Flow) bool {
	from, to := e.ends[wire.DelaySender], e.ends[wire.DelayReceiver]
	return from != nil && to != nil && e.recorded == f.Datagrams() && e.handed == from.Sent &&
		uint64(len(e.arrived)) == to.Received
}
