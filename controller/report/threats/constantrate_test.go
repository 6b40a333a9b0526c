package threats

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestWhatConstantBitRatesLackIsTold(t *testing.T) {
	at := func(trial int, values ...float64) evidence.Attempt { // unsent, excess
		a := acceptedAt(trial)
		a.Trial.Traffic = []wire.Flow{{Name: "cbr", Kind: wire.KindCBR}}
		for i, name := range []string{metrics.CBRUnsent, metrics.CBRLatencyExcessMs}[:len(values)] {
			a.Rows = append(a.Rows, metrics.Row{Name: name, Value: values[i]})
		}
		if len(values) > 0 {
			a.Rows = append(a.Rows, metrics.Row{Name: metrics.CBRFlows, Value: 1})
		}
		return a
	}
	found, _ := constantRates(&evidence.Run{Attempts: []evidence.Attempt{acceptedAt(1), at(2, 0, 0), at(3, 0), at(4),
		at(5, 2, 1.25), at(6, 1, 0)}})
	if found == nil {
		t.Fatal("a trial without figures is no threat")
	}
	says(t, found.Text, "1 accepted trial without figures of the flows of kind cbr, because an end of one did not "+
		"record the whole of it (4.1).", "late at their times: 3 (5.1: 2, 6.1: 1).", "up to 1.25 ms (5.1: 1.25 ms).")
	rejected := at(2)
	rejected.Verdict = &wire.Verdict{Outcome: wire.Rejected}
	if found, clear := constantRates(&evidence.Run{Attempts: []evidence.Attempt{acceptedAt(1), at(3, 0, 0),
		rejected}}); found != nil || clear != "" {
		t.Errorf("%+v %q", found, clear)
	}
}
