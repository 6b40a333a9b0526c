package trial

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// routed is a pair whose trials use a routing protocol; the relay's part is the
// roadside node's here, for two ends are enough.
func routed(t *testing.T, routing wire.Routing) (car, road *rig, plan wire.RunPlan) {
	t.Helper()
	car, road, plan = pair(t, 1)
	for _, r := range []*rig{car, road} {
		r.mu.Lock()
		r.plan.Trials[0].Routing = routing
		r.mu.Unlock()
	}
	return car, road, plan
}

// A trial of a protocol that makes routes before there is data is armed, and GO
// given, when both ends have their routes and not before: whichever end lacks
// its own.
func TestGoWaitsForRoutesAtBothEnds(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"car", "road"} {
		t.Run(last, func(t *testing.T) {
			car, road, plan := routed(t, wire.Routing{Protocol: "olsr"})
			late := map[string]*rig{"car": car, "road": road}[last]
			late.route.set("a route to the other")
			k := wire.TrialKey{Trial: 1, Attempt: 1}
			if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
				t.Fatal(err)
			}
			armed := make(chan error, 1)
			go func() { _, err := car.Arm(ctx, holder, plan.Run, k); armed <- err }()
			looked := late.route.askedTimes()
			await(t, "some more looks", func() bool { return late.route.askedTimes() >= looked+4 })
			if got := car.spool.states(k); len(got) != 0 {
				t.Fatalf("without routes the car went through %v", got)
			}
			select {
			case err := <-armed:
				t.Fatalf("arming returned without routes: %v", err)
			default:
			}
			late.route.set("")
			if err := <-armed; err != nil {
				t.Fatal(err)
			}
			await(t, "kept", func() bool { return car.kept(k) && road.kept(k) })
			for _, r := range []*rig{car, road} {
				ready, opened := r.spool.kinds(k, "routing_event"), r.spool.kinds(k, "window")
				if len(ready) != 1 || len(opened) != 1 || ready[0].Seq >= opened[0].Seq {
					t.Fatalf("%s: ready %+v, windows %+v", r.cfg.Node, ready, opened)
				}
				if e := ready[0].Body.(*wire.RoutingEvent); e.Report != "routing_ready_s" || e.Value == nil {
					t.Errorf("%s recorded %+v", r.cfg.Node, e)
				}
			}
			if want := []netip.Addr{netip.MustParseAddr("127.0.0.2")}; !slices.Equal(car.route.asked, want) {
				t.Errorf("the car asked for routes to %v, want %v", car.route.asked, want)
			}
		})
	}
}

func TestRoutesThatNeverComeFailArming(t *testing.T) {
	t.Parallel()
	car, road, plan := routed(t, wire.Routing{Protocol: "dsdv", ReadyS: ptr(1.0)})
	road.route.set("a route to 127.0.0.9")
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	_, err := car.Arm(ctx, holder, plan.Run, k)
	wantCode(t, err, wire.CodeNotReady)
	if !strings.Contains(err.Error(), "routing.ready_s") {
		t.Errorf("%v does not say what can be done", err)
	}
	const want = "arm_failed: routing_not_ready: after 1 s road lacks a route to 127.0.0.9"
	if outcome, reason := car.outcome(t, k); outcome != "failed" || reason != want {
		t.Errorf("kept as %s, %q; want failed, %q", outcome, reason, want)
	}
	if n := len(car.spool.kinds(k, "window")); n != 0 {
		t.Errorf("%d windows", n)
	}
}

// A protocol that makes routes on demand knows nobody before there is data, and
// a plan may do without.
func TestArmingDoesNotWaitWhereThereIsNothingToWaitFor(t *testing.T) {
	t.Parallel()
	for _, routing := range []wire.Routing{{Protocol: "aodv"}, {Protocol: "adv"}, {Protocol: "dsr"},
		{Protocol: "olsr", Ready: wire.ReadyDaemon}} {
		car, road, plan := routed(t, routing)
		car.route.set("everything")
		road.route.set("everything")
		k := wire.TrialKey{Trial: 1, Attempt: 1}
		for _, r := range []*rig{road, car} {
			if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
				t.Fatal(err)
			}
		}
		await(t, "kept", func() bool { return car.kept(k) && road.kept(k) })
		if car.route.askedTimes()+road.route.askedTimes() != 0 || len(car.spool.kinds(k, "routing_event")) != 0 {
			t.Errorf("%+v: routing was looked at", routing)
		}
	}
}

