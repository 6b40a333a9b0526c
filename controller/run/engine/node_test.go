package engine

import (
	"fmt"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/model"
)

// node is a model of node-agent/trial, as far as a run depends on it: it holds
// the schedule, keeps leases, arms, measures, records and judges provisionally,
// and goes on alone when its lease has run out.
type node struct {
	w        *simulation
	worker   int
	name     string
	up       bool
	cut      bool // from the controller
	life     int  // of the agent
	loaded   bool
	started  bool
	verdicts map[int][]wire.Verdict
	cur      *simAttempt
	last     *wire.TrialKey
	lease    simLease
	records  []wire.Record
	copied   int // of the records, in the archive
	copying  bool
	piloting bool
	version  uint64
	watching []func() // called when the version rises
	mute     bool     // it cannot record the end of its next attempt
	did      []model.Did
}

type simLease struct {
	holder string
	until  time.Duration
}

type simAttempt struct {
	key     wire.TrialKey
	state   wire.State
	alone   bool
	closes  time.Duration // its window, once GO is out
	direct  bool          // armed by a call of the controller that came in time
	waiters []func()
}

const (
	gateLimit = 20 * time.Second
	noGoLimit = 120 * time.Second
)

func (n *node) leased() bool { return n.lease.holder != "" && n.w.now < n.lease.until }

// take is PUT /v1/lease.
func (n *node) take(holder string, ttl time.Duration) *Fault {
	free := !n.leased() || n.lease.holder == holder
	n.w.leaseSeen(n, holder, ttl, free)
	if !free {
		return &Fault{Code: wire.CodeLeaseHeld, Err: errHeld}
	}
	n.lease = simLease{}
	if ttl > 0 {
		n.lease = simLease{holder, n.w.now + min(ttl, meshLease)}
	}
	n.pilot()
	return nil
}

func (n *node) steer(holder string) *Fault {
	if n.leased() && n.lease.holder == holder {
		return nil
	}
	return &Fault{Code: "no_lease", Err: errHeld}
}

func (n *node) verdictOn(k wire.TrialKey) (wire.Verdict, bool) {
	for _, v := range n.verdicts[k.Trial] {
		if v.TrialKey == k {
			return v, true
		}
	}
	return wire.Verdict{}, false
}

func (n *node) set(v wire.Verdict) {
	if had, is := n.verdictOn(v.TrialKey); is && had.Final && !v.Final {
		return
	}
	n.verdicts[v.Trial] = withVerdict(n.verdicts[v.Trial], v)
}

// bump says that the view has changed.
func (n *node) bump() {
	n.version++
	watching := n.watching
	n.watching = nil
	for _, wake := range watching {
		wake()
	}
}

// watch calls then with a view of another version, or when it has waited long enough.
func (n *node) watch(known uint64, wait time.Duration, then func()) {
	if n.version != known || wait == 0 {
		then()
		return
	}
	over := false
	once := func() {
		if !over {
			over = true
			then()
		}
	}
	n.watching = append(n.watching, once)
	n.w.at(wait, once)
}

func (n *node) view() wire.CampaignView {
	at := wire.SpoolPosition{Epoch: "e", Seq: uint64(len(n.records))}
	v := wire.CampaignView{Version: n.version, State: wire.StateLoaded, Position: at}
	if n.last != nil {
		v.State, v.Current = wire.StateKept, n.last
	}
	if n.cur != nil {
		k := n.cur.key
		v.State, v.Current = n.cur.state, &k
		if left := (n.cur.closes - n.w.now).Seconds(); v.State == wire.StateRunning && left > 0 {
			v.Live = &wire.Live{RemainingS: &left}
		}
	}
	for number, vs := range n.verdicts {
		v.Trials = append(v.Trials, wire.TrialView{Number: number, Attempts: slices.Clone(vs)})
	}
	return v
}

