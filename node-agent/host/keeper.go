package host

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// keeper makes changes and takes them back; the journal is its memory. What
// it knows, the next life of the process knows too.
type keeper struct {
	mu      sync.Mutex
	system  system
	journal *journal
	policy  change.Policy
	log     *slog.Logger
	pending []entry           // in the order in which they were made
	failed  map[uint64]string // why the undo of a pending change failed last
	damage  []string          // of the journal, as the newest restore of everything found it: what nobody can undo
	told    bool              // a report had the damage
	nextID  uint64
	hand    byHand
}

// pendingMost bounds how long putting everything back takes: 2,500 routes took 6 s.
// A run and a trial change no more than a call each holds.
const pendingMost = 4 * maxChanges

func newKeeper(s system, j *journal, r replayed, p change.Policy, log *slog.Logger) *keeper {
	for _, what := range r.damage {
		log.Error("a change may not be undone: its line of the journal cannot be used", "reason", what)
	}
	if j.broken != nil {
		log.Error("no change can be made: the journal takes no more", "error", j.broken)
	}
	return &keeper{
		system: s, journal: j, policy: p, log: log,
		pending: r.pending, failed: map[uint64]string{}, damage: r.damage, nextID: r.lastID + 1,
	}
}

// apply makes changes, all or none. A change that is in force in this scope
// already is made good again but not listed.
func (k *keeper) apply(scope string, changes []change.Change) ([]wire.HostChange, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if scope != ScopeRun && scope != ScopeTrial {
		return nil, fmt.Errorf("scope %q is neither %s nor %s", scope, ScopeRun, ScopeTrial)
	}
	fresh := 0
	for _, c := range changes {
		if refused := k.policy.Check(c); refused != nil {
			return nil, refused
		}
		if refused := k.checkNesting(scope, c); refused != nil {
			return nil, refused
		}
		if k.find(scope, c) < 0 {
			fresh++
		}
		if len(k.pending)+fresh > pendingMost {
			return nil, &change.Refused{Change: c.String(), Reason: fmt.Sprintf(
				"%d changes are in force, and with this call's there would be more than %d", len(k.pending),
				pendingMost), Cure: "restore first"}
		}
	}
	var made []wire.HostChange
	first := k.nextID
	for _, c := range changes {
		fresh, err := k.applyOne(scope, c)
		if err != nil {
			return nil, k.rollBack(first, c, err)
		}
		if fresh {
			made = append(made, wire.HostChange{Scope: scope, Action: "applied", What: c.String()})
		}
	}
	return made, nil
}

// checkNesting keeps the scopes nested: undone before its run, a trial's
// change must not have been made before it.
func (k *keeper) checkNesting(scope string, c change.Change) *change.Refused {
	if scope != ScopeRun || k.find(scope, c) >= 0 {
		return nil
	}
	for _, e := range k.pending {
		if e.Scope == ScopeTrial && k.inForce(e) {
			return &change.Refused{
				Change: c.String(),
				Reason: fmt.Sprintf("a trial's changes are in force (%s), and a run's must be made before them",
					e.Change),
				Cure: "restore the trial first",
			}
		}
	}
	return nil
}

// inForce reports whether a pending change is not undone, nor was tried to be in this life.
func (k *keeper) inForce(e entry) bool { return !e.undone && k.failed[e.ID] == "" }

// find gives the place of an identical pending change that is in force here, -1 when there is none.
func (k *keeper) find(scope string, c change.Change) int {
	return slices.IndexFunc(k.pending, func(e entry) bool {
		return e.Scope == scope && !e.undone && reflect.DeepEqual(e.Change.Change, c) && k.system.Here(e.Undo)
	})
}

