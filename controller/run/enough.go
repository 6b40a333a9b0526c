package run

import (
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	enough "fieldmesh.dev/fieldmesh/controller/stopping"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// looking is what the run knows of whether it has driven enough. It is made
// anew from the archive by a run that is gone on with: the same records give
// the same looks.
type looking struct {
	taken map[int]bool               // after how many blocks it has looked
	mbps  map[wire.TrialKey]*float64 // what accepted attempts measured
}

// look stops the run when its campaign has what it asked for. The caller holds
// r.mu, and verdicts are those on every trial.
func (r *Runner) look(verdicts map[int][]wire.Verdict) error {
	e := r.Archive.Info().Enough
	if e == nil || r.Archive.Stopped() != nil {
		return nil
	}
	if r.looking.taken == nil {
		r.looking = looking{map[int]bool{}, map[wire.TrialKey]*float64{}}
	}
	for _, b := range enough.Due(*e, r.Plan, r.driven(verdicts)) {
		if r.looking.taken[b] {
			continue
		}
		if err := r.measure(verdicts); err != nil {
			return fmt.Errorf("look whether %d blocks are enough: %w", b, err)
		}
		look := enough.Take(*e, r.Plan, b, func(trial int) *float64 { return r.measured(verdicts[trial]) })
		r.looking.taken[b] = true
		switch {
		case look.Enough:
			return r.stop(b, "precise enough: "+look.String())
		case b == enough.Plan(*e, r.Plan).Last:
			return r.stop(b, "the most blocks that the campaign has are driven, and the precision was not reached: "+look.String())
		}
		r.say("not enough: " + look.String())
	}
	return nil
}

// measure reads what every accepted attempt measured that is not known yet.
func (r *Runner) measure(verdicts map[int][]wire.Verdict) error {
	for _, t := range r.Plan.Trials {
		v, ok := accepted(verdicts[t.Number])
		if _, known := r.looking.mbps[v.TrialKey]; !ok || known {
			continue
		}
		at, err := metrics.Load(r.Archive, v.TrialKey)
		if err != nil {
			return err
		}
		_, r.looking.mbps[v.TrialKey] = metrics.Measured(t, at.Rows())
	}
	return nil
}

func (r *Runner) measured(verdicts []wire.Verdict) *float64 {
	v, ok := accepted(verdicts)
	if !ok {
		return nil
	}
	return r.looking.mbps[v.TrialKey]
}

// accepted is the verdict by which a trial counts.
func accepted(verdicts []wire.Verdict) (wire.Verdict, bool) {
	i := slices.IndexFunc(verdicts, func(v wire.Verdict) bool { return v.Outcome == verdict.Accepted })
	if i < 0 {
		return wire.Verdict{}, false
	}
	return verdicts[i], true
}

func (r *Runner) stop(blocks int, reason string) error {
	if err := r.Archive.StopAfter(archive.Stop{Blocks: blocks, Reason: reason}); err != nil {
		return err
	}
	r.say(reason)
	return nil
}

func (r *Runner) say(text string) { r.show(Progress{Phase: "looked", Detail: text}) }

// early tells whether a trial is of a block beyond one at whose end the run is
// to look, while other lanes are still at that block: it may not be wanted.
func (r *Runner) early(t wire.Trial, verdicts map[int][]wire.Verdict) bool {
	e := r.Archive.Info().Enough
	if e == nil || t.Pass != "" || len(r.taken) == 0 || r.Archive.Stopped() != nil {
		return false
	}
	driven := r.driven(verdicts)
	return len(enough.Due(*e, r.Plan, t.Block-1)) > len(enough.Due(*e, r.Plan, driven))
}

// driven is how many blocks are decided to the last trial.
func (r *Runner) driven(verdicts map[int][]wire.Verdict) int {
	return enough.Driven(r.Plan, func(trial int) bool {
		_, more := verdict.Next(r.Plan.AttemptsMax, verdicts[trial])
		return more || r.taken[trial]
	})
}
