package engine

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/model"
)

var (
	errAway = errors.New("no route to host")
	errHeld = errors.New("the lease is not yours")
	errBusy = errors.New("not now")
)

// simulation is a fleet, an archive and a controller in virtual time. All that
// happens by chance comes from one seed.
type simulation struct {
	seed    uint64
	rng     *rand.Rand
	now     time.Duration
	queue   happenings
	order   uint64
	calm    bool          // nothing goes wrong
	slow    bool          // cars take long, and so do records
	road    bool          // cars set off by themselves, as on a road
	calmAt  time.Duration // nor from here on
	cfg     Config
	nodes   [][]*node
	driving map[int]wire.TrialKey
	archive *archive
	mutant  *mutant
	trace   func(format string, args ...any) // nil: nobody looks

	engine  *Engine
	life    int // of the controller; odd while it lives
	ticking time.Duration
	killIn  int // actions
	done    bool
	checks
}

// archive is what outlives the controller.
type archive struct {
	decisions []wire.Verdict
	records   map[wire.TrialKey][]wire.Record
	sealed    map[wire.TrialKey]bool
	said      []Said // by people
	answered  map[string]bool
}

type happening struct {
	at    time.Duration
	order uint64
	what  func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = happening{}
	*h = (*h)[:len(*h)-1]
	return last
}

func (w *simulation) tell(format string, args ...any) {
	if w.trace != nil {
		w.trace("%12v %s", w.now, fmt.Sprintf(format, args...))
	}
}

func (w *simulation) at(d time.Duration, what func()) {
	w.order++
	heap.Push(&w.queue, happening{w.now + d, w.order, what})
}

func (w *simulation) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)+1))
}

// chance reports whether something goes wrong that does so with a probability.
func (w *simulation) chance(p float64) bool {
	return !w.calm && w.now < w.calmAt && w.rng.Float64() < p
}

func (w *simulation) trial(number int) wire.Trial { return w.cfg.Plan.Trials[number-1] }

func (w *simulation) node(worker int, name string) *node {
	for _, n := range w.nodes[worker] {
		if n.name == name {
			return n
		}
	}
	return nil
}

// spoilt reports whether an attempt breaks an acceptance rule, however it is judged.
func (w *simulation) spoilt(k wire.TrialKey) bool {
	return (w.seed*31+uint64(k.Trial)*17+uint64(k.Attempt)*7)%11 == 0
}

const (
	limit  = 3 * time.Hour
	holder = "run today"
)

// newSimulation draws a fleet and its mishaps, and starts.
func newSimulation(seed uint64, m *mutant) *simulation {
	w := drawn(seed, m)
	w.mishaps()
	w.start()
	return w
}

// drawn draws a fleet.
func drawn(seed uint64, m *mutant) *simulation {
	w := &simulation{seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), mutant: m, driving: map[int]wire.TrialKey{},
		calm: seed%16 == 0, slow: seed%32 >= 24 || seed%32 == 0,
		road: seed%3 == 0}
	w.calmAt = w.between(20*time.Second, 120*time.Second)
	names := []string{"a", "b", "c"}[:2+w.rng.IntN(2)]
	workers := 1 + w.rng.IntN(4)/3
	plan := wire.RunPlan{Run: "today", AttemptsMax: 1 + w.rng.IntN(3)}
	for i := range 2 + w.rng.IntN(2) {
		t := wire.Trial{Number: i + 1, Block: i + 1, Car: "a", Roadside: "b", Sender: "a", Receiver: "b",
			Relays: names[2:], DurationS: 2}
		t.Initiator = names[w.rng.IntN(2)]
		plan.Trials = append(plan.Trials, t)
	}
	if seed%64 == 0 { // a node that takes part in no trial
		names = append(slices.Clone(names), "z")
	}
	if seed%8 == 0 && workers == 1 {
		plan.Control = wire.ControlMesh
	}
	w.cfg = Config{Plan: plan, Has: func(int) bool { return true }, LookEvery: 2 * time.Second}
	w.archive = &archive{records: map[wire.TrialKey][]wire.Record{}, sealed: map[wire.TrialKey]bool{},
		answered: map[string]bool{}}
	w.checks = newChecks()
	for i := range workers {
		var nodes []*node
		for _, n := range names {
			nodes = append(nodes, &node{w: w, worker: i, name: n, up: true, verdicts: map[int][]wire.Verdict{}})
		}
		w.nodes = append(w.nodes, nodes)
		w.cfg.Workers = append(w.cfg.Workers, Worker{Nodes: names})
	}
	return w
}