// arm makes the node ready; done is told what came of it.
func (n *node) arm(k wire.TrialKey, alone bool, done func(*Fault)) {
	if _, had := n.verdictOn(k); had {
		done(nil)
		return
	}
	if n.cur != nil {
		if n.cur.key != k {
			done(&Fault{Code: "busy", Err: errBusy})
			return
		}
		done(nil)
		return
	}
	n.w.tell("%v arms for %v (alone %v)", n, k, alone)
	a := &simAttempt{key: k, state: wire.StateLoaded, alone: alone}
	n.cur, n.started = a, true
	n.after(n.w.between(10*time.Millisecond, 400*time.Millisecond), a, func() {
		if n.w.chance(0.03) {
			n.finish(a, wire.Failed, wire.ReasonArmFailed)
			done(&Fault{Code: "not_ready", Err: errBusy})
			return
		}
		n.enter(a, wire.StateArmed)
		n.bump()
		done(nil)
		n.after(noGoLimit, a, func() {
			if a.state == wire.StateArmed {
				n.w.forgotten(n, a)
				n.finish(a, wire.Failed, wire.ReasonNoGo)
			}
		})
		if n.w.trial(k.Trial).Initiator == n.name {
			most := 2 * time.Second
			if n.w.slow {
				most = time.Minute
			}
			n.after(n.w.between(100*time.Millisecond, most), a, func() { n.gate(a, n.w.now) })
		}
	})
}

// after does what is to happen later in an attempt, if it still is under way then.
func (n *node) after(d time.Duration, a *simAttempt, then func()) {
	life := n.life
	n.w.at(d, func() {
		if n.life == life && n.cur == a {
			then()
		}
	})
}

// gate opens when the car drives, which in a rehearsal it does when the field was told to.
func (n *node) gate(a *simAttempt, since time.Duration) {
	switch {
	case a.alone || n.w.road || n.w.driving[n.worker] == a.key:
		n.sendGo(a, 15)
	case n.w.now-since > gateLimit:
		n.finish(a, wire.Rejected, wire.ReasonGateTimeout)
	default:
		n.after(500*time.Millisecond, a, func() { n.gate(a, since) })
	}
}

// sendGo repeats GO until all peers are ready, and then opens every window.
func (n *node) sendGo(a *simAttempt, tries int) {
	ready := true
	for _, p := range n.peers(a.key) {
		if n.w.chance(0.05) || !p.up {
			ready = false
			continue
		}
		_, ended := p.verdictOn(a.key)
		switch {
		case ended:
			n.finish(a, wire.Failed, wire.ReasonPeerNotReady)
			return
		case p.cur == nil:
			p.arm(a.key, false, func(*Fault) {})
			ready = false
		case p.cur.key != a.key:
			if p.cur.state == wire.StateArmed {
				p.finish(p.cur, wire.Failed, wire.ReasonSuperseded)
			}
			ready = false
		case p.cur.state != wire.StateArmed:
			ready = false
		}
	}
	switch {
	case ready:
		for _, p := range append(n.peers(a.key), n) {
			p.goes(p.cur)
		}
	case tries == 0:
		n.finish(a, wire.Failed, wire.ReasonGoUnanswered)
	default:
		n.after(150*time.Millisecond, a, func() { n.sendGo(a, tries-1) })
	}
}

func (n *node) peers(k wire.TrialKey) []*node {
	var out []*node
	for _, name := range n.w.trial(k.Trial).Nodes() {
		if name != n.name {
			out = append(out, n.w.node(n.worker, name))
		}
	}
	return out
}

// goes has the window open after GO.
func (n *node) goes(a *simAttempt) {
	const lead, window = 500 * time.Millisecond, 2 * time.Second
	if a.state != wire.StateArmed {
		return
	}
	a.closes = n.w.now + lead + window
	n.enter(a, wire.StateRunning)
	n.bump()
	n.after(lead, a, func() {
		n.did = append(n.did, model.Did{Key: a.key, Opened: true})
		n.record(a.key, &wire.Window{OpenBootNs: int64(n.w.now), CloseBootNs: int64(n.w.now + window)})
		n.after(window+n.w.between(0, 500*time.Millisecond), a, func() {
			n.enter(a, wire.StateRestoring)
			n.after(n.w.between(10*time.Millisecond, 300*time.Millisecond), a, func() {
				if n.w.trial(a.key.Trial).Initiator == n.name && n.w.spoilt(a.key) {
					n.finish(a, wire.Rejected, wire.ReasonSpeed)
				} else {
					n.finish(a, wire.Accepted, "")
				}
			})
		})
	})
}

