package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/reach"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// far has a trial whose car stands 1 km from its start, out of the others' reach, when it is armed.
func far(t *testing.T, change func(*wire.Trial)) (car, road *rig, plan wire.RunPlan) {
	t.Helper()
	car, road, plan = pair(t, 1)
	car.gps.speed = 0
	car.gps.northM.Store(1000)
	for _, r := range []*rig{car, road} {
		r.mu.Lock()
		x := &r.plan.Trials[0]
		x.Course = wire.Course{Kind: "depart", StartM: 10, SiteLatDeg: ptr(50.0), SiteLonDeg: ptr(8.0)}
		x.Gate = wire.Gate{AtStart: true, AfterS: ptr(0.0), TimeoutS: 30, LeadS: 0.3}
		change(x)
		r.mu.Unlock()
	}
	return car, road, plan
}

// arming arms a node, and gives how that ended.
func arming(r *rig, plan wire.RunPlan, k wire.TrialKey) <-chan error {
	armed := make(chan error, 1)
	go func() { _, err := r.Arm(ctx, holder, plan.Run, k); armed <- err }()
	return armed
}

// Routing has its time from when the car is at its start: out there it has no routes.
func TestRoutingHasItsTimeFromTheStart(t *testing.T) {
	t.Parallel()
	car, road, plan := far(t, func(x *wire.Trial) { x.Routing = wire.Routing{Protocol: "olsr", ReadyS: ptr(1.0)} })
	car.route.set("a route to 127.0.0.2")
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	armed := arming(car, plan, k)
	select {
	case err := <-armed:
		t.Fatalf("it waited no longer than ready_s: %v", err)
	case <-time.After(2500 * time.Millisecond):
	}
	if v, err := car.View(ctx, plan.Run, 0); err != nil || !strings.HasPrefix(v.Detail, "drive to the start, ") {
		t.Errorf("the driver is told %q", v.Detail)
	}
	car.gps.northM.Store(10)
	car.route.set("")
	if err := <-armed; err != nil {
		t.Fatal(err)
	}
}

// A try of routing takes minutes: meanwhile the driver is told where the car is, and the last one begins at the start.
func TestTheDriverIsToldTheWayWhileRoutingIsTried(t *testing.T) {
	t.Parallel()
	car, road, plan := far(t, func(x *wire.Trial) { x.Routing = wire.Routing{Protocol: "olsr", ReadyS: ptr(60.0)} })
	car.route.set("a route to 127.0.0.2")
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	armed := arming(car, plan, k)
	for _, at := range []struct {
		northM int64
		told   string
	}{{1000, "drive to the start, 990 m from here"}, {500, "drive to the start, 490 m from here"},
		{10, "waiting for routing"}} {
		car.gps.northM.Store(at.northM)
		await(t, at.told, func() bool {
			v, err := car.View(ctx, plan.Run, 0)
			return err == nil && v.Detail == at.told && v.ToStart == (at.northM != 10)
		})
	}
	car.route.set("")
	if err := <-armed; err != nil {
		t.Fatal(err)
	}
}

// At its start it has its time, and no more.
func TestRoutingThatLacksAtTheStartFails(t *testing.T) {
	t.Parallel()
	car, road, plan := far(t, func(x *wire.Trial) { x.Routing = wire.Routing{Protocol: "olsr", ReadyS: ptr(1.0)} })
	car.route.set("a route to 127.0.0.2")
	car.gps.northM.Store(10)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	_, err := car.Arm(ctx, holder, plan.Run, k)
	wantCode(t, err, wire.CodeNotReady)
	const want = "arm_failed: routing_not_ready: after 1 s car lacks a route to 127.0.0.2"
	if outcome, reason := car.outcome(t, k); outcome != "failed" || reason != want {
		t.Errorf("kept as %s, %q", outcome, reason)
	}
}

// A network that the car cannot join out there is tried again until the car is at its start, and there once more. Why
// it failed is told meanwhile.
func TestANetworkIsJoinedAtTheStart(t *testing.T) {
	t.Parallel()
	car, _, plan := far(t, func(x *wire.Trial) {
		x.Radio = wire.Radio{Mode: wire.ModeHotspot, Channel: 6, SSID: "m", AccessPoint: "road"}
	})
	car.host.fail = reach.Error{Err: errors.New(`host process: join "m": not in it`)}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	armed := arming(car, plan, k)
	select {
	case err := <-armed:
		t.Fatalf("an attempt is used up while the car comes back: %v", err)
	case <-time.After(time.Second):
	}
	const told = `drive to the start, 990 m from here; the last try to arm: host process: join "m": not in it`
	if v, err := car.View(ctx, plan.Run, 0); err != nil || v.Detail != told {
		t.Errorf("the driver is told %q", v.Detail)
	}
	car.gps.northM.Store(10)
	wantCode(t, <-armed, wire.CodeNotReady)
	if outcome, _ := car.outcome(t, k); outcome != "failed" {
		t.Errorf("kept as %s", outcome)
	}
	if log := car.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "trial=1 attempt=1") {
		t.Errorf("logged as\n%s", log)
	}
}

// What the machine refuses, or cannot do, it refuses at the start, too.
func TestWhatTheMachineRefusesIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, fail := range []error{&change.Refused{Change: "hotspot", Reason: "the phone has saved it"},
		errors.New("host process: apply route: no such device")} {
		car, _, plan := far(t, func(x *wire.Trial) {
			x.Radio = wire.Radio{Mode: wire.ModeHotspot, Channel: 6, SSID: "m", AccessPoint: "road"}
		})
		car.host.fail = fail
		k := wire.TrialKey{Trial: 1, Attempt: 1}
		soon, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := car.Arm(soon, holder, plan.Run, k) // 1 km from its start
		cancel()
		wantCode(t, err, wire.CodeNotReady)
		if outcome, reason := car.outcome(t, k); outcome != "failed" || !strings.Contains(reason, fail.Error()) {
			t.Errorf("kept as %s, %q", outcome, reason)
		}
	}
}
