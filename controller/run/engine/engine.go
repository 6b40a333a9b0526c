// Package engine decides what a run does: which attempt a worker makes next,
// when nodes are armed, how an attempt that does not go as planned is ended, and
// what a controller that comes back does about the attempts that it finds. It
// does nothing itself: Step takes an event and returns the actions that follow
// from it, and their answers are further events. It has no clock, no lock, no
// network and no disk; the package run does its actions.
package engine

import (
	"container/heap"
	"time"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Config is what a run is made of, and what its archive holds of it already.
type Config struct {
	Plan wire.RunPlan
	// Has reports whether a trial is this run's, and not another shard's.
	Has     func(trial int) bool
	Workers []Worker
	// Emulated says that the radio is: an attempt counts only where the field has
	// said how late its medium was.
	Emulated  bool
	Stopping  *plan.StopWhen // the stopping rule; nil: every block is driven
	Decisions []wire.Verdict // in the archive
	Stopped   int            // after so many blocks, by the archive; 0: it has not stopped
	PullOnly  bool           // nothing is driven
	LookEvery time.Duration  // how often an attempt under way is looked at
}

// Worker is a set of nodes that make one attempt at a time.
type Worker struct{ Nodes []string }

// Engine is a run under way.
type Engine struct {
	cfg       Config
	now       time.Time
	out       []Action
	lastID    uint64
	pending   map[uint64]func(Answer)
	timers    timers
	workers   []*worker
	decisions []wire.Verdict
	byTrial   map[int][]wire.Verdict
	taken     map[int]bool // trials that a worker is at
	overrides []Said       // people's, still to be applied
	stopped   int
	looked    int                        // after how many blocks the precision was looked at last
	mbps      map[wire.TrialKey]*float64 // what accepted attempts measured
	writing   int                        // journal entries under way that choosing waits for
	orphans   []wire.TrialKey            // attempts that the archive had when the run began, undecided
	ready     int                        // workers that have caught up
	leaving   bool
	finished  bool
}

// New returns the engine of a run that has not begun.
func New(cfg Config) *Engine {
	e := &Engine{cfg: cfg, pending: map[uint64]func(Answer){}, byTrial: map[int][]wire.Verdict{}, taken: map[int]bool{},
		stopped: cfg.Stopped, mbps: map[wire.TrialKey]*float64{}}
	for _, v := range cfg.Decisions {
		e.decided(v)
	}
	for i, w := range cfg.Workers {
		e.workers = append(e.workers, newWorker(e, i, w.Nodes))
	}
	return e
}

// Step takes an event and returns the actions that follow from it, in order.
func (e *Engine) Step(now time.Time, ev Event) []Action {
	e.now, e.out = now, nil
	ev.apply(e)
	for len(e.timers) > 0 && !e.timers[0].at.After(now) {
		heap.Pop(&e.timers).(timer).then()
	}
	e.schedule()
	return e.out
}

// Next is when a Tick is wanted; false: not before another event.
func (e *Engine) Next() (time.Time, bool) {
	if len(e.timers) == 0 {
		return time.Time{}, false
	}
	return e.timers[0].at, true
}

// do asks for an action; then takes its answer, and may be nil.
func (e *Engine) do(worker int, node string, op Op, then func(Answer)) {
	e.lastID++
	if then != nil {
		e.pending[e.lastID] = then
	}
	e.out = append(e.out, Action{ID: e.lastID, Worker: worker, Node: node, Op: op})
}

// everybody has no worker of its own.
const everybody = -1

func (e *Engine) after(d time.Duration, then func()) {
	e.lastID++
	heap.Push(&e.timers, timer{e.now.Add(d), e.lastID, then})
}

// timer is what is to happen at a time; id keeps the order of those of one time.
type timer struct {
	at   time.Time
	id   uint64
	then func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at.Before(t[j].at) || t[i].at.Equal(t[j].at) && t[i].id < t[j].id
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1], *t = timer{}, old[:len(old)-1]
	return last
}

// each asks every node for an action; then is called when all have answered.
func (w *worker) each(nodes []string, op func(node string) Op, then func(map[string]Answer)) {
	answers, left := map[string]Answer{}, len(nodes)
	if left == 0 {
		then(answers)
		return
	}
	for _, n := range nodes {
		w.e.do(w.index, n, op(n), func(a Answer) {
			answers[n] = a
			if left--; left == 0 {
				then(answers)
			}
		})
	}
}

// do asks for an action without which the run cannot go on.
func (w *worker) do(op Op, doing string, then func(Answer)) {
	w.e.do(w.index, "", op, func(a Answer) {
		if a.Fault != nil {
			w.e.fail(w.index, doing, a.Fault.Err)
			return
		}
		then(a)
	})
}

// write has the archive keep something; then is called when it is durable.
func (e *Engine) write(worker int, op Op, then func()) {
	e.do(worker, "", op, func(a Answer) {
		if a.Fault != nil {
			e.fail(worker, "", a.Fault.Err)
			return
		}
		then()
	})
}

func (e *Engine) fail(worker int, doing string, err error) {
	e.do(worker, "", Fail{Doing: doing, Err: err}, nil)
}

func (w *worker) show(s Show) { w.e.do(w.index, "", s, nil) }
