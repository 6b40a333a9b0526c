package metrics

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Names of what a flow of kind delay measures.
const (
	DelayRoundTripP50Ms  = "delay_round_trip_p50_ms"
	DelayRoundTripP95Ms  = "delay_round_trip_p95_ms"
	DelayRoundTripP99Ms  = "delay_round_trip_p99_ms"
	DelayOutP50Ms        = "delay_out_p50_ms"
	DelayBackP50Ms       = "delay_back_p50_ms"
	DatagramsSent        = "datagrams_sent"
	DatagramsUnsent      = "datagrams_unsent"
	DatagramsLostPercent = "datagrams_lost_percent"
	DatagramsStampedLate = "datagrams_stamped_late"
	OneWayUncertaintyMs  = "one_way_delay_uncertainty_ms"
)

const (
	ofDelay = "of a flow of kind delay, over the datagrams that were due in the sender's window"

	delayRoundTripText = "round trip " + ofDelay + " and were answered within 3 s: from the sender's handing one to " +
		"its kernel to the answer's arrival by the kernel's stamp, less what the responder took from that arrival to " +
		"handing its kernel the answer. What was lost has no round trip, and is in datagrams_lost_percent"
	delayOutText = "one-way delay from sender to responder " + ofDelay + " and arrived: from handing one to the " +
		"kernel to its arrival by the kernel's stamp; as certain as one_way_delay_uncertainty_ms, and absent where " +
		"the clocks were not compared"
	delayBackText = "the same of the answers that came within 3 s, from responder to sender"
)

var (
	datagramsSent = definition{DatagramsSent, "datagrams",
		"datagrams " + ofDelay + " and that it handed to its kernel or wanted to: one that the kernel refused, for " +
			"lack of a route for example, is sent and lost"}
	datagramsUnsent = definition{DatagramsUnsent, "datagrams",
		"datagrams " + ofDelay + " and that it did not send, because its program did not run at that time"}
	datagramsLost = definition{DatagramsLostPercent, "%",
		"datagrams_sent without an answer within 3 s ÷ datagrams_sent × 100"}
	datagramsLostOut = definition{"datagrams_lost_out_percent", "%",
		"of datagrams_sent, those that did not come to the responder, ÷ datagrams_sent × 100; absent where the " +
			"responder's record is not whole"}
	datagramsLostBack = definition{"datagrams_lost_back_percent", "%",
		"of the datagrams that came to the responder, those without an answer within 3 s, × 100; absent where none " +
			"came, or the responder's record is not whole"}
	datagramsLate = definition{"datagrams_late", "datagrams",
		"of the answers that came within 3 s, those that came after the window's close: they count as all others"}
	datagramsTwice = definition{"datagrams_duplicated", "datagrams",
		"copies beyond the first, of datagrams at the responder and of answers at the sender, in the whole flow"}
	datagramsDisorder = definition{"datagrams_out_of_order", "datagrams",
		"of datagrams_sent, those that came to the responder after one that was sent later (RFC 4737, 3.3)"}
	answersDisorder = definition{"answers_out_of_order", "datagrams",
		"of their answers, those that came to the sender after the answer to one that was sent later"}
	datagramsByProgram = definition{DatagramsStampedLate, "datagrams",
		"of the answered, those of which an arrival has no stamp of the kernel's: its program's stands for it, and " +
			"their delay is too long by what it took to be woken"}
	datagramWait = definition{"datagram_wait_max_ms", "ms",
		"longest that a datagram of datagrams_sent waited from its program's handing it to the kernel until it came " +
			"to the queue of the interface, or to the routing daemon's device, by the kernel's stamp: for its " +
			"neighbour's address, as a rule. It is part of the delays; absent where the kernel stamped none"}
)

// delayOf defines a statistic of a delay.
func delayOf(name, statistic, text string) definition {
	return definition{name + "_" + statistic + "_ms", "ms", text}
}

// delayEnds are the records of a timed flow.
type delayEnds struct {
	sent    map[uint32]*wire.Delay // those that were due in the sender's window
	arrived map[uint32]*wire.Delay // at the other end
	ends    map[string]*wire.DelayEnd
	// at the sender, in the whole flow: its records, and those of datagrams that the kernel took
	recorded int
	handed   uint64
}

func (at Attempt) delayEnds(f wire.Flow, w wire.Window) delayEnds {
	out := delayEnds{sent: map[uint32]*wire.Delay{}, arrived: map[uint32]*wire.Delay{},
		ends: map[string]*wire.DelayEnd{}}
	other := wire.DelayResponder
	if f.Kind == wire.KindCBR {
		other = wire.DelayReceiver
	}
	for _, r := range at.records {
		switch b := r.Body.(type) {
		case *wire.Delay:
			switch {
			case b.Flow != f.Name:
			case b.Side == other && r.Node == f.To && b.ReceivedBootNs != nil:
				out.arrived[b.Datagram] = b
			case b.Side == wire.DelaySender && r.Node == f.From && b.DueBootNs != nil:
				out.recorded++
				if b.HandedBootNs != nil && b.Refused == "" {
					out.handed++
				}
				if duringWindow(w, *b.DueBootNs) && (b.HandedBootNs != nil || f.Kind == wire.KindCBR) {
					out.sent[b.Datagram] = b
				}
			}
		case *wire.DelayEnd:
			if b.Flow == f.Name && (b.Side == wire.DelaySender && r.Node == f.From ||
				b.Side == other && r.Node == f.To) {
				out.ends[b.Side] = b
			}
		}
	}
	return out
}

