package trial

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// answerer is a peer that keeps every GO, and answers each so much later.
func answerer(t *testing.T, name string, key []byte, later func(nonce uint64) time.Duration) (*peer, <-chan wire.Go) {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	heard := make(chan wire.Go, 100)
	go func() {
		buf := make([]byte, wire.MaxDatagram+1)
		for {
			n, from, err := conn.ReadFromUDP(buf)
			if err != nil {
				return // the test has ended
			}
			var g wire.Go
			if err := wire.Open(key, buf[:n], &g); err != nil {
				t.Error(err)
				return
			}
			heard <- g
			answer, err := wire.Seal(key, &wire.Ack{Type: "ack", Run: g.Run, Trial: g.Trial, Attempt: g.Attempt,
				From: name, Of: g.Type, Exchange: g.Exchange, Nonce: g.Nonce, Ready: true})
			if err != nil {
				t.Error(err)
				return
			}
			time.AfterFunc(later(g.Nonce), func() { _, _ = conn.WriteToUDP(answer, from) }) // the test may have ended
		}
	}()
	return &peer{name: name, paths: []*net.UDPAddr{conn.LocalAddr().(*net.UDPAddr)}}, heard
}

// A peer that is away uses up no attempt of a trial that its initiator begins by itself: as long as no peer answers, it
// is asked in the same one. Only where another has, or for an hour nobody, is that interrupted.
func TestAPeerThatIsAwayInterruptsTheAttempt(t *testing.T) {
	r := newRig(t, "car", t.TempDir(), 0)
	r.plan = &wire.RunPlan{Run: "r", Key: []byte("a key of 32 bytes for this test.")}
	r.heardNs = r.deps.Clock.BootNs()
	for name, ends := range map[string]func(a *attempt){
		"another has answered": func(a *attempt) { a.heard = true },
		"after an hour":        func(*attempt) { r.heardNs -= forsakenAfter.Nanoseconds() },
	} {
		a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Trial{Number: 1})
		silent := &peer{name: "road", paths: []*net.UDPAddr{{IP: net.IPv4(127, 0, 0, 1), Port: 9}}}
		asked := make(chan error, 1)
		r.heardNs = r.deps.Clock.BootNs()
		go func() { asked <- a.readyPeers([]*peer{silent}, 200*time.Millisecond) }()
		select {
		case err := <-asked:
			t.Fatalf("%s: it was asked no longer: %v", name, err)
		case <-time.After(700 * time.Millisecond):
		}
		r.mu.Lock()
		ends(a)
		r.mu.Unlock()
		err := <-asked
		if got := outcomeOf(fault{wire.ReasonArmFailed, err}); got != wire.Interrupted || !isNotReady(err) ||
			!strings.Contains(err.Error(), "road") {
			t.Errorf("%s: %s: %v", name, got, err)
		}
	}
}

// A node that is switched on again finds the trial that the other has waited with, and which has used up nothing.
func TestATrialWaitsForAPeerThatIsAway(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 1, func(p *wire.RunPlan) { p.Trials[0].Gate.TimeoutS = 0.3 })
	hears := func(p *wire.RunPlan) {
		road.mu.Lock()
		defer road.mu.Unlock()
		road.plan = p
	}
	loaded := road.plan
	takeLease(t, road, 0)
	hears(nil) // so that it does not answer
	takeLease(t, car, 0)
	car.mu.Lock()
	car.started = true
	car.mu.Unlock()
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	await(t, "armed", func() bool { return slices.Contains(car.spool.states(k), "armed") })
	time.Sleep(time.Second)
	hears(loaded)
	await(t, "kept", func() bool { return car.kept(k) })
	if outcome, reason := car.outcome(t, k); outcome != "accepted" {
		t.Errorf("kept as %s, %s of run %s", outcome, reason, plan.Run)
	}
}

// A car that stands at its start is not sent there while the other nodes are made ready. One that has set off by then
// has to come back.
func TestTheCarAtItsStartIsNotSentThere(t *testing.T) {
	for northM, want := range map[int64]string{10: "stay at the start until the other nodes are ready",
		1000: "waiting for the other nodes to be ready"} {
		r := newRig(t, "car", t.TempDir(), 0)
		r.gps.speed = 0
		r.gps.northM.Store(northM)
		key, ready := []byte("a key of 32 bytes for this test."), 300*time.Millisecond
		road, heard := answerer(t, "road", key, func(uint64) time.Duration { return ready })
		plan := twoNodePlan(1, 1, road.paths[0].Port)
		plan.Key, plan.Nodes[1].ControlAddr = key, "127.0.0.1"
		r.plan = &plan
		trial := plan.Trials[0]
		trial.Course = wire.Course{Kind: "depart", StartM: 10, SiteLatDeg: ptr(50.0), SiteLonDeg: ptr(8.0)}
		trial.Gate = wire.Gate{AtStart: true, AfterS: ptr(0.0), TimeoutS: 30, LeadS: 0.3}
		a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, trial)
		a.state = wire.StateArmed
		ended := make(chan struct{})
		go func() { a.initiate(); close(ended) }()
		told := func() (string, bool) { r.mu.Lock(); defer r.mu.Unlock(); return a.detail, a.toStart }
		<-heard
		if got, toStart := told(); got != want || toStart != (northM != 10) {
			t.Errorf("%d m north: %q, to the start %v", northM, got, toStart)
		}
		r.gps.northM.Store(500)
		await(t, "the car is sent back", func() bool {
			got, toStart := told()
			return got == "drive to the start, 490 m from here" && toStart
		})
		a.cancel(context.Canceled)
		<-ended
	}
}

