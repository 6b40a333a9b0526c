package engine

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/model"
)

// checks is what a simulation knows of a run that the run does not, and the first
// promise that was found broken.
type checks struct {
	failure   string
	sent      time.Duration // when the call that is being received was made
	began     time.Duration // when the controller last did
	whole     time.Duration // since when the last cut is over
	leaving   bool          // it has been told to end
	pulls     bool          // and is to drive nothing
	overruled int           // times that a person did
	versions  map[wire.TrialKey][]wire.Verdict
	committed map[wire.TrialKey]time.Duration
	known     map[wire.TrialKey]time.Duration // since when the archive has a node's end of an attempt
	placed    map[int]wire.TrialKey
	deciding  map[wire.TrialKey]time.Duration
	released  map[*node]bool
	kept      map[wire.TrialKey]map[*node]keptTruth
	forgot    map[wire.TrialKey]bool // not known to have been made to its end
	leases    map[*node][]porcupine.Operation
	decisions []porcupine.Operation
	journal   []model.Entry
	replaced  bool                   // nodes were, by others with empty disks
	spoke     map[wire.TrialKey]bool // the controller did in the window, over the mesh
}

type keptTruth struct {
	outcome  wire.Outcome
	recorded bool
	at       time.Duration
}

func newChecks() checks {
	return checks{committed: map[wire.TrialKey]time.Duration{}, known: map[wire.TrialKey]time.Duration{},
		versions: map[wire.TrialKey][]wire.Verdict{}, kept: map[wire.TrialKey]map[*node]keptTruth{},
		forgot: map[wire.TrialKey]bool{}, leases: map[*node][]porcupine.Operation{}}
}

func (w *simulation) violated(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf("after %v: ", w.now) + fmt.Sprintf(format, args...)
	}
}

// lived begins a controller's life.
func (w *simulation) lived() {
	w.leaving, w.began, w.placed = false, w.now, map[int]wire.TrialKey{}
	w.spoke = map[wire.TrialKey]bool{}
	w.deciding, w.released = map[wire.TrialKey]time.Duration{}, map[*node]bool{}
}

func (w *simulation) decision(k wire.TrialKey) (wire.Verdict, bool) {
	for _, v := range w.archive.decisions {
		if v.TrialKey == k {
			return v, true
		}
	}
	return wire.Verdict{}, false
}

func (w *simulation) decided(trial int) (out []wire.Verdict) {
	for _, v := range w.archive.decisions {
		if v.Trial == trial {
			out = append(out, v)
		}
	}
	return out
}

// asked checks an action against what is true.
func (w *simulation) asked(a Action) {
	if n := a.Node; n != "" && w.cfg.Plan.Control == wire.ControlMesh {
		w.speaking(a)
	}
	switch op := a.Op.(type) {
	case Place:
		k := wire.TrialKey{Trial: op.Trial.Number, Attempt: op.Attempt}
		if want, more := verdict.Next(w.cfg.Plan.AttemptsMax, w.decided(k.Trial)); !more || want != k.Attempt {
			w.violated("attempt %v is made, and %d is next (more %v)", k, want, more)
		}
		if w.leaving || w.pulls {
			w.violated("attempt %v is begun by a controller that is to begin none", k)
		}
		for other, at := range w.placed {
			if other != a.Worker && at.Trial == k.Trial {
				w.violated("trial %d is made by two workers at once", k.Trial)
			}
		}
		w.placed[a.Worker] = k
	case Arm:
		w.arming(a, op)
	case Drive:
		if n := w.node(a.Worker, w.trial(w.placed[a.Worker].Trial).Initiator); !n.knows(w.placed[a.Worker]) {
			w.violated("the car sets off before %v is armed", n)
		}
	case Judge:
		for _, n := range w.nodes[a.Worker] {
			if w.calm && !n.leased() {
				w.violated("the lease of %v has run out", n)
			}
			if n.cur != nil && n.cur.key == op.Key && n.cur.direct {
				w.violated("attempt %v is judged while %v is at it", op.Key, n)
			}
		}
	case Decide:
		k, byRules := op.Verdict.TrialKey, op.Verdict.Word == nil && op.Verdict.Outcome == wire.Accepted
		if ought := w.judge(Judge{Trial: w.trial(k.Trial), Key: k}); byRules && ought.Outcome != wire.Accepted {
			w.violated("attempt %v is accepted, and is %s (%s)", k, ought.Outcome, ought.Reason)
		}
		if byRules && w.spoke[k] {
			w.violated("attempt %v is accepted, and the controller spoke in its window", k)
		}
		w.deciding[op.Verdict.TrialKey] = w.now
		if w.placed[a.Worker] == op.Verdict.TrialKey {
			delete(w.placed, a.Worker)
		}
	case Renew:
		if n := w.node(a.Worker, a.Node); w.released[n] || op.TTL != w.ttl() {
			w.violated("the lease of %v is renewed for %v (given up: %v)", n, op.TTL, w.released[n])
		}
	case Release:
		w.released[w.node(a.Worker, a.Node)] = true
	case Tell:
		w.durable(op.Verdicts)
	case WriteOff:
		w.writtenOff(a.Worker, op)
	case Seal:
		if _, is := w.decision(op.Key); !is {
			w.violated("attempt %v is sealed, and not decided", op.Key)
		}
	}
}

