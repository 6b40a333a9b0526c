package model

import (
	"cmp"
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Archived returns the trace of a run that is in an archive.
func Archived(a *archive.Archive, over bool) (Trace, error) {
	t := Trace{Trials: a.Info().Plan.Trials, Nodes: map[string][]Did{}, Over: over,
		WrittenOff: map[string][]wire.TrialKey{}}
	journal, err := a.Journal()
	if err != nil {
		return t, err
	}
	for _, e := range journal {
		if e.Verdict != nil || e.Trial != nil {
			t.Journal = append(t.Journal, Entry{Verdict: e.Verdict, Sealed: e.Trial})
		}
	}
	attempts, err := a.Trials()
	if err != nil {
		return t, err
	}
	lives := map[string][]numbered{}
	for _, at := range attempts {
		for r, err := range a.Records(at.Trial, at.Attempt) {
			if err != nil {
				return t, fmt.Errorf("trial %d attempt %d: %w", at.Trial, at.Attempt, err)
			}
			d, is := did(r)
			switch {
			case !is:
			case r.Node == "controller": // of a node that has no record of its own
				for _, name := range partakers(t.Trials, at.Trial) {
					t.WrittenOff[name] = append(t.WrittenOff[name], d.Key)
				}
			default:
				lives[r.Node] = append(lives[r.Node], numbered{r.Epoch, r.Seq, r.TBootNs, d})
			}
		}
	}
	for name, all := range lives {
		slices.SortStableFunc(all, func(x, y numbered) int {
			if x.epoch == y.epoch {
				return cmp.Compare(x.seq, y.seq)
			}
			return cmp.Compare(x.tBootNs, y.tBootNs)
		})
		for _, n := range all {
			t.Nodes[name] = append(t.Nodes[name], n.did)
		}
	}
	return t, nil
}

func partakers(trials []wire.Trial, number int) []string {
	for _, t := range trials {
		if t.Number == number {
			return t.Nodes()
		}
	}
	return nil
}

type numbered struct {
	epoch   string
	seq     uint64
	tBootNs int64
	did     Did
}

// did returns what a record says that a node did, if it says anything of the kind.
func did(r wire.Record) (Did, bool) {
	d := Did{Key: wire.TrialKey{Trial: r.Trial, Attempt: r.Attempt}}
	switch b := r.Body.(type) {
	case *wire.TrialState:
		d.State, d.Outcome, d.Code = b.State, b.Outcome, b.Reason.Code
	case *wire.Window:
		d.Opened = true
	case *wire.HostChange:
		if b.Scope != "trial" {
			return d, false
		}
		d.Made = map[string]int{"applied": 1, "undone": -1}[b.Action]
	default:
		return d, false
	}
	return d, true
}
