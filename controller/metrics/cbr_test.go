package metrics

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// cbrRun is two flows of kind cbr, one and two, each with a datagram every 100 ms, from 200 ms before the window of
// 1 s on: ten are due in it.
func cbrRun() *delayRun {
	r := newDelayRun()
	one := wire.Flow{Name: "one", Kind: wire.KindCBR, Background: true, From: "a", To: "b", Streams: 1, Port: 6000,
		ClientPort: 20000, PayloadBytes: new(512), BitrateBps: new(512 * 8 / 0.1), StartS: -0.2, DurationS: 1.2}
	two := one
	two.Name, two.Port, two.ClientPort = "two", 6001, 20001
	r.trial.Traffic = []wire.Flow{one, two}
	return r
}

// flow adds what a flow's ends record of a datagram each: ms under way, lost, refused or unsent.
func (r *delayRun) flow(name string, was ...int64) {
	for i, ms := range was {
		due := int64(i-2) * 100 * msDelay
		sent := &wire.Delay{Flow: name, Side: wire.DelaySender, Datagram: uint32(i), DueBootNs: new(aOpens + due)}
		if ms != unsent {
			sent.HandedBootNs = new(aOpens + due + msDelay)
		}
		if ms == refused {
			sent.Refused = "ENETUNREACH"
		}
		r.add("a", aOpens+due, sent)
		if ms >= 0 {
			came := bOpens + due + (1+ms)*msDelay
			r.add("b", came, &wire.Delay{Flow: name, Side: wire.DelayReceiver, Datagram: uint32(i),
				ReceivedBootNs: &came, ReceivedStamp: wire.StampKernel})
		}
	}
}

const lost, refused, unsent = int64(-1), int64(-2), int64(-3)

// flowsEnded adds what the flows' ends count: what they have recorded.
func (r *delayRun) flowsEnded(flows ...string) {
	for _, name := range flows {
		r.add("a", aOpens+2e9, r.counted(name, wire.DelaySender))
		r.add("b", bOpens+5e9, r.counted(name, wire.DelayReceiver))
	}
}

func (r *delayRun) counted(flow, side string) *wire.DelayEnd {
	end := &wire.DelayEnd{Flow: flow, Side: side}
	for _, one := range r.records {
		d, ok := one.Body.(*wire.Delay)
		switch {
		case !ok || d.Flow != flow || d.Side != side:
		case side == wire.DelayReceiver:
			end.Received++
		case d.HandedBootNs != nil && d.Refused == "":
			end.Sent++
		}
	}
	return end
}

// Of all that was due in the window, of all flows together, that arrived which came; the delay is theirs. What was due
// before the window does not count, though it comes within it.
func TestConstantBitRateOfBothEndsRecords(t *testing.T) {
	r := cbrRun()
	r.compared()
	r.flow("one", 300, 300, 10, lost, 20, refused, 30, unsent, 10, 20, 3098, 3100) // the last came 1 ms too late
	r.flow("two", lost, lost, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50)
	r.flowsEnded("one", "two")
	rows := r.rows()
	want(t, rows, "", CBRFlows, 2)
	want(t, rows, "", CBRUnsent, 1)
	want(t, rows, "", CBRDelivery, 16.0/20)
	want(t, rows, "", CBRLatencyMs, (10+20+30+10+20+3098+10*50)/16.0)
	if off := Value(rows, "one", OneWayUncertaintyMs); off == nil || *off < 0.5 || *off > 0.9 {
		t.Errorf("clocks known to 0.2 and 0.3 ms leave a one-way delay's uncertainty at %v", off)
	}
}

// A flow that never got through has a delivery of 0, and takes part in that of all.
func TestAFlowThatNeverGotThroughCounts(t *testing.T) {
	none := []int64{lost, lost, lost, lost, lost, lost, refused, refused, refused, refused, refused, refused}
	r := cbrRun()
	r.compared()
	r.flow("one", none...)
	r.flow("two", 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10)
	r.flowsEnded("one", "two")
	want(t, r.rows(), "", CBRFlows, 2)
	want(t, r.rows(), "", CBRDelivery, 0.5)
	want(t, r.rows(), "", CBRLatencyMs, 10)
	r = cbrRun()
	r.compared()
	r.flow("one", none...)
	r.flow("two", none...)
	r.flowsEnded("one", "two")
	want(t, r.rows(), "", CBRDelivery, 0)
	absent(t, r.rows(), "", CBRLatencyMs)
}