func (w *simulation) ttl() time.Duration {
	if w.cfg.Plan.Control == wire.ControlMesh {
		return meshLease
	}
	return leaseTTL
}

// speaking checks that the controller says nothing over the mesh while a window is open; where something goes wrong,
// that no attempt of its own is accepted in whose window it did.
func (w *simulation) speaking(a Action) {
	for _, n := range w.nodes[a.Worker] {
		if c := n.cur; c != nil && w.now < c.closes && w.now > c.closes-2*time.Second {
			if w.calm {
				w.violated("%T is sent to %s while the window of %v is open", a.Op, a.Node, c.key)
			}
			w.spoke[c.key] = w.spoke[c.key] || c.key == w.placed[a.Worker]
		}
	}
}

// knows reports whether a node has been armed for an attempt; one that is just
// being restarted will say so.
func (n *node) knows(k wire.TrialKey) bool {
	_, had := n.verdictOn(k)
	return !n.up || had || n.cur != nil && n.cur.key == k
}

func (w *simulation) arming(a Action, op Arm) {
	t := w.trial(op.Key.Trial)
	if op.Key != w.placed[a.Worker] {
		w.violated("attempt %v is armed, and the car stands for %v", op.Key, w.placed[a.Worker])
	}
	if a.Node != t.Initiator {
		return
	}
	for _, name := range t.Nodes()[1:] {
		if n := w.node(a.Worker, name); !n.knows(op.Key) {
			w.violated("the initiator is armed for %v before %v", op.Key, n)
		}
	}
}

func (w *simulation) durable(vs []wire.Verdict) {
	for _, v := range vs {
		same := func(had wire.Verdict) bool { return reflect.DeepEqual(had, v) }
		if !slices.ContainsFunc(w.versions[v.TrialKey], same) {
			w.violated("a node is told %+v, and the archive has had %+v", v, w.versions[v.TrialKey])
		}
	}
}

// told checks what reaches a node.
func (w *simulation) told(n *node, vs []wire.Verdict) {
	w.durable(vs)
	for _, v := range vs {
		if now, _ := w.decision(v.TrialKey); v.Word != nil || now.Word != nil {
			continue // the register is written once
		}
		w.decisions = append(w.decisions, porcupine.Operation{Input: decisionOp{v.TrialKey, "", true},
			Output: outcome(v), Call: int64(w.now), Return: int64(w.now) + 1})
	}
}

func (w *simulation) writtenOff(worker int, op WriteOff) {
	n := w.node(worker, op.Node)
	if n.cur != nil && n.cur.key == op.Key && n.cur.direct {
		w.violated("%v is written off from %v, and is at it", n, op.Key)
	}
	for _, r := range n.records[n.copied:] {
		if _, state := r.Body.(*wire.TrialState); state && r.Trial == op.Key.Trial && r.Attempt == op.Key.Attempt {
			w.violated("%v is written off from %v, and its record is on its way", n, op.Key)
		}
	}
}

func (w *simulation) drive(worker int) { w.driving[worker] = w.placed[worker] }

