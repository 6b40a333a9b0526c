package metrics

import (
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

func (r *delayRun) flowsEnded(flows ...string) {
	for _, name := range flows {
		r.add("a", aOpens+2e9, &wire.DelayEnd{Flow: name, Side: wire.DelaySender})
		r.add("b", bOpens+5e9, &wire.DelayEnd{Flow: name, Side: wire.DelayReceiver})
	}
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
	want(t, rows, "", "cbr_flows", 2)
	want(t, rows, "", "cbr_packets_unsent", 1)
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
	want(t, r.rows(), "", "cbr_flows", 2)
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

func TestWhatIsNotKnownOfConstantBitRateIsAbsent(t *testing.T) {
	all := []string{"cbr_flows", "cbr_packets_unsent", CBRDelivery, CBRLatencyMs}
	whole := func() *delayRun {
		r := cbrRun()
		r.flow("one", 10, 10, 10)
		r.flow("two", 10, 10, 10)
		return r
	}
	r := whole() // no comparison of clocks
	r.flowsEnded("one", "two")
	want(t, r.rows(), "", CBRDelivery, 1)
	absent(t, r.rows(), "", CBRLatencyMs)
	r = whole() // one end of one flow did not end
	r.compared()
	r.flowsEnded("one")
	r.add("a", aOpens+2e9, &wire.DelayEnd{Flow: "two", Side: wire.DelaySender})
	absent(t, r.rows(), "", all...)
	r = whole() // nor the other
	r.compared()
	r.flowsEnded("one")
	r.add("b", bOpens+5e9, &wire.DelayEnd{Flow: "two", Side: wire.DelayReceiver})
	absent(t, r.rows(), "", all...)
	r = whole() // the receiver ended before what was under way could come
	r.compared()
	for _, name := range []string{"one", "two"} {
		r.add("a", aOpens+2e9, &wire.DelayEnd{Flow: name, Side: wire.DelaySender})
		r.add("b", bOpens+3e9, &wire.DelayEnd{Flow: name, Side: wire.DelayReceiver})
	}
	absent(t, r.rows(), "", all...)
	r = whole() // a run of an older Fieldmesh, whose flows were iperf3's
	r.compared()
	r.flowsEnded("one", "two")
	for i := range r.trial.Traffic {
		r.trial.Traffic[i].Kind = "iperf3_udp"
	}
	absent(t, r.rows(), "", all...)
}
