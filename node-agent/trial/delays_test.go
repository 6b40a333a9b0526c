package trial

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// delayFlow is a flow of kind delay from the car to the roadside node, at ports that nobody has.
func delayFlow(t *testing.T, durationS float64) wire.Flow {
	t.Helper()
	port := func(host byte) int {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, host)})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.LocalAddr().(*net.UDPAddr).Port
	}
	return wire.Flow{Name: "delay", Kind: wire.KindDelay, From: "car", To: "road", Port: port(2), Streams: 1,
		ClientPort: port(9), IntervalMs: ptr(10.0), PayloadBytes: ptr(64), DurationS: durationS}
}

// Beside the bulk flow the car sends datagrams for the whole window; both nodes record each, and their ends, and the
// attempt is not kept before. iperf3 is asked for the bulk flow alone.
func TestDelaysAreMeasuredBesideTheBulkFlow(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 1)
	flow := delayFlow(t, 1)
	for _, r := range []*rig{car, road} {
		r.mu.Lock()
		tr := &r.plan.Trials[0]
		tr.DurationS = 1
		tr.Traffic = append(tr.Traffic[:1:1], flow) // the two hold one plan
		r.mu.Unlock()
	}
	k := keepFirst(t, car, road, plan)
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

// A flow of kind cbr begins in the warm-up, needs no answer, and is heard for the grace after the window.
func TestConstantRateBesideTheBulkFlow(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 1)
	flow := delayFlow(t, 1.1)
	flow.Kind, flow.Background, flow.IntervalMs, flow.BitrateBps = wire.KindCBR, true, nil, ptr(64*8/10e-3)
	flow.StartS = -0.1
	for _, r := range []*rig{car, road} {
		r.mu.Lock()
		tr := &r.plan.Trials[0]
		tr.DurationS = 1
		tr.Traffic = append(tr.Traffic[:1:1], flow) // the two hold one plan
		r.mu.Unlock()
	}
	k := keepFirst(t, car, road, plan)
	w := car.spool.kinds(k, "window")[0].Body.(*wire.Window)
	sent, came := car.spool.kinds(k, "delay"), road.spool.kinds(k, "delay")
	handed := 0
	for i, one := range sent {
		d := one.Body.(*wire.Delay)
		if due := w.OpenBootNs + int64(i-10)*int64(10*time.Millisecond); *d.DueBootNs != due {
			t.Errorf("%+v was due at %d", d, due)
		}
		if d.HandedBootNs != nil {
			handed++
		}
	}
	if len(sent) != 110 || handed == 0 || len(came) != handed {
		t.Errorf("%d of 110 are recorded, %d were sent and %d came", len(sent), handed, len(came))
	}
	ends := road.spool.kinds(k, "delay_end")
	if len(car.spool.kinds(k, "delay_end")) != 1 || len(ends) != 1 {
		t.Fatal("an end has no record of it, or more than one")
	}
	heard := road.spool.kinds(k, "window")[0].Body.(*wire.Window).CloseBootNs + wire.DelayGrace.Nanoseconds()
	if ends[0].TBootNs < heard {
		t.Errorf("the receiver ended %d ns too early", heard-ends[0].TBootNs)
	}
}

// slowSockets take their time to tell what the sockets have at an edge.
type slowSockets struct{ Sockets }

func (s slowSockets) Edge(e string, tBootNs int64) ([]wire.Body, measure.Missed, error) {
	time.Sleep(400 * time.Millisecond)
	return s.Sockets.Edge(e, tBootNs)
}

// The first datagrams of the window do not wait for what else a node does as it opens.
func TestAConstantRateBeginsWithTheWindow(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 1)
	flow := delayFlow(t, 1)
	flow.Kind, flow.Background, flow.IntervalMs, flow.BitrateBps = wire.KindCBR, true, nil, ptr(64*8/10e-3)
	for _, r := range []*rig{car, road} {
		r.mu.Lock()
		tr := &r.plan.Trials[0]
		tr.DurationS = 1
		tr.Traffic = append(tr.Traffic[:1:1], flow)
		r.mu.Unlock()
	}
	car.deps.Sockets = func(string, []wire.Flow, map[string]netip.Addr, measure.Events) (Sockets, error) {
		car.open.Add(1)
		return slowSockets{fakeSockets{&car.open}}, nil
	}
	k := keepFirst(t, car, road, plan)
	unsent := 0
	for _, one := range car.spool.kinds(k, "delay") {
		if one.Body.(*wire.Delay).HandedBootNs == nil {
			unsent++
		}
	}
	if unsent > 20 { // a machine that is busy may miss some
		t.Errorf("%d of 100 were not sent", unsent)
	}
}

// Who aborts an attempt leaves no port open behind it.
func TestAnAbortClosesTheEndsOfAFlowOfDelay(t *testing.T) {
	_, road, plan := pair(t, 2)
	flow := delayFlow(t, 0.1)
	road.mu.Lock()
	for i := range road.plan.Trials {
		road.plan.Trials[i].Traffic = append(road.plan.Trials[i].Traffic, flow)
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

// A node stays in the trial for as long as flows of others may need it as a relay.
func TestARelayStaysUntilWhatIsUnderWayHasArrived(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		relays []string
		kind   string
		want   time.Duration
	}{
		"no relays":                       {nil, "iperf3_tcp", 0},
		"relays of iperf3's flows":        {[]string{"hill"}, "iperf3_tcp", flowGrace},
		"relays of timed datagrams":       {[]string{"hill"}, wire.KindDelay, wire.DelayGrace},
		"relays of a constant rate":       {[]string{"hill"}, wire.KindCBR, wire.DelayGrace},
		"no relays, a sender of kind cbr": {nil, wire.KindCBR, wire.DelayGrace},
	} {
		r := newRig(t, "hill", t.TempDir(), 0)
		now := r.deps.Clock.BootNs()
		const left = 50 * time.Millisecond
		a := &attempt{engine: r.Engine, ctx: t.Context(), closeNs: now - c.want.Nanoseconds() + left.Nanoseconds(),
			trial: wire.Trial{Relays: c.relays, Traffic: []wire.Flow{{Kind: c.kind}}}}
		if err := a.awaitOthers(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if stayed := r.deps.Clock.BootNs() >= a.closeNs+c.want.Nanoseconds(); stayed != (c.want > 0) {
			t.Errorf("%s: it stayed: %v", name, stayed)
		}
	}
}
