package trial

import (
	"net"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Every kind of GO that was heard, of each trial, is sent again in every state of a
// node. Only its challenge lets a GO do anything, and that is random: so nothing of it
// has to outlive the agent.
//
//attack:air a GO, or the answer to one, that was heard and is sent again, to whomever and whenever
//attack:air whoever waits with what was heard until the agent has started again, or the run has ended | challenges
//attack:and are random, and of one life of the agent; what is decided, and that a run has ended, is on disk
func TestNothingThatWasHeardDoesAnythingAgain(t *testing.T) {
	t.Parallel()
	_, road, plan := pair(t, 3)
	first := wire.TrialKey{Trial: 1, Attempt: 1}
	g := wire.Go{Type: wire.GoStart, Run: plan.Run, Trial: 1, Attempt: 1, From: "car", To: "road", Nonce: 1,
		Exchange: 7, StartInUs: 100_000}
	g.Answer = road.askOnce(t, plan.Key, g).Challenge
	if g.Answer == 0 {
		t.Fatal("a GO that repeats no challenge is obeyed")
	}
	if ack := road.ask(t, plan.Key, g); !ack.Ready {
		t.Fatalf("a new GO: %+v", ack)
	}
	await(t, "kept", func() bool { return road.kept(first) })

	var heard []wire.Go
	for _, kind := range []string{wire.GoStart, wire.GoArm} {
		for _, k := range []wire.TrialKey{first, {Trial: 1, Attempt: 2}, {Trial: 2, Attempt: 1}} {
			for _, answer := range []uint64{0, g.Answer} {
				again := g
				again.Type, again.Trial, again.Attempt, again.Answer = kind, k.Trial, k.Attempt, answer
				heard = append(heard, again)
			}
		}
	}
	from := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}
	replay := func(state string, to *rig) {
		t.Helper()
		key, busy := to.Attempt()
		windows := len(to.spool.kinds(first, "window"))
		for _, g := range heard {
			if ack := to.obey(ctx, g, to.deps.Clock.BootNs(), from); ack == nil || ack.Ready && ack.Challenge == 0 {
				t.Errorf("%s: %+v is answered with %+v", state, g, ack)
			}
		}
		if now, still := to.Attempt(); now != key || still != busy {
			t.Errorf("%s: at %+v (%v), and then at %+v (%v)", state, key, busy, now, still)
		}
		if n := len(to.spool.kinds(first, "window")); n != windows {
			t.Errorf("%s: %d windows, and then %d", state, windows, n)
		}
	}
	replay("after an attempt", road)
	third := wire.TrialKey{Trial: 3, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, third); err != nil {
		t.Fatal(err)
	}
	replay("armed for another trial", road)
	if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: third, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	await(t, "idle", func() bool { _, busy := road.Attempt(); return !busy })
	replay("after an abort", road)

	again := newRig(t, "road", road.dir, testnet.FreePort(t))
	again.start(t)
	replay("after the agent started again", again)
	if _, err := again.Lease(ctx, holder, wire.Lease{Holder: holder, TTLS: 60}); err != nil {
		t.Fatal(err)
	}
	if _, err := again.End(ctx, holder, plan.Run); err != nil {
		t.Fatal(err)
	}
	replay("after the run's end", again)
	ended := newRig(t, "road", road.dir, testnet.FreePort(t))
	ended.start(t)
	replay("after its end, and the agent started again", ended)
}