// Without a controller the initiator arms its peers by GO, and waits all the same.
func TestANodeThatGoesOnAloneWaitsForRoutesToo(t *testing.T) {
	t.Parallel()
	car, road, plan := routed(t, wire.Routing{Protocol: "adv", Ready: wire.ReadyNeighbors})
	road.route.set("a neighbour")
	for _, r := range []*rig{car, road} {
		takeLease(t, r, 0)
		r.mu.Lock()
		r.started = true
		r.mu.Unlock()
	}
	await(t, "some looks", func() bool { return road.route.askedTimes() >= 4 })
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if got := car.spool.states(k); len(got) != 0 {
		t.Fatalf("without a neighbour the car went through %v", got)
	}
	road.route.set("")
	await(t, "kept", func() bool { return car.kept(k) && road.kept(k) })
	if outcome, reason := car.outcome(t, k); outcome != "accepted" {
		t.Errorf("kept as %s, %s of run %s", outcome, reason, plan.Run)
	}
}

// Without a controller ready_s is as long as with one, though the peers may take longer to arm.
func TestANodeThatGoesOnAloneWaitsNoLongerForRoutes(t *testing.T) {
	t.Parallel()
	for _, late := range []string{"car", "road"} {
		t.Run(late, func(t *testing.T) {
			t.Parallel()
			car, road, _ := routed(t, wire.Routing{Protocol: "olsr", ReadyS: ptr(1.0)})
			map[string]*rig{"car": car, "road": road}[late].route.set("a route to the other")
			for _, r := range []*rig{car, road} {
				takeLease(t, r, 0)
				r.mu.Lock()
				r.started = true
				r.mu.Unlock()
			}
			k := wire.TrialKey{Trial: 1, Attempt: 1}
			await(t, "kept", func() bool { return car.kept(k) })
			want := "arm_failed: routing_not_ready: after 1 s " + late + " lacks a route to the other"
			if outcome, reason := car.outcome(t, k); outcome != "failed" || reason != want {
				t.Errorf("kept as %s, %q; want failed, %q", outcome, reason, want)
			}
		})
	}
}

// The routing's time begins when all peers have armed: before that there may be no route to them.
func TestRoutingHasItsTimeFromTheLastPeersFirstAnswer(t *testing.T) {
	t.Parallel()
	car, road, plan := routed(t, wire.Routing{Protocol: "olsr", ReadyS: ptr(1.0)})
	hears := func(p *wire.RunPlan) {
		road.mu.Lock()
		defer road.mu.Unlock()
		road.plan = p
	}
	loaded := road.plan
	car.route.set("a route to the other")
	takeLease(t, road, 0)
	hears(nil) // so that it does not answer
	takeLease(t, car, 0)
	car.mu.Lock()
	car.started = true
	car.mu.Unlock()
	await(t, "2 s of looks", func() bool { return car.route.askedTimes() >= 8 })
	hears(loaded)
	looked := car.route.askedTimes()
	await(t, "one more look", func() bool { return car.route.askedTimes() > looked })
	car.route.set("")
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	await(t, "kept", func() bool { return car.kept(k) })
	if outcome, reason := car.outcome(t, k); outcome != "accepted" {
		t.Errorf("kept as %s, %s of run %s", outcome, reason, plan.Run)
	}
}

// Its initiator may wait for another peer that arms, for as long as awaitRouting has it.
func TestAPeerWaitsLongerForGoWithoutAController(t *testing.T) {
	for readyS, want := range map[float64]time.Duration{10: lateJoin, 300: 300 * time.Second} {
		_, road, _ := routed(t, wire.Routing{Protocol: "olsr", ReadyS: &readyS})
		a := newAttempt(road.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, road.plan.Trials[0])
		steered := a.patience()
		takeLease(t, road, 0)
		if more := a.patience() - steered; more != want {
			t.Errorf("alone it waits %s longer where routing has %g s, want %s", more, readyS, want)
		}
	}
}

// The controller asks again when its connection broke: it must not take a node
// that is still arming for one that is armed.
func TestArmingAgainWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	car, road, plan := routed(t, wire.Routing{Protocol: "olsr"})
	car.route.set("a route")
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	armed := make(chan wire.CampaignView, 2)
	for range 2 {
		go func() {
			v, err := car.Arm(ctx, holder, plan.Run, k)
			if err != nil {
				t.Error(err)
			}
			armed <- v
		}()
	}
	await(t, "some looks", func() bool { return car.route.askedTimes() >= 3 })
	if len(armed) != 0 {
		t.Error("a call returned before the node was armed")
	}
	car.route.set("")
	for range 2 {
		if v := <-armed; v.State == wire.StateLoaded {
			t.Errorf("a call returned with the node in state %s", v.State)
		}
	}
	await(t, "kept", func() bool { return car.kept(k) && road.kept(k) })
}
