package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	leaseTTL   = 30 * time.Second
	leaseEvery = 10 * time.Second
	// meshLease is long enough for a window in which it cannot be renewed.
	meshLease = 120 * time.Second
	// askAgain is when a node that is away, or is being started, is asked again.
	askAgain = 500 * time.Millisecond
)

// worker is a set of nodes at work. Its methods call their last argument when what
// they ask for is done.
type worker struct {
	e        *Engine
	index    int
	nodes    []string
	choosing bool // it has nothing to do
	over     bool // nothing is left for it
	await    *awaiting

	// What the archive has of attempts, by the records of this worker's nodes.
	kept    map[wire.TrialKey]map[string]wire.TrialState
	windows map[wire.TrialKey]map[string]wire.Window
	late    map[string]error // nodes whose records do not get there, and why

	quietUntil time.Time
	quiet      map[wire.TrialKey]bool // attempts whose windows began in a quiet period, or with no controller there
	renewing   map[string]bool
	silent     map[string]time.Time // nodes whose leases cannot be renewed, and since when
	releasing  func()               // what follows the last renewal; nil while leases are renewed
}

func newWorker(e *Engine, index int, nodes []string) *worker {
	return &worker{e: e, index: index, nodes: slices.Sorted(slices.Values(nodes)),
		renewing: map[string]bool{}, silent: map[string]time.Time{}, late: map[string]error{},
		quiet: map[wire.TrialKey]bool{},
		kept:  map[wire.TrialKey]map[string]wire.TrialState{}, windows: map[wire.TrialKey]map[string]wire.Window{}}
}

func (w *worker) mesh() bool { return w.e.cfg.Plan.Control == wire.ControlMesh }

func put[T any](m map[wire.TrialKey]map[string]T, k wire.TrialKey, node string, v T) {
	if m[k] == nil {
		m[k] = map[string]T{}
	}
	m[k][node] = v
}

// open gives the nodes the plan, and makes them and the archive agree.
func (w *worker) open() {
	w.insistAll(Load{}, "", func(map[string]Answer) {
		w.e.do(w.index, "", Collect{}, nil)
		for _, n := range w.nodes {
			w.e.after(leaseEvery, func() { w.renew(n) })
		}
		// A node that forgot the run since, for another was loaded, may have its records still: an
		// attempt must not be begun again under their key.
		w.drain(func() { w.catchUp(w.opened) })
	})
}

// opened waits until all workers are open, and what no node knows is decided.
func (w *worker) opened() {
	e := w.e
	if e.ready++; e.ready < len(e.workers) {
		return
	}
	e.decideOrphans(func() {
		for _, w := range e.workers {
			if e.cfg.PullOnly {
				w.pulled()
			} else {
				w.choosing = true
			}
		}
	})
}

// insist makes a call of a node, with the lease in hand, again and again while
// the node is out of reach or is just being restarted.
func (w *worker) insist(node string, op Op, doing string, then func(Answer)) {
	w.e.do(w.index, node, op, func(a Answer) {
		switch {
		case a.Fault == nil:
			then(a)
		case a.Fault.Passes():
			w.show(Show{Phase: "waiting", Detail: a.Fault.Err.Error()})
			w.e.after(askAgain, func() { w.insist(node, op, doing, then) })
		default:
			w.e.fail(w.index, doing, a.Fault.Err)
		}
	})
}

// insistAll insists on a call of every node.
func (w *worker) insistAll(op Op, doing string, then func(map[string]Answer)) {
	answers := map[string]Answer{}
	for _, n := range w.nodes {
		w.insist(n, op, doing, func(a Answer) {
			if answers[n] = a; len(answers) == len(w.nodes) {
				then(answers)
			}
		})
	}
}

// views asks every node how it stands until all have answered: without them the
// schedule cannot go on. Where that took long, a node may have gone on alone since it
// answered, and all are asked again.
func (w *worker) views(then func(map[string]wire.CampaignView)) { w.viewsOf(w.nodes, then) }

