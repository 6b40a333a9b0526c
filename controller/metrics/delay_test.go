package metrics

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// delayRun is a flow of ten datagrams, one every 100 ms in a window of 1 s. Node a's clock is at 10 s, b's at 60 s when
// the window opens; a third clock was compared with both.
type delayRun struct {
	trial   wire.Trial
	records []wire.Record
}

const (
	aOpens, bOpens = int64(10e9), int64(60e9)
	msDelay        = int64(1e6)
)

func newDelayRun() *delayRun {
	r := &delayRun{trial: wire.Trial{Sender: "a", Receiver: "b", Initiator: "a", DurationS: 1,
		Traffic: []wire.Flow{{Name: "delay", Kind: wire.KindDelay, From: "a", To: "b", Streams: 1, Port: 5002,
			ClientPort: 20000, IntervalMs: new(100.0), PayloadBytes: new(172), DurationS: 1}}}}
	for node, open := range map[string]int64{"a": aOpens, "b": bOpens} {
		r.add(node, open, &wire.Window{OpenBootNs: open, CloseBootNs: open + 1e9})
	}
	return r
}

func (r *delayRun) add(node string, atNs int64, b wire.Body) {
	r.records = append(r.records, wire.Record{Header: wire.Header{Node: node, TBootNs: atNs}, Body: b})
}

// compared adds the comparisons of both clocks with the controller's, which is at 1 s when the window opens.
func (r *delayRun) compared() {
	for _, at := range []int64{0, 2e9} {
		r.add("controller", at, &wire.Clock{Peer: "a", OffsetNs: aOpens - 1e9, UncertaintyNs: 200_000})
		r.add("controller", at, &wire.Clock{Peer: "b", OffsetNs: bOpens - 1e9, UncertaintyNs: 300_000})
	}
}

// datagram adds one: outMs and backMs under way, 2 ms at the responder; below 0: lost there.
func (r *delayRun) datagram(n uint32, outMs, backMs int64) {
	handed := int64(n)*100*msDelay + 1*msDelay // 1 ms late
	sent := &wire.Delay{Flow: "delay", Side: wire.DelaySender, Datagram: n,
		DueBootNs: new(aOpens + int64(n)*100*msDelay), HandedBootNs: new(aOpens + handed),
		QueuedBootNs: new(aOpens + handed + int64(n)*1000)}
	if outMs >= 0 {
		came := handed + outMs*msDelay
		r.add("b", bOpens+came, &wire.Delay{Flow: "delay", Side: wire.DelayResponder, Datagram: n,
			ReceivedBootNs: new(bOpens + came), ReceivedStamp: wire.StampKernel,
			HandedBootNs: new(bOpens + came + 2*msDelay)})
		if backMs >= 0 {
			sent.PeerReceivedBootNs, sent.PeerReceivedStamp = new(bOpens+came), wire.StampKernel
			sent.PeerHandedBootNs = new(bOpens + came + 2*msDelay)
			sent.ReceivedBootNs = new(aOpens + came + (2+backMs)*msDelay)
			sent.ReceivedStamp = wire.StampKernel
		}
	}
	r.add("a", *sent.HandedBootNs, sent)
}

func (r *delayRun) ended(side, node string, duplicates uint64) {
	r.add(node, 99e9, &wire.DelayEnd{Flow: "delay", Side: side, Duplicates: duplicates})
}

func (r *delayRun) rows() []Row { return Attempt{trial: r.trial, records: r.records}.Rows() }