// mishaps draws what goes wrong beside single calls.
func (w *simulation) mishaps() {
	if w.calm {
		return
	}
	for range w.rng.IntN(4) {
		w.at(w.between(0, w.calmAt), w.overrule)
	}
	for range w.rng.IntN(5) {
		nodes := w.nodes[w.rng.IntN(len(w.nodes))]
		n := nodes[w.rng.IntN(len(nodes))]
		at := w.between(0, w.calmAt)
		kind := w.rng.IntN(8)
		if len(w.nodes) > 1 {
			// Fields side by side are on the controller's own machine. A node that lost
			// its lease there would begin a trial that may be another field's.
			kind = 5
		}
		switch kind {
		case 0, 1, 2: // a cut control link, of one node or of all
			over := at + w.between(time.Second, 60*time.Second)
			cut := []*node{n}
			if w.rng.IntN(2) == 0 {
				cut = nodes
			}
			for _, n := range cut {
				w.at(at, func() { n.cut = true })
				w.at(over, func() {
					n.cut, w.whole = false, w.now
					w.collect(n)
				})
			}
		case 3, 4:
			w.at(at, n.restart)
		case 5:
			w.at(at, func() { n.mute = true })
		case 6: // another controller, that wants the node for itself
			w.at(at, func() { n.take("another", 5*time.Second) })
		case 7: // the field ends, and its nodes with it; or they are given another run, and keep their records
			spool := w.rng.IntN(2) == 0
			w.at(at, func() { w.forget(nodes, spool) })
		}
	}
	w.killIn = w.rng.IntN(150)
}

// forget replaces the nodes of a worker by new ones, which know nothing; with spool they are the
// old ones, which have their records still.
func (w *simulation) forget(nodes []*node, spool bool) {
	w.tell("nodes are replaced")
	if w.life%2 == 1 {
		w.kill() // a field ends with its controller
	}
	for _, n := range nodes {
		w.collect(n)
		w.lost(n, spool)
		n.life++
		n.up, n.loaded, n.started, n.cur, n.last = true, false, false, nil, nil
		n.verdicts, n.lease = map[int][]wire.Verdict{}, simLease{}
		if !spool {
			n.records = n.records[:n.copied]
		}
		n.did, w.replaced = nil, true
		w.leaseLost(n)
	}
}

// start starts a controller, which knows what the archive holds.
func (w *simulation) start() {
	w.life++
	w.ticking = 0
	cfg := w.cfg
	cfg.Decisions = slices.Clone(w.archive.decisions)
	w.lived()
	cfg.PullOnly = w.rng.IntN(4) == 0 && w.now < w.calmAt && !w.calm
	w.pulls = cfg.PullOnly
	w.mutant.configure(&cfg)
	w.engine = New(cfg)
	life := w.life
	decided := map[wire.TrialKey]bool{}
	for _, v := range w.archive.decisions {
		decided[v.TrialKey] = true
	}
	for _, s := range w.archive.said {
		if !w.archive.answered[s.Noted.ID] && !w.mutant.is("resume: what people decided is not recalled") {
			w.give(life, s)
		}
	}
	for _, k := range w.archive.attempts() {
		if decided[k] || w.mutant.is("resume: what the archive holds is not recalled") {
			continue
		}
		for _, r := range w.archive.records[k] {
			for i := range w.nodes {
				w.sighted(life, i, r)
			}
		}
	}
	w.give(life, Begin{})
}