// duringWindow leaves out the close, at which no datagram is due.
func duringWindow(w wire.Window, bootNs int64) bool {
	return bootNs >= w.OpenBootNs && bootNs < w.CloseBootNs
}

// inTime reports whether an answer came in time.
func inTime(b *wire.Delay) bool {
	return b.ReceivedBootNs != nil && *b.ReceivedBootNs-*b.HandedBootNs <= wire.DelayGrace.Nanoseconds()
}

// delay puts what a flow of kind delay tells. Without its sender's whole record
// nothing is known; without its responder's, nothing of either direction by itself.
func (s *set) delay(f wire.Flow) {
	w := verdict.WindowOf(f.From, s.at.records)
	if w == nil || f.IntervalMs == nil {
		return
	}
	e := s.at.delayEnds(f, *w)
	if e.ends[wire.DelaySender] == nil {
		return
	}
	due, opens := 0, w.OpenBootNs
	for number, b := range e.sent { // a flow before the window goes by the GO that it had
		opens = *b.DueBootNs - f.DatagramDueNs(0, int(number))
	}
	for n := range f.Datagrams() {
		if duringWindow(*w, f.DatagramDueNs(opens, n)) {
			due++
		}
	}
	n := float64(len(e.sent))
	s.put(f.Name, datagramsSent, &n)
	s.put(f.Name, datagramsUnsent, new(float64(due)-n))
	if n == 0 {
		return
	}
	var roundTrips []float64
	var came, late, byProgram float64
	var wait *float64
	for _, b := range e.sent {
		if b.QueuedBootNs != nil {
			ms := float64(*b.QueuedBootNs-*b.HandedBootNs) / 1e6
			if wait == nil || ms > *wait {
				wait = &ms
			}
		}
		ns, ok := b.RoundTripNs()
		if !ok || !inTime(b) {
			continue
		}
		came++
		roundTrips = append(roundTrips, float64(ns)/1e6)
		if *b.ReceivedBootNs > w.CloseBootNs {
			late++
		}
		if b.ReceivedStamp != wire.StampKernel || b.PeerReceivedStamp != wire.StampKernel {
			byProgram++
		}
	}
	s.put(f.Name, datagramsLost, new(100*(n-came)/n))
	s.put(f.Name, datagramsLate, &late)
	s.put(f.Name, datagramsByProgram, &byProgram)
	s.put(f.Name, datagramWait, wait)
	s.percentiles(f.Name, "delay_round_trip", delayRoundTripText, roundTrips)
	s.put(f.Name, answersDisorder, new(outOfOrder(e.sent, e.sent)))
	s.eachWay(f, e)
}

// eachWay puts what is known about either direction by itself.
func (s *set) eachWay(f wire.Flow, e delayEnds) {
	responder := e.ends[wire.DelayResponder]
	if responder == nil {
		return
	}
	n, came, both := float64(len(e.sent)), 0.0, 0.0
	for number, b := range e.sent {
		if e.arrived[number] != nil {
			came++
			if inTime(b) {
				both++
			}
		}
	}
	s.put(f.Name, datagramsLostOut, new(100*(n-came)/n))
	if came > 0 {
		s.put(f.Name, datagramsLostBack, new(100*(came-both)/came))
	}
	s.put(f.Name, datagramsTwice, new(float64(responder.Duplicates+e.ends[wire.DelaySender].Duplicates)))
	s.put(f.Name, datagramsDisorder, new(outOfOrder(e.sent, e.arrived)))
	clocks, compared := s.at.Clocks(f.From, f.To)
	if !compared {
		return
	}
	from, to := clocks.Fits[f.From].Common, clocks.Fits[f.To].Common
	var out, back []float64
	for number, b := range e.sent {
		if a := e.arrived[number]; a != nil {
			out = append(out, float64(to(*a.ReceivedBootNs)-from(*b.HandedBootNs))/1e6)
		}
		if inTime(b) && b.PeerHandedBootNs != nil {
			back = append(back, float64(from(*b.ReceivedBootNs)-to(*b.PeerHandedBootNs))/1e6)
		}
	}
	s.percentiles(f.Name, "delay_out", delayOutText, out)
	s.percentiles(f.Name, "delay_back", delayBackText, back)
	if len(out)+len(back) > 0 {
		s.put(f.Name, oneWayError, milliseconds(clocks.UncertaintyNs))
	}
}

// percentiles puts those of some delays: each is one of them, the least below or at
// which that share of them lies.
func (s *set) percentiles(flow, name, text string, ms []float64) {
	if len(ms) == 0 {
		return
	}
	slices.Sort(ms)
	for _, p := range []struct {
		name, text string
		share      float64
	}{{"p50", "median", 0.5}, {"p95", "95th percentile", 0.95}, {"p99", "99th percentile", 0.99}} {
		s.put(flow, delayOf(name, p.name, p.text+" of the "+text), new(stat.Quantile(p.share, stat.Empirical, ms, nil)))
	}
}

// outOfOrder counts the datagrams of sent that came after one that was sent later,
// by when they came.
func outOfOrder(sent, came map[uint32]*wire.Delay) float64 {
	type arrival struct {
		number uint32
		atNs   int64
	}
	var all []arrival
	for number := range sent {
		if b := came[number]; b != nil && b.ReceivedBootNs != nil {
			all = append(all, arrival{number, *b.ReceivedBootNs})
		}
	}
	slices.SortFunc(all, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.atNs, b.atNs), cmp.Compare(a.number, b.number))
	})
	n, newest := 0.0, uint32(0)
	for _, a := range all {
		if a.number < newest {
			n++
		}
		newest = max(newest, a.number)
	}
	return n
}
