package evidence

import (
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Pause ends a session: people went away, and came back to other weather, other
// traffic and nodes put down again.
const Pause = 30 * time.Minute

// sessions names the session of every attempt but the calibrating ones. Attempts
// follow each other in time, whatever the schedule's order, on one set of nodes:
// several fields, or several machines' shards, drive side by side.
func (d *Run) sessions() {
	var all []*Attempt
	for i := range d.Attempts {
		if !d.Attempts[i].Calibration() {
			all = append(all, &d.Attempts[i])
		}
	}
	var order []timed
	begins := map[int]bool{}
	for _, p := range bySpool(all) {
		begins[len(order)] = true
		order = append(order, inTime(p)...)
	}
	passes := make([]design.Pass, len(order))
	for i, a := range order {
		passes[i] = a.Pass()
	}
	paused := func(i int) bool { return begins[i] || order[i].at.Sub(order[i-1].until) > Pause }
	for i, s := range design.Sessions(passes, paused) {
		order[i].Session = s
	}
}

// timed is an attempt with the time from and until which it was, as far as that is known.
type timed struct {
	*Attempt
	at, until time.Time
}

// spool is what one node recorded into. It lasts over restarts, so that it tells
// which node of that name it was.
type spool struct{ node, epoch string }

// spoolsOf are the spools of nodes that records come from.
func spoolsOf(nodes []wire.PlanNode, records []wire.Record) []spool {
	seen := map[spool]bool{}
	var out []spool
	for _, r := range records {
		s := spool{r.Node, r.Epoch}
		if seen[s] {
			continue
		}
		seen[s] = true
		if slices.ContainsFunc(nodes, func(n wire.PlanNode) bool { return n.Name == r.Node }) {
			out = append(out, s)
		}
	}
	return out
}

// bySpool parts attempts by the spools that they have in common, also through
// others. Those without any are one part.
func bySpool(all []*Attempt) [][]*Attempt {
	spools := func(a *Attempt) []spool {
		if len(a.spools) == 0 {
			return []spool{{}}
		}
		return a.spools
	}
	part := map[spool]int{}
	for i, a := range all {
		for _, s := range spools(a) {
			had, known := part[s]
			part[s] = i
			if !known || had == i {
				continue
			}
			for other, p := range part {
				if p == had {
					part[other] = i
				}
			}
		}
	}
	var out [][]*Attempt
	at := map[int]int{}
	for _, a := range all {
		p := part[spools(a)[0]]
		if _, seen := at[p]; !seen {
			at[p] = len(out)
			out = append(out, nil)
		}
		out[at[p]] = append(out[at[p]], a)
	}
	return out
}

// inTime puts attempts in the order of time: by the GPS, or by when the
// controller decided, which it does by a clock of its own and, of what the nodes
// did alone, much later. So that is set right by the attempt decided nearest to
// it of which both times are known. It lasted its window at least.
func inTime(all []*Attempt) []timed {
	out := make([]timed, len(all))
	for i, a := range all {
		switch out[i] = (timed{a, a.began, a.ended}); {
		case !a.began.IsZero():
		case !a.decided.IsZero():
			out[i].until = a.decided.Add(clockOff(all, a.decided))
			out[i].at = out[i].until.Add(-time.Duration(a.Trial.DurationS * float64(time.Second)))
		case i > 0:
			out[i].at, out[i].until = out[i-1].at, out[i-1].until // not known: where the schedule has it
		}
	}
	slices.SortStableFunc(out, func(x, y timed) int { return x.at.Compare(y.at) })
	return out
}

// clockOff is what the GPS was ahead of decisions about a time; 0 when there is
// nothing to know it from.
func clockOff(all []*Attempt, decided time.Time) (off time.Duration) {
	nearest := time.Duration(-1)
	for _, a := range all {
		if a.began.IsZero() || a.decided.IsZero() {
			continue
		}
		if far := a.decided.Sub(decided).Abs(); nearest < 0 || far < nearest {
			nearest, off = far, a.ended.Sub(a.decided)
		}
	}
	return off
}

// decidedAt takes from the journal when each attempt was decided first.
func (d *Run) decidedAt(journal []archive.JournalEntry) {
	at := map[wire.TrialKey]time.Time{}
	for _, j := range journal {
		if j.Verdict == nil {
			continue
		}
		if _, had := at[j.Verdict.TrialKey]; !had {
			at[j.Verdict.TrialKey] = j.Wall
		}
	}
	for i := range d.Attempts {
		d.Attempts[i].decided = at[d.Attempts[i].TrialKey]
	}
}
