package report

import (
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/effects"
)

// compare compares the results, once, however many sections speak of it.
func (d *data) compare() *effects.Comparison {
	if d.compared != nil {
		return d.compared
	}
	r := effects.Run{Unit: rate, Level: d.level(), Courses: d.courses()}
	tcp := map[bool]bool{} // whether an accepted trial measures a flow of it → whether there is such a trial
	for _, a := range d.attempts {
		if a.accepted() && !a.calibration() {
			tcp[len(a.Trial.Measured()) > 0] = true
		}
	}
	r.NoTCP = tcp[false] && !tcp[true]
	for _, a := range d.results() {
		r.Results = append(r.Results, effects.Result{Pass: a.pass(), Response: *a.Mbps,
			SpeedMeanMps: a.number(metrics.SpeedMeanMps), SpeedErrMps: a.speedErr,
			DistanceMeanM: a.number(metrics.DistanceMeanM), ClockErrorMs: a.number(metrics.ClockErrorMs)})
	}
	d.compared = new(effects.Compare(r))
	return d.compared
}

func viewComparison(d *data) (any, error) { return d.compare().View(), nil }
