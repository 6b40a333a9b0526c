package trial

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Beside the bulk flow the car sends datagrams for the whole window; both nodes record each, and their ends, and the
// attempt is not kept before. iperf3 is asked for the bulk flow alone.
func TestDelaysAreMeasuredBesideTheBulkFlow(t *testing.T) {
	car, road, plan := pair(t, 1)
	for _, r := range []*rig{car, road} {
		r.mu.Lock()
		tr := &r.plan.Trials[0]
		tr.DurationS = 1
		tr.Traffic = append(tr.Traffic, wire.Flow{Name: "delay", Kind: wire.KindDelay, From: "car", To: "road",
			Port: 5002, Streams: 1, ClientPort: 20100, IntervalMs: ptr(10.0), PayloadBytes: ptr(64), DurationS: 1})
		r.mu.Unlock()
	}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, r := range []*rig{road, car} {
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "kept", func() bool { return car.kept(k) && road.kept(k) })
	for _, r := range []*rig{car, road} {
		for _, one := range r.spool.kinds(k, "iperf3") {
			if b := one.Body.(*wire.Iperf3); b.Flow != "bulk" {
				t.Errorf("iperf3 ran for flow %s", b.Flow)
			}
		}
		if ended := r.spool.kinds(k, "delay_end"); len(ended) != 1 {
			t.Errorf("%s has %d records of an end", r.cfg.Node, len(ended))
		}
	}
	w := car.spool.kinds(k, "window")[0].Body.(*wire.Window)
	sent, came := car.spool.kinds(k, "delay"), road.spool.kinds(k, "delay")
	if len(sent) == 0 || len(came) != len(sent) {
		t.Fatalf("%d were sent and %d came", len(sent), len(came))
	}
	for _, one := range sent {
		d := one.Body.(*wire.Delay)
		due := w.OpenBootNs + int64(d.Datagram)*int64(10*time.Millisecond)
		if _, ok := d.RoundTripNs(); !ok || d.Side != wire.DelaySender || *d.DueBootNs != due || due >= w.CloseBootNs {
			t.Errorf("sender: %+v, due at %d", d, due)
		}
	}
	for _, one := range came {
		if d := one.Body.(*wire.Delay); d.Side != wire.DelayResponder || d.ReceivedBootNs == nil {
			t.Errorf("responder: %+v", d)
		}
	}
}

// Who aborts an attempt leaves no port open behind it.
func TestAnAbortClosesTheEndsOfAFlowOfDelay(t *testing.T) {
	_, road, plan := pair(t, 2)
	road.mu.Lock()
	for i := range road.plan.Trials {
		road.plan.Trials[i].Traffic = append(road.plan.Trials[i].Traffic, wire.Flow{Name: "delay", Kind: wire.KindDelay,
			From: "car", To: "road", Port: 5002, Streams: 1, ClientPort: 20100, IntervalMs: ptr(10.0), PayloadBytes: ptr(64),
			DurationS: 0.1})
	}
	road.mu.Unlock()
	for trial := 1; trial <= 2; trial++ { // the second arms on the same port
		k := wire.TrialKey{Trial: trial, Attempt: 1}
		if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
		if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: k, Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
		await(t, "kept", func() bool { return road.kept(k) })
	}
}