// commit makes a decision durable, as the archive does.
func (w *simulation) commit(v wire.Verdict) {
	if had, is := w.decision(v.TrialKey); is && v.Word == nil && !reflect.DeepEqual(had, v) {
		w.violated("attempt %v is decided as %s, and was %s", v.TrialKey, v.Outcome, had.Outcome)
		return
	}
	if had, is := w.decision(v.TrialKey); !is || !reflect.DeepEqual(had, v) {
		w.journal = append(w.journal, model.Entry{Verdict: &v})
	}
	w.archive.decisions = withVerdict(w.archive.decisions, v)
	w.versions[v.TrialKey] = append(w.versions[v.TrialKey], v)
	if v.Word != nil {
		w.archive.answered[v.Word.NoteID] = true
	} else {
		w.committed[v.TrialKey] = w.now
		w.decisions = append(w.decisions, porcupine.Operation{Input: decisionOp{v.TrialKey, outcome(v), false},
			Call: int64(w.deciding[v.TrialKey]), Return: int64(w.now)})
	}
	accepted := 0
	for _, had := range w.decided(v.Trial) {
		if had.Outcome == wire.Accepted {
			accepted++
		}
	}
	if accepted > 1 {
		w.violated("trial %d is accepted %d times", v.Trial, accepted)
	}
}

func (w *simulation) keptSeen(n *node, k wire.TrialKey, o wire.Outcome, recorded bool) {
	if w.kept[k] == nil {
		w.kept[k] = map[*node]keptTruth{}
	}
	w.kept[k][n] = keptTruth{o, recorded, w.now}
}

// lost notes that a node forgets: what is not decided of what it did cannot be, unless all nodes
// have recorded its end, and keep their records.
func (w *simulation) lost(n *node, spool bool) {
	for k, by := range w.kept {
		whole := spool && len(by) == len(w.trial(k.Trial).Nodes())
		for _, truth := range by {
			whole = whole && truth.recorded
		}
		if _, is := w.decision(k); !is && !whole {
			w.forgot[k] = true
			delete(w.kept[k], n)
		}
	}
}

// forgotten checks that nobody was there to tell a node that its attempt has ended.
func (w *simulation) forgotten(n *node, a *simAttempt) {
	const enough = 45 * time.Second
	since, is := w.known[a.key]
	if is && a.direct && w.life%2 == 1 && min(w.now-w.began, w.now-since, w.now-w.whole) > enough {
		w.violated("%v waits for GO of %v, of which the archive has an end since %v", n, a.key, since)
	}
}

func (w *simulation) failing(f Fail) {
	if w.calm || w.now > w.calmAt+3*time.Minute {
		w.violated("the run fails, and nothing is wrong: %s: %v", f.Doing, f.Err)
	}
}

// open is the first trial that has attempts to come; 0 for none.
func (w *simulation) open() int {
	for _, t := range w.cfg.Plan.Trials {
		if _, more := verdict.Next(w.cfg.Plan.AttemptsMax, w.decided(t.Number)); more {
			return t.Number
		}
	}
	return 0
}

func (w *simulation) finished() {
	w.done = true
	if trial := w.open(); trial > 0 {
		w.violated("the run ends, and trial %d is not done", trial)
	}
}

// atEnd checks what is to be true when a run is over.
func (w *simulation) atEnd() {
	for _, nodes := range w.nodes {
		for _, n := range nodes {
			switch {
			case n.started && w.calm:
				w.violated("%v continues a run that is over", n)
			case n.leased() && n.lease.holder == holder && w.calm:
				w.violated("%v is left leased", n)
			case n.copied < len(n.records) && w.calm:
				w.violated("%d records of %v are not collected", len(n.records)-n.copied, n)
			}
		}
	}
	for k, by := range w.kept {
		if len(by) > 0 {
			w.keptAtEnd(k, by)
		}
	}
	for _, k := range w.archive.attempts() {
		if v, is := w.decision(k); !is || !w.archive.sealed[k] && v.Word == nil && w.known[k] < w.committed[k] {
			w.violated("attempt %v is in the archive: decided %v, sealed %v", k, is, w.archive.sealed[k])
		}
	}
	for _, t := range w.cfg.Plan.Trials {
		vs := w.decided(t.Number)
		spoilt := w.spoilt(wire.TrialKey{Trial: t.Number, Attempt: 1})
		if w.calm && !spoilt && (len(vs) != 1 || vs[0].Outcome != wire.Accepted) {
			w.violated("nothing went wrong, and trial %d is %+v", t.Number, vs)
		}
	}
	for _, s := range w.archive.said {
		if _, is := w.decision(s.Key); is && s.Noted.Note != "mark" && !w.archive.answered[s.Noted.ID] {
			w.violated("a person's %s of attempt %v has no answer", s.Noted.Note, s.Key)
		}
	}
	w.histories()
	w.traces()
}