// viewsOf is views of some nodes.
func (w *worker) viewsOf(nodes []string, then func(map[string]wire.CampaignView)) {
	began, views := w.e.now, map[string]wire.CampaignView{}
	var ask func(node string)
	ask = func(node string) {
		w.e.do(w.index, node, View{Leased: true}, func(a Answer) {
			if a.Fault != nil {
				detail := fmt.Sprintf("%s is out of reach: %v", node, a.Fault.Err)
				if w.leavesAlone("") {
					detail = "the nodes go on alone: " + detail
				}
				w.show(Show{Phase: "waiting", Detail: detail})
				w.e.after(askAgain, func() { ask(node) })
				return
			}
			switch views[node] = a.View; {
			case len(views) < len(nodes):
			case w.e.now.Sub(began) > LeaseTTL(w.e.cfg.Plan):
				w.viewsOf(nodes, then)
			default:
				then(views)
			}
		})
	}
	for _, n := range nodes {
		ask(n)
	}
}

// leavesAlone reports whether a node's lease is left to run out because another node is out
// of reach for longer than a lease lasts. That one has gone on alone, and can only do so with
// the others. In a rehearsal of several fields nodes never go on alone.
func (w *worker) leavesAlone(node string) bool {
	if _, silent := w.silent[node]; silent || len(w.e.workers) > 1 || w.e.cfg.PullOnly {
		return false
	}
	for _, since := range w.silent {
		if w.e.now.Sub(since) > LeaseTTL(w.e.cfg.Plan) {
			return true
		}
	}
	return false
}

// renew keeps a node's lease, but not within a quiet period. While the node or another is
// out of reach they go on by themselves; the leases are taken again when it comes back.
func (w *worker) renew(node string) {
	e := w.e
	if w.releasing != nil {
		return
	}
	if wait := w.quietUntil.Sub(e.now); wait > 0 {
		e.after(wait, func() { w.renew(node) })
		return
	}
	next := e.now.Add(leaseEvery)
	if w.leavesAlone(node) {
		e.after(leaseEvery, func() { w.renew(node) })
		return
	}
	w.renewing[node] = true
	e.do(w.index, node, Renew{TTL: LeaseTTL(e.cfg.Plan)}, func(a Answer) {
		delete(w.renewing, node)
		if a.Fault != nil {
			w.log("renew lease of "+node, wire.TrialKey{}, a.Fault)
		}
		if a.Fault == nil || a.Fault.Code != "" {
			delete(w.silent, node)
		} else if _, already := w.silent[node]; !already {
			w.silent[node] = e.now
		}
		if w.releasing != nil {
			w.releasing()
			return
		}
		e.after(max(next.Sub(e.now), 0), func() { w.renew(node) })
	})
}

// LeaseTTL is how long a run's lease on a node is to last.
func LeaseTTL(p wire.RunPlan) time.Duration {
	if p.Control == wire.ControlMesh {
		return meshLease
	}
	return leaseTTL
}

func (w *worker) log(doing string, k wire.TrialKey, f *Fault) {
	w.e.do(w.index, "", Log{Doing: doing, Key: k, Err: f.Err}, nil)
}

// endPatience is how long the end of a run waits for a node that is away.
const endPatience = time.Minute

// end tells the nodes that the run is over, so that they put everything back,
// and collects what they still have to tell.
func (w *worker) end() {
	w.e.after(endPatience, func() {
		if !w.over {
			w.e.fail(w.index, "", ErrAway)
		}
	})
	w.insistAll(End{}, "end the run", func(map[string]Answer) { w.drain(w.release) })
}

// pulled is what is left to do in a run of which nothing is to be driven.
func (w *worker) pulled() {
	if w.e.left() == 0 {
		w.end()
	} else {
		w.drain(w.release)
	}
}

// drain waits until every record that the nodes have on disk is in the archive.
func (w *worker) drain(then func()) {
	w.insistAll(View{Leased: true}, "collect the records", func(views map[string]Answer) {
		left := len(w.nodes)
		for _, n := range w.nodes {
			w.insist(n, Drain{views[n].View.Position}, "collect the records of node "+n, func(Answer) {
				if left--; left == 0 {
					then()
				}
			})
		}
	})
}

// release gives up the nodes' leases: others may steer them, and while nobody
// does they go on alone. No renewal comes after: the next run would find the
// nodes leased.
func (w *worker) release() {
	w.releasing = func() {
		if len(w.renewing) > 0 {
			return
		}
		w.each(w.nodes, func(string) Op { return Release{} }, func(answers map[string]Answer) {
			for _, n := range slices.Sorted(maps.Keys(answers)) {
				if f := answers[n].Fault; f != nil { // it ends by itself soon; the run is over all the same
					w.log("give up the lease of "+n, wire.TrialKey{}, f)
				}
			}
			w.over = true
		})
	}
	w.releasing()
}
