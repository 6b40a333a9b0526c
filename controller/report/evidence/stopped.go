package evidence

import (
	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/stopping"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Level is the confidence of the run's intervals.
func (d *Run) Level() float64 { return stopping.Level(d.Info.Enough, d.Info.Plan) }

// Beyond reports whether a trial is of a block after that which was enough.
func (d *Run) Beyond(t wire.Trial) bool { return d.Stop.Beyond(t) }

// Counts reports whether an attempt is a result of the campaign.
func (d *Run) Counts(a Attempt) bool { return archive.Counts(a.Trial, a.Verdict, d.Stop) }

// PerTrial is what every trial's accepted attempt measured, and which trials may
// still be driven.
func (d *Run) PerTrial() (mbps map[int]*float64, open map[int]bool) {
	mbps, open = map[int]*float64{}, map[int]bool{}
	verdicts := map[int][]wire.Verdict{}
	for _, a := range d.Attempts {
		if a.Verdict != nil {
			verdicts[a.Trial.Number] = append(verdicts[a.Trial.Number], *a.Verdict)
		}
		if a.Accepted() {
			mbps[a.Trial.Number] = a.Mbps
		}
	}
	for _, t := range d.Info.Plan.Trials {
		_, more := verdict.Next(d.Info.Plan.AttemptsMax, verdicts[t.Number])
		open[t.Number] = more
	}
	return mbps, open
}

// Drives reports whether a trial is to be driven in this run: no other shard drives it, and it
// is of no block after that which was enough.
func (d *Run) Drives(t wire.Trial) bool { return d.Info.Shard.Has(t.Number) && !d.Beyond(t) }

// ToDrive is how many planned trials those are, and how many calibration passes.
func (d *Run) ToDrive() (trials, passes int) {
	for _, t := range d.Info.Plan.Trials {
		switch {
		case !d.Drives(t):
		case t.Pass == "":
			trials++
		default:
			passes++
		}
	}
	return trials, passes
}

// DrivenBeyond is how many attempts were driven beyond what was enough.
func (d *Run) DrivenBeyond() int {
	n := 0
	for _, a := range d.Attempts {
		if d.Beyond(a.Trial) {
			n++
		}
	}
	return n
}