func (k *keeper) applyOne(scope string, c change.Change) (fresh bool, err error) {
	at := k.find(scope, c)
	void := at >= 0 && k.system.Void(k.pending[at].Undo)
	if _, first := c.(change.Aside); void && first {
		// Whoever has the interface gets it back after all that is made on it: the new undo takes the old one's place.
		return true, k.make(at, k.pending[at].ID, scope, c)
	}
	if void {
		// The radio was unplugged and is plugged in again: that it is changed,
		// and how it was, is to be known of the new one.
		if err := k.journal.append(entry{ID: k.pending[at].ID, State: stateUndone,
			Note: "it has gone by itself"}); err != nil {
			return false, err
		}
		k.log.Info("gone by itself, made again", "change", c.String())
		k.pending, at = slices.Delete(k.pending, at, at+1), -1
	}
	if at >= 0 {
		for _, later := range k.pending[at+1:] {
			if later.Change.Target() == c.Target() && k.inForce(later) {
				return false, nil // overridden since; making it again would undo that
			}
		}
		delete(k.failed, k.pending[at].ID)
		return false, k.system.Apply(c, k.pending[at].Undo)
	}
	return true, k.make(len(k.pending), k.nextID, scope, c)
}

// make makes a change that has a place among the pending ones.
func (k *keeper) make(at int, id uint64, scope string, c change.Change) error {
	u, err := k.system.Prepare(id, c)
	if err != nil {
		return err
	}
	e := entry{ID: id, State: statePrepared, Scope: scope, Change: change.Boxed{Change: c}, Undo: u}
	if err := k.journal.append(e); err != nil {
		return err
	}
	k.nextID = max(k.nextID, id+1)
	k.pending = slices.Replace(k.pending, at, min(at+1, len(k.pending)), e)
	delete(k.failed, id)
	return k.system.Apply(c, u)
}

// rollBack undoes what a failed call has changed so far.
func (k *keeper) rollBack(first uint64, c change.Change, cause error) error {
	report := k.undo(func(e entry) bool { return e.ID >= first })
	if len(report.Failed) > 0 {
		return fmt.Errorf("apply %s: %w; taking the call's other changes back failed too: %v", c, cause, report.Failed)
	}
	var refused *change.Refused
	if errors.As(cause, &refused) {
		return refused
	}
	return fmt.Errorf("apply %s: %w; nothing of the call is left in force", c, cause)
}

// restore undoes a scope and those inside it: "trial", or "run" and "" for
// everything.
func (k *keeper) restore(scope string) (wire.RestoreReport, error) {
	if scope != "" && scope != ScopeRun && scope != ScopeTrial {
		return wire.RestoreReport{}, fmt.Errorf("scope %q is neither %s nor %s nor empty", scope, ScopeRun, ScopeTrial)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var newestOfRun uint64
	for _, e := range k.pending {
		if e.Scope == ScopeRun {
			newestOfRun = e.ID
		}
	}
	report := k.undo(func(e entry) bool {
		// Undone again after a trial, it would write over what the run has changed since.
		return scope != ScopeTrial || e.Scope == ScopeTrial && (!e.undone || e.ID > newestOfRun)
	})
	if scope != ScopeTrial {
		k.damage = k.journal.damage()
	}
	if scope != ScopeTrial || !k.told { // whose it was is not known: not each later trial's
		report.Failed, report.Damaged, k.told = append(report.Failed, k.damage...), len(k.damage), true
	}
	return report, nil
}

// restoreIf undoes everything if, when its turn comes, that is still wanted.
func (k *keeper) restoreIf(wanted func() bool) wire.RestoreReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !wanted() || len(k.pending) == 0 {
		return wire.RestoreReport{}
	}
	return k.undo(func(entry) bool { return true })
}

