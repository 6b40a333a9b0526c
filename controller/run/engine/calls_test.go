package engine

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// call makes a call of a node. It may be lost on its way or on the way back, come
// late, or twice.
func (w *simulation) call(life int, a Action, n *node) {
	answered := false
	answer := func(d time.Duration, ans Answer) {
		w.at(d, func() {
			if answered {
				return
			}
			answered = true
			ans.ID = a.ID
			w.give(life, ans)
		})
	}
	away := func() {
		f := &Fault{Err: errAway, Timeout: w.rng.IntN(3) == 0}
		answer(w.between(100*time.Millisecond, 8*time.Second), Answer{Fault: f})
	}
	_, patient := a.Op.(Arm)
	reply := func(ans Answer) {
		if n.cut || w.chance(0.01) {
			away()
			return
		}
		answer(w.between(time.Millisecond, 20*time.Millisecond), ans)
	}
	if _, aborts := a.Op.(Abort); aborts || patient { // a bound for what never answers
		answer(30*time.Second, Answer{Fault: &Fault{Err: errAway, Timeout: true}})
	}
	sent := w.now
	deliver := func(reply func(Answer)) {
		w.sent = sent
		if n.up && !n.cut {
			w.receive(n, a.Op, reply)
		} else {
			away()
		}
	}
	switch {
	case w.chance(0.01): // lost
		away()
		return
	case len(w.nodes) == 1 && w.chance(0.01): // late, after it was given up
		away()
		w.at(w.between(time.Second, 40*time.Second), func() { deliver(func(Answer) {}) })
		return
	case w.chance(0.01): // twice
		w.at(w.between(time.Millisecond, 10*time.Second), func() { deliver(func(Answer) {}) })
	}
	w.at(w.between(time.Millisecond, 20*time.Millisecond), func() { deliver(reply) })
}

// receive is the node's API.
func (w *simulation) receive(n *node, op Op, reply func(Answer)) {
	first, steers := false, true
	switch op := op.(type) {
	case Load, End:
		first = true
	case View:
		first, steers = op.Leased, false
	case Renew, Release, Drain, Abort:
		steers = false
	}
	var f *Fault
	if first {
		f = n.take(holder, leaseTTL)
	}
	if f == nil && steers {
		f = n.steer(holder)
	}
	if f != nil {
		reply(Answer{Fault: f})
		return
	}
	switch op := op.(type) {
	case Load:
		n.loaded = true
		reply(Answer{})
	case View:
		if !n.loaded && !op.Leased {
			reply(Answer{Fault: &Fault{Code: wire.CodeNotFound, Err: errBusy}})
			return
		}
		n.loaded = true
		n.watch(op.Known, op.Wait, func() { reply(Answer{View: n.view(), Held: n.copied == len(n.records)}) })
	case Renew:
		reply(Answer{Fault: n.take(holder, op.TTL)})
	case Release:
		reply(Answer{Fault: n.take(holder, 0)})
	case Arm:
		had := n.cur
		n.arm(op.Key, false, func(f *Fault) { reply(Answer{Fault: f}) })
		if n.cur != nil && n.cur != had {
			n.cur.direct = w.now-w.sent < time.Second
		}
	case Abort:
		n.abort(op.Request, func() { reply(Answer{}) })
	case Tell:
		w.told(n, op.Verdicts)
		for _, v := range op.Verdicts {
			n.set(v)
		}
		n.pilot()
		reply(Answer{})
	case End:
		n.started = false
		restored := func() {
			n.record(wire.TrialKey{}, &wire.HostChange{Scope: "run", Action: "undone"})
			reply(Answer{})
		}
		if n.cur != nil {
			n.abort(wire.AbortRequest{TrialKey: n.cur.key}, restored)
			return
		}
		restored()
	case Drain:
		w.drain(n, int(op.Position.Seq), reply)
	}
}

func (w *simulation) drain(n *node, to int, reply func(Answer)) {
	if n.copied >= to {
		reply(Answer{})
		return
	}
	w.at(20*time.Millisecond, func() { w.drain(n, to, reply) })
}

// collect copies a node's records to the archive, and tells the controller of them.
func (w *simulation) collect(n *node) {
	if n.copying || w.life%2 == 0 {
		return
	}
	n.copying = true
	life := w.life
	most := 300 * time.Millisecond
	if w.slow && !w.calm && w.now < w.calmAt {
		most = 40 * time.Second
	}
	w.at(w.between(10*time.Millisecond, most), func() {
		n.copying = false
		if w.life != life {
			if w.life%2 == 1 {
				w.collect(n)
			}
			return
		}
		if !n.up || n.cut { // its return begins again
			return
		}
		fresh := n.records[n.copied:]
		n.copied = len(n.records)
		for _, r := range fresh {
			k := wire.TrialKey{Trial: r.Trial, Attempt: r.Attempt}
			w.archive.records[k] = append(w.archive.records[k], r)
			if _, ended := r.Body.(*wire.TrialState); ended && w.known[k] == 0 {
				w.known[k] = w.now
			}
		}
		for _, r := range fresh {
			w.sighted(life, n.worker, r)
		}
	})
}