func (a *archive) attempts() []wire.TrialKey {
	var out []wire.TrialKey
	for k := range a.records {
		if k.Trial == 0 { // between trials
			continue
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(x, y wire.TrialKey) int { return cmp.Or(x.Trial-y.Trial, x.Attempt-y.Attempt) })
	return out
}

func (w *simulation) sighted(life, worker int, r wire.Record) {
	k := wire.TrialKey{Trial: r.Trial, Attempt: r.Attempt}
	switch b := r.Body.(type) {
	case *wire.TrialState:
		w.give(life, Kept{worker, r.Node, k, *b})
	case *wire.Window:
		w.give(life, Opened{worker, r.Node, k, *b})
	}
}

// overrule has a person decide something, which the archive has a record of.
func (w *simulation) overrule() {
	k := wire.TrialKey{Trial: 1 + w.rng.IntN(len(w.cfg.Plan.Trials)), Attempt: w.rng.IntN(3)}
	n := wire.Noted{Note: []string{"accept", "repeat", "skip", "mark"}[w.rng.IntN(4)], By: "phone",
		ID: fmt.Sprint("note ", len(w.archive.said))}
	if w.life%2 == 1 && !w.leaving {
		w.tell("a person says %s of %v", n.Note, k)
		w.overruled++
		w.archive.said = append(w.archive.said, Said{k, n})
		w.give(w.life, Said{k, n})
	}
}

// leave ends the controller as a person does.
func (w *simulation) leave() {
	life := w.life
	w.at(5*time.Second, func() {
		if w.life == life {
			w.violated("the controller does not end when it is told to")
		}
	})
	w.at(0, func() {
		if w.life == life {
			w.leaving = true
			w.give(life, Leave{})
		}
	})
}

// kill ends the controller, and has it started again.
func (w *simulation) kill() {
	w.tell("the controller is killed")
	w.life++
	w.engine = nil
	if len(w.nodes) > 1 { // fields side by side end with their controller
		for _, nodes := range w.nodes {
			w.forget(nodes, false)
		}
	}
	w.killIn = 0
	if w.now < w.calmAt && w.rng.IntN(2) == 0 {
		w.killIn = 1 + w.rng.IntN(120)
	}
	w.at(w.between(200*time.Millisecond, 50*time.Second), w.start)
}

// give gives the engine an event, and does what it then asks for.
func (w *simulation) give(life int, ev Event) {
	if w.life != life || w.done {
		return
	}
	for _, ev := range w.mutant.events(w, ev) {
		for _, a := range w.engine.Step(time.Unix(0, int64(w.now)), ev) {
			for _, a := range w.mutant.actions(w, a) {
				if w.life != life || w.done {
					return
				}
				w.tell("%d %s: %T %+v", a.Worker, a.Node, a.Op, brief(a.Op))
				w.asked(a)
				w.perform(life, a)
				if w.life == life && w.killIn > 0 && !w.calm && !w.leaving {
					if w.killIn--; w.killIn == 0 && w.rng.IntN(4) == 0 {
						w.leave()
					} else if w.killIn == 0 {
						w.kill()
						return
					}
				}
			}
		}
	}
	if w.life != life || w.done {
		return
	}
	if next, wanted := w.engine.Next(); wanted {
		at := time.Duration(next.UnixNano())
		if w.ticking <= w.now || at < w.ticking {
			w.ticking = at
			w.at(max(at-w.now, 0), func() { w.give(life, Tick{}) })
		}
	}
}

// brief is an action without the trial that it is about.
func brief(op Op) any {
	switch op := op.(type) {
	case Judge:
		return op.Key
	case Settle:
		return op.Key
	case Clocks:
		return op.Key
	case Place:
		return wire.TrialKey{Trial: op.Trial.Number, Attempt: op.Attempt}
	case Show:
		return op.Phase + " " + op.Detail
	}
	return op
}

// perform does an action as the shell would, but things go wrong.
func (w *simulation) perform(life int, a Action) {
	if a.Node != "" {
		w.call(life, a, w.node(a.Worker, a.Node))
		return
	}
	answer := func(d time.Duration, make func() Answer) {
		survives := w.rng.IntN(2) == 0
		w.at(d, func() {
			if w.life != life && !survives {
				return // the controller was killed before it was written
			}
			ans := make()
			ans.ID = a.ID
			w.give(life, ans)
		})
	}
	soon := w.between(time.Millisecond, 30*time.Millisecond)
	switch op := a.Op.(type) {
	case Show, Log:
	case Quiet:
		answer(soon, func() Answer { return Answer{} })
	case Seal:
		w.archive.sealed[op.Key] = true
		w.journal = append(w.journal, model.Entry{Sealed: &op.Key})
	case Collect:
		for _, n := range w.nodes[a.Worker] {
			w.collect(n)
		}
	case Fail:
		if !w.leaving {
			w.failing(op)
			w.kill()
		}
	case Finished:
		if w.leaving || w.pulls || w.overruled > 0 && w.open() > 0 { // a person resumes it
			w.kill()
		} else {
			w.finished()
		}
	case Drive:
		answer(soon, func() Answer { w.drive(a.Worker); return Answer{} })
	case Decide:
		answer(soon, func() Answer { w.commit(op.Verdict); return Answer{} })
	case Note:
		answer(soon, func() Answer { w.archive.answered[op.NoteID] = true; return Answer{} })
	case WriteOff:
		answer(soon, func() Answer {
			st := op.State
			h := wire.Header{Node: "controller", Trial: op.Key.Trial, Attempt: op.Key.Attempt}
			w.archive.records[op.Key] = append(w.archive.records[op.Key], wire.Record{Header: h, Body: &st})
			return Answer{}
		})
	case ReadAttempts:
		answer(soon, func() Answer {
			var out Answer
			for _, k := range w.archive.attempts() {
				out.Attempts = append(out.Attempts, Attempt{k, w.archive.sealed[k]})
			}
			return out
		})
	case Judge:
		answer(soon, func() Answer { return Answer{Verdict: w.judge(op), Vouched: true} })
	case Place, Clocks, Settle, Captures:
		answer(soon, func() Answer { return Answer{} })
	default:
		w.violated("an action that no shell does: %T", op)
	}
}

func (w *simulation) judge(op Judge) wire.Verdict {
	v := verdict.Judge(op.Trial, op.Key.Attempt, w.archive.records[op.Key], verdict.Scope{Final: true})
	if v.Outcome == wire.Accepted && w.spoilt(op.Key) {
		v.Outcome, v.Reason = wire.Rejected, wire.Reason{Code: wire.ReasonSpeed}
	}
	return v
}

// run lets time pass until the run is over, and returns what was wrong.
func (w *simulation) run() string {
	for len(w.queue) > 0 && !w.done && w.failure == "" {
		h := heap.Pop(&w.queue).(happening)
		w.now = h.at
		if w.now > limit {
			return fmt.Sprintf("the run has not ended after %v", limit)
		}
		h.what()
	}
	if w.failure == "" && !w.done {
		w.violated("nothing goes on, and the run has not ended")
	}
	if w.failure == "" {
		w.atEnd()
	}
	return w.failure
}