// keptAtEnd checks that what nodes did is decided, and that what they all
// measured to its end counts.
func (w *simulation) keptAtEnd(k wire.TrialKey, by map[*node]keptTruth) {
	v, is := w.decision(k)
	if !is {
		w.violated("attempt %v was made, and is not decided", k)
		return
	}
	whole := len(by) == len(w.trial(k.Trial).Nodes()) && !w.forgot[k] && !w.spoilt(k)
	for _, truth := range by {
		whole = whole && truth.at < w.committed[k] && truth.recorded && truth.outcome == wire.Accepted
	}
	switch {
	case v.Reason.Code == wire.ReasonSuperseded: // a person accepted another before
		return
	case v.Reason.Code == wire.ReasonNotQuiet && w.cfg.Plan.Control == wire.ControlMesh && !w.calm:
		return
	}
	if whole && v.Word == nil && v.Outcome != wire.Accepted {
		w.violated("attempt %v was measured by all, and is %s (%s)", k, v.Outcome, v.Reason)
	}
}

// traces holds what the nodes did, and what was decided, against the model of the
// protocol. The decisions are not where nodes of several workers have the same names, or
// where what nodes measured is gone with their disks.
func (w *simulation) traces() {
	for _, nodes := range w.nodes {
		t := model.Trace{Trials: w.cfg.Plan.Trials, Nodes: map[string][]model.Did{}}
		if len(w.nodes) == 1 && !w.replaced {
			t.Journal, t.Over = w.journal, true
		}
		for _, n := range nodes {
			t.Nodes[n.name] = n.did
		}
		if err := t.Check(); err != nil {
			w.violated("%v", err)
		}
	}
}

// leaseOp is what somebody wants of a node's lease.
type leaseOp struct {
	holder string
	gives  bool // up
	lapses bool
}

func (w *simulation) leaseSeen(n *node, holder string, ttl time.Duration, granted bool) {
	if n.lease.holder != "" && !n.leased() {
		w.lease(n, leaseOp{lapses: true}, true)
	}
	w.lease(n, leaseOp{holder: holder, gives: ttl <= 0}, granted)
}

func (w *simulation) leaseLost(n *node) { w.lease(n, leaseOp{lapses: true}, true) }

func (w *simulation) lease(n *node, op leaseOp, granted bool) {
	call := w.sent
	if op.lapses || op.holder != holder {
		call = w.now
	}
	w.leases[n] = append(w.leases[n], porcupine.Operation{Input: op, Output: granted,
		Call: int64(call), Return: int64(w.now)})
}

var leaseModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		held, op := state.(string), input.(leaseOp)
		if op.lapses {
			return true, ""
		}
		free := held == "" || held == op.holder
		switch {
		case output.(bool) != free:
			return false, held
		case !free:
			return true, held
		case op.gives:
			return true, ""
		}
		return true, op.holder
	},
}

// decisionOp writes a decision, or reads it at a node.
type decisionOp struct {
	key     wire.TrialKey
	outcome string
	reads   bool
}

func outcome(v wire.Verdict) string { return string(v.Outcome) + " " + v.Reason.String() }

var decisionModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[wire.TrialKey][]porcupine.Operation{}
		for _, op := range history {
			k := op.Input.(decisionOp).key
			by[k] = append(by[k], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		is, op := state.(string), input.(decisionOp)
		if op.reads {
			return is == output.(string), is
		}
		return is == "" || is == op.outcome, op.outcome
	},
}

// histories checks that leases and decisions are as if each had happened at one
// moment between its beginning and its end.
func (w *simulation) histories() {
	if !porcupine.CheckOperations(decisionModel, w.decisions) {
		w.violated("the history of decisions is not linearizable: %+v", w.decisions)
	}
	for n, ops := range w.leases {
		if !porcupine.CheckOperations(leaseModel, ops) {
			w.violated("the history of the lease of %v is not linearizable: %+v", n, ops)
		}
	}
}
