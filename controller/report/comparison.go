package report

import (
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/effects"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// compare compares the results, once, however many sections speak of it.
func compare(d *evidence.Run) *effects.Comparison {
	if d.Compared != nil {
		return d.Compared
	}
	r := effects.Run{Unit: evidence.RateUnit, Level: d.Level(), Courses: d.Courses()}
	tcp := map[bool]bool{} // whether an accepted trial measures a flow of it → whether there is such a trial
	for _, a := range d.Attempts {
		if a.Accepted() && !a.Calibration() {
			tcp[len(a.Trial.Measured()) > 0] = true
		}
	}
	r.NoTCP = tcp[false] && !tcp[true]
	for _, a := range d.Results() {
		r.Results = append(r.Results, effects.Result{Pass: a.Pass(), Response: *a.Mbps,
			SpeedMeanMps: a.Number(metrics.SpeedMeanMps), SpeedErrMps: a.SpeedErr,
			DistanceMeanM: a.Number(metrics.DistanceMeanM), DistanceOpenM: a.Number(metrics.DistanceOpenM),
			DistanceCloseM: a.Number(metrics.DistanceCloseM), ClockErrorMs: a.Number(metrics.ClockErrorMs)})
	}
	d.Compared = new(effects.Compare(r))
	return d.Compared
}

func viewComparison(d *evidence.Run) (any, error) { return compare(d).View(), nil }