func TestDelaysAndLossesOfEachWay(t *testing.T) {
	r := newDelayRun()
	r.compared()
	for n := range uint32(6) {
		r.datagram(n, 10+int64(n), 3) // round trips of 13 to 18 ms
	}
	r.datagram(6, -1, -1)  // lost on its way out
	r.datagram(7, 20, -1)  // lost on its way back
	r.datagram(9, 150, 90) // answered after the close: late, and counted; 8 was not sent
	r.ended(wire.DelaySender, "a", 1)
	r.ended(wire.DelayResponder, "b", 2)
	rows := r.rows()
	for name, value := range map[string]float64{
		"datagrams_sent": 9, "datagrams_unsent": 1, "datagrams_lost_percent": 100 * 2.0 / 9,
		"datagrams_lost_out_percent": 100 * 1.0 / 9, "datagrams_lost_back_percent": 100 * 1.0 / 8,
		"datagrams_late": 1, "datagrams_duplicated": 3, "datagrams_out_of_order": 0, "answers_out_of_order": 0,
		"datagrams_stamped_late": 0, "datagram_wait_max_ms": 0.009,
		// of 13, 14, 15, 16, 17, 18, 240
		"delay_round_trip_p50_ms": 16, "delay_round_trip_p95_ms": 240, "delay_round_trip_p99_ms": 240,
		// of 10, 11, 12, 13, 14, 15, 20, 150
		"delay_out_p50_ms": 13, "delay_out_p95_ms": 150,
		"delay_back_p50_ms": 3, "delay_back_p99_ms": 90,
	} {
		want(t, rows, "delay", name, value)
	}
	if off := Value(rows, "delay", "one_way_delay_uncertainty_ms"); off == nil || *off < 0.5 || *off > 0.9 {
		t.Errorf("clocks known to 0.2 and 0.3 ms leave a one-way delay's uncertainty at %v", off)
	}
	absent(t, rows, "delay", TransferredMB, ThroughputBps)
}

func TestWhatIsNotKnownOfADelayIsAbsent(t *testing.T) {
	whole := func() *delayRun {
		r := newDelayRun()
		r.datagram(0, 10, 3)
		return r
	}
	// Without comparisons no delay of one way; the round trip needs none.
	r := whole()
	r.ended(wire.DelaySender, "a", 0)
	r.ended(wire.DelayResponder, "b", 0)
	want(t, r.rows(), "delay", DelayRoundTripP50Ms, 13)
	want(t, r.rows(), "delay", "datagrams_lost_out_percent", 0)
	absent(t, r.rows(), "delay", DelayOutP50Ms, DelayBackP50Ms, OneWayUncertaintyMs)
	// A responder that did not end may have had what it has no record of.
	r = whole()
	r.compared()
	r.ended(wire.DelaySender, "a", 0)
	want(t, r.rows(), "delay", DatagramsLostPercent, 0)
	absent(t, r.rows(), "delay", "datagrams_lost_out_percent", "datagrams_lost_back_percent", "datagrams_duplicated",
		DelayOutP50Ms)
	// A sender that did not end tells nothing.
	r = whole()
	r.ended(wire.DelayResponder, "b", 0)
	absent(t, r.rows(), "delay", DatagramsSent, DatagramsLostPercent, DelayRoundTripP50Ms)
	// All lost is a result, and no delay.
	r = newDelayRun()
	r.datagram(0, -1, -1)
	r.ended(wire.DelaySender, "a", 0)
	r.ended(wire.DelayResponder, "b", 0)
	want(t, r.rows(), "delay", DatagramsLostPercent, 100)
	absent(t, r.rows(), "delay", DelayRoundTripP50Ms, "datagrams_lost_back_percent")
}

func TestAnAnswerBeyondTheGraceIsLost(t *testing.T) {
	r := newDelayRun()
	r.datagram(0, 10, 2987) // 2 ms at the responder: 2999 ms after it was handed over
	r.datagram(1, 10, 2989)
	r.datagram(2, 400, 3) // and 3 overtakes it
	r.datagram(3, 10, 3)
	r.ended(wire.DelaySender, "a", 0)
	r.ended(wire.DelayResponder, "b", 0)
	rows := r.rows()
	want(t, rows, "delay", DatagramsLostPercent, 25)
	want(t, rows, "delay", "datagrams_lost_back_percent", 25)
	want(t, rows, "delay", "datagrams_out_of_order", 1)
	want(t, rows, "delay", "answers_out_of_order", 3)
	want(t, rows, "delay", DelayRoundTripP99Ms, 2997)
}
