package trial

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// bystanderPlan has two trials: the first without road, the second with it.
func bystanderPlan(roadPort int) wire.RunPlan {
	plan := twoNodePlan(2, 1, roadPort)
	plan.Nodes = append(plan.Nodes, wire.PlanNode{Name: "third", MeshPrefix: "127.0.0.8/8", GoPort: 1})
	plan.Trials[0].Roadside, plan.Trials[0].Receiver = "third", "third"
	for i := range plan.Trials[0].Traffic {
		plan.Trials[0].Traffic[i].To = "third"
	}
	return plan
}

// What somebody heard on the air and sends again, byte for byte, arms nobody,
// ends no attempt and changes no machine.
//
//attack:air a GO, or the answer to one, that was heard and is sent again, to whomever and whenever
func TestReplayedGoDoesNothing(t *testing.T) {
	t.Parallel()
	road := newRig(t, "road", t.TempDir(), testnet.FreePort(t))
	road.start(t)
	plan := bystanderPlan(road.port)
	takeLease(t, road, 60)
	if _, err := road.Load(ctx, holder, plan); err != nil {
		t.Fatal(err)
	}
	untouched := func(when string) {
		t.Helper()
		if _, busy := road.Attempt(); busy || road.host.inForce("run")+road.host.inForce("trial") != 0 {
			t.Errorf("%s the node is armed or changed", when)
		}
	}
	go1 := wire.Go{Type: "go", Run: plan.Run, Trial: 1, Attempt: 1, From: "car", To: "third", Exchange: 3, Nonce: 1,
		StartInUs: 1000}
	go2 := go1
	go2.Trial, go2.To = 2, "road"
	for1 := go1
	for1.To = "road"

	// A GO between others, and one that names this node in a trial without it.
	if ack := road.ask(t, plan.Key, for1, seal(t, plan.Key, go1)); ack.Ready ||
		!strings.Contains(ack.Reason, "no part") {
		t.Errorf("a GO of a trial without this node: %+v", ack)
	}
	untouched("after a GO of others")

	// One that was answered with a challenge and has no answer to it.
	if ack := road.askOnce(t, plan.Key, go2); ack.Challenge == 0 {
		t.Errorf("an old GO is answered %+v", ack)
	}
	untouched("after a GO without an answer to the challenge")

	// One that was new once, when its attempt has ended and when the node is armed
	// for another.
	go2.Answer = road.askOnce(t, plan.Key, go2).Challenge
	k := wire.TrialKey{Trial: 2, Attempt: 1}
	if ack := road.askOnce(t, plan.Key, go2); !ack.Ready || ack.Challenge != 0 {
		t.Fatalf("a new GO: %+v", ack)
	}
	await(t, "kept", func() bool { return road.kept(k) })
	next := wire.TrialKey{Trial: 2, Attempt: 2}
	if _, err := road.Arm(ctx, holder, plan.Run, next); err != nil {
		t.Fatal(err)
	}
	road.askOnce(t, plan.Key, go2)
	third := go2
	third.Attempt = 3
	if ack := road.askOnce(t, plan.Key, third); ack.Challenge == 0 {
		t.Errorf("a GO of another attempt with the answer to an old challenge: %+v", ack)
	}
	if at, busy := road.Attempt(); !busy || at != next {
		t.Errorf("the node is at %v (busy: %t), want %v", at, busy, next)
	}

	// Any at all when the run has ended, over a restart of the agent too.
	if _, err := road.End(ctx, holder, plan.Run); err != nil {
		t.Fatal(err)
	}
	if ack := road.ask(t, plan.Key, third); ack.Ready || !strings.Contains(ack.Reason, "ended") {
		t.Errorf("a GO after the run: %+v", ack)
	}
	untouched("after the run")
	again := newRig(t, "road", road.dir, testnet.FreePort(t))
	again.start(t)
	if ack := again.ask(t, plan.Key, third); ack.Ready || !strings.Contains(ack.Reason, "ended") {
		t.Errorf("a GO after the run and a restart: %+v", ack)
	}
	// Its controller takes the run up.
	takeLease(t, again, 60)
	if _, err := again.Load(ctx, holder, plan); err != nil {
		t.Fatal(err)
	}
	if ack := again.ask(t, plan.Key, third); !ack.Ready {
		t.Errorf("a GO of a run that was taken up: %+v", ack)
	}
}

// An answer to another exchange, or to another type of GO, opens no window.
//
//attack:air a GO, or the answer to one, that was heard and is sent again, to whomever and whenever
func TestReplayedAnswersAreNotTaken(t *testing.T) {
	r := newRig(t, "car", t.TempDir(), 0)
	key := []byte("a key of 32 bytes for this test.")
	r.plan = &wire.RunPlan{Run: "r", Key: key}
	a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Trial{Number: 1})
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peers := []*peer{{name: "road", paths: []*net.UDPAddr{conn.LocalAddr().(*net.UDPAddr)}}}
	heard := make(chan wire.Go, 1)
	go func() {
		var kept []wire.Ack // of the first exchange
		buf := make([]byte, wire.MaxDatagram+1)
		for {
			n, from, err := conn.ReadFromUDP(buf)
			var g wire.Go
			if err != nil || wire.Open(key, buf[:n], &g) != nil {
				return // the test has ended
			}
			ack := wire.Ack{Type: "ack", Run: g.Run, Trial: g.Trial, Attempt: g.Attempt, From: "road", Of: g.Type,
				Exchange: g.Exchange, Nonce: g.Nonce, Ready: true}
			answers := kept
			if g.Type == wire.GoArm {
				kept = append(kept, ack)
				answers = kept
			} else {
				ack.Of = wire.GoArm
				answers = append(answers, ack)
				select {
				case heard <- g:
				default:
				}
			}
			for _, x := range answers {
				if d, err := wire.Seal(key, x); err == nil {
					_, _ = conn.WriteToUDP(d, from)
				}
			}
		}
	}()
	until := func(d time.Duration) int64 { return r.deps.Clock.BootNs() + d.Nanoseconds() }
	if err := a.exchangeGo(context.Background(), wire.GoArm, peers, until(20*time.Second)); err != nil {
		t.Fatal(err)
	}
	peers[0].acked = false
	err = a.exchangeGo(context.Background(), wire.GoStart, peers, until(400*time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "no answer from road") || peers[0].acked {
		t.Errorf("with answers to another GO: %v", err)
	}
	if g := <-heard; g.To != "road" || g.Exchange == 0 {
		t.Errorf("it asked %+v", g)
	}
}