// undo takes back, newest first. What fails is tried once more after the
// others, for an older undo may bring back what it needs. But it remembers what
// the older changes had made: they are undone again after it, now or another time, and
// not before, for somebody may have made changes of his own meanwhile. Those that this call has undone are undone
// again also where it fails again: it may have done a part of its work.
func (k *keeper) undo(which func(entry) bool) wire.RestoreReport {
	report := wire.RestoreReport{Undone: []string{}, Failed: []string{}}
	now := map[uint64]bool{} // undone by this call
	for range 2 {
		var left []entry
		failed, again := false, false
		for i := len(k.pending) - 1; i >= 0; i-- {
			e := k.pending[i]
			if which(e) && (!e.undone || again || !failed || now[e.ID]) {
				fresh := !e.undone
				note, err := k.revert(&e)
				again = again || fresh && err == nil
				now[e.ID] = now[e.ID] || fresh && err == nil
				failed = failed || err != nil
				if !failed {
					k.noteUndone(e, note, &report)
					continue
				}
			}
			left = append(left, e)
		}
		slices.Reverse(left)
		k.pending = left
		if !failed {
			break
		}
	}
	for _, e := range k.pending {
		switch reason := k.failed[e.ID]; {
		case !which(e):
		case e.undone && !now[e.ID]:
		case e.undone:
			report.Undone = append(report.Undone, e.Change.String())
			k.record(entry{ID: e.ID, State: stateReverted}, &report)
		default:
			report.Failed = append(report.Failed, fmt.Sprintf("%s: %s", e.Change, reason))
			k.log.Error("change is not undone", "change", e.Change.String(), "reason", reason)
		}
	}
	k.settle(&report)
	return report
}

func (k *keeper) revert(e *entry) (note string, err error) {
	if note, err = k.system.Revert(e.Undo); err != nil {
		k.failed[e.ID] = err.Error()
	} else {
		delete(k.failed, e.ID)
	}
	e.undone = err == nil
	return note, err
}

func (k *keeper) noteUndone(e entry, note string, report *wire.RestoreReport) {
	what := e.Change.String()
	if note != "" {
		what += " (" + note + ")"
	}
	report.Undone = append(report.Undone, what)
	k.log.Info("undone", "scope", e.Scope, "change", what)
	k.record(entry{ID: e.ID, State: stateUndone, Note: note}, report)
}

// record notes an undo. After one that cannot be noted none is: the next start undoes that one again, and those that
// came after it have to be undone again then.
func (k *keeper) record(e entry, report *wire.RestoreReport) {
	if len(report.Unrecorded) > 0 {
		return
	}
	if err := k.journal.append(e); err != nil {
		report.Unrecorded = append(report.Unrecorded, err.Error())
		k.log.Error("undo is not recorded", "id", e.ID, "error", err)
	}
}

// settle empties the journal when nothing is pending: then it need not say what was undone.
func (k *keeper) settle(report *wire.RestoreReport) {
	if len(k.pending) > 0 {
		return
	}
	report.Unrecorded = nil
	if err := k.journal.clear(); err != nil {
		report.Unrecorded = append(report.Unrecorded, err.Error())
		k.log.Error("journal is not emptied", "error", err)
		return
	}
	k.nextID = 1
}

// status lists what is in force, and why what should be undone is not.
func (k *keeper) status() wire.HostStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := wire.HostStatus{Reached: true, Pending: []string{}, ByHand: k.hand.word}
	for _, e := range k.pending {
		if e.undone {
			continue
		}
		s.Pending = append(s.Pending, e.Change.String())
		if reason, failed := k.failed[e.ID]; failed {
			s.Failed = append(s.Failed, fmt.Sprintf("%s: %s", e.Change, reason))
		}
	}
	s.Failed, s.Damaged = append(s.Failed, k.damage...), len(k.damage)
	return s
}

// The two scopes of a change. They nest: what a trial changed is undone before
// what its run changed.
const (
	ScopeRun   = "run"   // kept between trials
	ScopeTrial = "trial" // undone after each trial
)

// system is the machine as the keeper sees it: a change.Kernel in production.
type system interface {
	Prepare(id uint64, c change.Change) (change.Undo, error)
	Apply(c change.Change, u change.Undo) error
	Revert(u change.Undo) (note string, err error)
	Void(u change.Undo) bool
	Here(u change.Undo) bool
}