// Peers are told one after the other, so that their answers do not wait for each
// other, and all of them the same opening.
func TestPeersAreToldTheSameOpeningApart(t *testing.T) {
	r := newRig(t, "car", t.TempDir(), 0)
	key := []byte("a key of 32 bytes for this test.")
	r.plan = &wire.RunPlan{Run: "r", Key: key}
	a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Trial{Number: 1})
	var peers []*peer
	var heard []<-chan wire.Go
	for i := range 6 {
		p, h := answerer(t, fmt.Sprintf("n%d", i), key, func(uint64) time.Duration { return 0 })
		peers, heard = append(peers, p), append(heard, h)
	}
	openNs := r.deps.Clock.BootNs() + (20 * time.Second).Nanoseconds()
	if err := a.exchangeGo(context.Background(), wire.GoStart, peers, openNs); err != nil {
		t.Fatal(err)
	}
	for i, p := range peers {
		if p.bestRTT <= 0 || !p.acked {
			t.Errorf("%s answered after %v", p.name, p.bestRTT)
		}
		if i > 0 && time.Duration(p.asked[0]-peers[i-1].asked[0]) < goApart {
			t.Errorf("%s was asked %v after %s", p.name, time.Duration(p.asked[0]-peers[i-1].asked[0]), peers[i-1].name)
		}
		g := <-heard[i]
		if told := p.asked[g.Nonce-1] + g.StartInUs*1000; told > openNs || told < openNs-1000 {
			t.Errorf("%s was told an opening %d ns before the others'", p.name, openNs-told)
		}
	}
}

// Who answers slowly is asked again, and its fastest answer counts; who always
// does is not waited for.
func TestSlowPeersAreAskedAgain(t *testing.T) {
	r := newRig(t, "car", t.TempDir(), 0)
	key := []byte("a key of 32 bytes for this test.")
	r.plan = &wire.RunPlan{Run: "r", Key: key}
	a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Trial{Number: 1})
	const slow = 40 * time.Millisecond
	once, _ := answerer(t, "once", key, func(nonce uint64) time.Duration {
		if nonce == 1 {
			return slow
		}
		return 0
	})
	always, _ := answerer(t, "always", key, func(uint64) time.Duration { return slow })
	peers := []*peer{once, always}
	openNs := r.deps.Clock.BootNs() + (20 * time.Second).Nanoseconds()
	if err := a.exchangeGo(context.Background(), wire.GoStart, peers, openNs); err != nil {
		t.Fatal(err)
	}
	if len(once.asked) < 2 || once.bestRTT >= slow {
		t.Errorf("who answered slowly once was asked %d times, the fastest answer took %v", len(once.asked),
			once.bestRTT)
	}
	if len(always.asked) != goMost || always.bestRTT < slow {
		t.Errorf("who always answers slowly was asked %d times, the fastest answer took %v", len(always.asked),
			always.bestRTT)
	}
}

// Of several GOs the earliest opening counts: before anybody has looked at one,
// and while the window is waited for. A later one changes nothing.
func TestTheLeastDelayedGoCounts(t *testing.T) {
	r := newRig(t, "car", t.TempDir(), 0)
	a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Trial{Number: 1})
	a.sockets = fakeSockets{&r.open}
	now := r.deps.Clock.BootNs()
	at := func(d time.Duration) goOrder { return goOrder{openBootNs: now + d.Nanoseconds()} }
	for _, d := range []time.Duration{time.Hour, time.Minute, 2 * time.Minute} {
		a.order(at(d))
	}
	first := <-a.start
	if first != at(time.Minute) {
		t.Fatalf("the window opens at %d, want %d", first.openBootNs, at(time.Minute).openBootNs)
	}
	for i, d := range []time.Duration{time.Hour, 200 * time.Millisecond} {
		time.AfterFunc(time.Duration(i+1)*20*time.Millisecond, func() { a.order(at(d)) })
	}
	got, err := a.awaitOpening(first)
	if err != nil || got != at(200*time.Millisecond) || a.openNs != got.openBootNs ||
		r.deps.Clock.BootNs() < got.openBootNs {
		t.Errorf("it opened at %d, want %d: %v", got.openBootNs, at(200*time.Millisecond).openBootNs, err)
	}
}