// Without the whole of both ends' records of all flows there are no figures: what a record is missing of is not lost.
func TestWhatIsNotKnownOfConstantBitRateIsAbsent(t *testing.T) {
	whole := func() *delayRun {
		r := cbrRun()
		for _, name := range []string{"one", "two"} {
			r.flow(name, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, unsent)
		}
		return r
	}
	r := whole() // no comparison of clocks
	r.flowsEnded("one", "two")
	want(t, r.rows(), "", CBRDelivery, 0.9)
	absent(t, r.rows(), "", CBRLatencyMs, CBRLatencyExcessMs)
	isRecord := func(flow, side string, n uint32) func(wire.Record) bool {
		return func(one wire.Record) bool {
			d, ok := one.Body.(*wire.Delay)
			return ok && d.Flow == flow && d.Side == side && d.Datagram == n
		}
	}
	isEnd := func(flow, side string) func(wire.Record) bool {
		return func(one wire.Record) bool {
			d, ok := one.Body.(*wire.DelayEnd)
			return ok && d.Flow == flow && d.Side == side
		}
	}
	late := "the receiver ended too early"
	for why, lacks := range map[string]func(wire.Record) bool{
		"a sender did not end":       isEnd("two", wire.DelaySender),
		"a receiver did not end":     isEnd("two", wire.DelayReceiver),
		"a datagram sent is missing": isRecord("two", wire.DelaySender, 5),
		"one that was not sent is":   isRecord("two", wire.DelaySender, 11),
		"a datagram that came is":    isRecord("two", wire.DelayReceiver, 5),
		"the sender counts another": func(one wire.Record) bool {
			if end, ok := one.Body.(*wire.DelayEnd); ok && end.Side == wire.DelaySender {
				end.Sent++
			}
			return false
		},
		"a window is": func(one wire.Record) bool {
			return one.Node == "b" && one.Body.Kind() == "window"
		},
		late: func(one wire.Record) bool {
			return one.Node == "b" && one.TBootNs > bOpens+4e9
		},
	} {
		r := whole()
		r.compared()
		r.flowsEnded("one", "two")
		if why == late {
			for _, name := range []string{"one", "two"} {
				r.add("b", bOpens+3e9, r.counted(name, wire.DelayReceiver))
			}
		}
		want(t, r.rows(), "", CBRDelivery, 0.9)
		r.records = slices.DeleteFunc(r.records, lacks)
		rows := r.rows()
		absent(t, rows, "", CBRFlows, CBRUnsent, CBRDelivery, CBRLatencyMs, CBRLatencyExcessMs)
		absent(t, rows, "one", OneWayUncertaintyMs)
		if t.Failed() {
			t.Fatal(why)
		}
	}
	r = whole() // a run of an older Fieldmesh, whose flows were iperf3's
	r.compared()
	r.flowsEnded("one", "two")
	for i := range r.trial.Traffic {
		r.trial.Traffic[i].Kind = "iperf3_udp"
	}
	absent(t, r.rows(), "", CBRFlows, CBRUnsent, CBRDelivery, CBRLatencyMs)
}

// An arrival that its program stamped came between its handing over and that stamp.
func TestHowMuchLateStampsAddToTheLatency(t *testing.T) {
	r := cbrRun()
	r.compared()
	for _, name := range []string{"one", "two"} {
		r.flow(name, 300, 300, 10, 10, 10, 10, 10, 10, 10, 10, 10, 110)
	}
	r.flowsEnded("one", "two")
	want(t, r.rows(), "", CBRLatencyMs, 20)
	want(t, r.rows(), "", CBRLatencyExcessMs, 0)
	for _, one := range r.records {
		if d, ok := one.Body.(*wire.Delay); ok && d.Flow == "two" && d.Side == wire.DelayReceiver && d.Datagram >= 10 {
			d.ReceivedStamp = wire.StampProgram
		}
	}
	want(t, r.rows(), "", CBRLatencyMs, 20)
	want(t, r.rows(), "", CBRLatencyExcessMs, (10+110)/20.0)
}
