package run

import (
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Reopening returns the verdicts that reopen trials that were given up, and writes nothing. Once they are decided, each
// trial gets as many attempts as the plan gives one, beside those that it had, and the journal has a person's word on
// its newest attempt. It is an error unless every trial can be reopened; one that has attempts left is open already.
func Reopening(a *archive.Archive, trials []int, by, why string) ([]wire.Verdict, error) {
	verdicts := map[int][]wire.Verdict{}
	for _, v := range a.Decisions() {
		verdicts[v.Trial] = append(verdicts[v.Trial], v)
	}
	var reopened []wire.Verdict
	for _, n := range slices.Compact(slices.Sorted(slices.Values(trials))) {
		t, planned := a.Trial(n)
		_, more := verdict.Next(a.Info().Plan.AttemptsMax, verdicts[n])
		switch {
		case !planned:
			return nil, fmt.Errorf("retry trial %d: the run has trials 1 to %d", n, len(a.Info().Plan.Trials))
		case !a.Drives(t):
			return nil, fmt.Errorf("retry trial %d: this run does not drive it: it is another shard's, or of a block "+
				"after that which was enough", n)
		case more:
			continue
		}
		if isAccepted(verdicts[n]) {
			return nil, fmt.Errorf("retry trial %d: it was accepted, and only a trial that was given up is driven "+
				"again; the phone app can repeat an accepted one", n)
		}
		newest := slices.MaxFunc(verdicts[n], func(x, y wire.Verdict) int { return x.Attempt - y.Attempt })
		if newest.Attempt >= wire.MaxAttempts {
			return nil, fmt.Errorf("retry trial %d: it has had %d attempts, and no trial has more", n, newest.Attempt)
		}
		v, _ := verdict.ApplyOverride(newest, wire.Noted{Note: verdict.Retry, By: by, Text: why})
		reopened = append(reopened, v)
	}
	return reopened, nil
}

// GivenUp says which trials have no accepted attempt and get no further one, and
// why; "" when there are none.
func (r *Runner) GivenUp() string {
	var used, interrupted []string
	verdicts := r.verdicts()
	for _, t := range r.Plan.Trials {
		vs := verdicts[t.Number]
		_, more := verdict.Next(r.Plan.AttemptsMax, vs)
		if isAccepted(vs) || more || !r.Archive.Drives(t) {
			continue
		}
		if verdict.Exhausted(r.Plan.AttemptsMax, vs) {
			interrupted = append(interrupted, fmt.Sprint(t.Number))
		} else {
			used = append(used, fmt.Sprint(t.Number))
		}
	}
	var out []string
	if len(used) > 0 {
		out = append(out, fmt.Sprintf("%d given up after at most %d attempts that count, or skipped: trials %s",
			len(used), max(r.Plan.AttemptsMax, 1), listed(used)))
	}
	if len(interrupted) > 0 {
		out = append(out, fmt.Sprintf("%d given up after %d interruptions, which say nothing of the trial: trials %s; "+
			"see what ends the agents", len(interrupted), verdict.InterruptionsMax, listed(interrupted)))
	}
	return strings.Join(out, "; ")
}

// listed names so many that a line holds them.
func listed(all []string) string {
	const most = 20
	if over := len(all) - most; over > 0 {
		return strings.Join(all[:most], ",") + fmt.Sprintf(" and %d more", over)
	}
	return strings.Join(all, ",")
}
