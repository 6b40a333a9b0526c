package report

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// From where to where a row's trials went is of those of which both is known: else the
// two means would be of different trials.
func TestDistancesAreOfTrialsThatHaveBoth(t *testing.T) {
	attempt := func(numbers map[string]float64) (a evidence.Attempt) {
		for name, v := range numbers {
			a.Rows = append(a.Rows, metrics.Row{Name: name, Value: v})
		}
		return a
	}
	whole := attempt(map[string]float64{metrics.DistanceOpenM: 10, metrics.DistanceCloseM: 60,
		metrics.DistanceCloseUncertaintyM: 2})
	half := attempt(map[string]float64{metrics.DistanceCloseM: 460, metrics.DistanceCloseUncertaintyM: 30})
	for want, of := range map[string][]evidence.Attempt{"10 → 60 (± 2)": {whole, half}, "not measured": {half}} {
		if got := distances(of); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