func (n *node) finish(a *simAttempt, outcome wire.Outcome, code wire.ReasonCode) {
	if n.cur != a {
		return
	}
	if a.state != wire.StateRestoring {
		n.enter(a, wire.StateRestoring)
	}
	k := a.key
	n.cur, n.last = nil, &k
	if n.w.calm && !n.leased() {
		n.w.violated("the lease of %v ran out in attempt %v", n, k)
	}
	n.ended(k, outcome, code)
	n.bump()
	for _, wake := range a.waiters {
		wake()
	}
	n.pilot()
}

// enter has an attempt enter a state.
func (n *node) enter(a *simAttempt, s wire.State) {
	a.state = s
	n.did = append(n.did, model.Did{Key: a.key, State: s})
}

func (n *node) ended(k wire.TrialKey, outcome wire.Outcome, code wire.ReasonCode) {
	n.did = append(n.did, model.Did{Key: k, State: wire.StateKept, Outcome: outcome, Code: code})
	reason := wire.Reason{Code: code}
	n.set(wire.Verdict{TrialKey: k, Outcome: outcome, Reason: reason})
	n.w.tell("%v kept %v: %s %s (recorded %v)", n, k, outcome, code, !n.mute)
	n.w.keptSeen(n, k, outcome, !n.mute)
	if n.mute {
		n.mute = false
		return
	}
	n.record(k, &wire.TrialState{State: wire.StateKept, Outcome: outcome, Reason: reason})
}

func (n *node) record(k wire.TrialKey, b wire.Body) {
	h := wire.Header{Kind: b.Kind(), Node: n.name, Trial: k.Trial, Attempt: k.Attempt}
	n.records = append(n.records, wire.Record{Header: h, Body: b})
	n.w.collect(n)
}

// abort ends an attempt; done is called when it is kept.
func (n *node) abort(r wire.AbortRequest, done func()) {
	a := n.cur
	if a == nil || a.key != r.TrialKey {
		done()
		return
	}
	a.waiters = append(a.waiters, done)
	outcome := wire.Interrupted
	if r.Follows {
		outcome = wire.Failed
	}
	n.after(n.w.between(time.Millisecond, 200*time.Millisecond), a, func() { n.finish(a, outcome, wire.ReasonAborted) })
}

// restart ends the agent and starts it again. Its leases are in memory, the rest is on disk.
func (n *node) restart() {
	if !n.up {
		return
	}
	n.w.tell("%v restarts", n)
	n.up, n.lease = false, simLease{}
	n.w.leaseLost(n)
	n.life++
	left, life := n.cur, n.life
	n.cur = nil
	n.w.at(n.w.between(time.Second, 5*time.Second), func() {
		if n.life != life {
			return // it was replaced meanwhile
		}
		n.up = true
		if left != nil {
			n.last = &left.key
			n.ended(left.key, wire.Interrupted, wire.ReasonAgentRestarted)
		}
		n.pilot()
		n.w.collect(n)
	})
}

// next is the attempt that the schedule has next, by what the node knows.
func (n *node) next() (wire.TrialKey, bool) {
	for _, t := range n.w.cfg.Plan.Trials {
		if attempt, more := verdict.Next(n.w.cfg.Plan.AttemptsMax, n.verdicts[t.Number]); more {
			return wire.TrialKey{Trial: t.Number, Attempt: attempt}, true
		}
	}
	return wire.TrialKey{}, false
}

// pilot goes on alone a while after the last lease, if this node has the next trial.
func (n *node) pilot() {
	if n.piloting || !n.started {
		return
	}
	wait := 3250 * time.Millisecond
	if n.leased() {
		wait += n.lease.until - n.w.now
	}
	n.piloting = true
	n.w.at(wait, func() {
		n.piloting = false
		k, more := n.next()
		switch {
		case n.cur != nil || !n.started || !more: // its end, or a verdict, wakes it
		case n.leased() || !n.up:
			n.pilot()
		case n.w.trial(k.Trial).Initiator == n.name:
			n.arm(k, true, func(*Fault) {})
		}
	})
}

func (n *node) String() string { return fmt.Sprintf("node %s of worker %d", n.name, n.worker) }
