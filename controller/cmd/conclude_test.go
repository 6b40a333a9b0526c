package cmd

import (
	"regexp"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// A trial is one value of its cell, however many attempts and flows it had.
func TestTheTableHasOneValueATrial(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 4, Speeds: []float64{5}, Repetitions: 1,
		Change: func(x *wire.Trial) {
			second, noise := x.Traffic[0], x.Traffic[0]
			second.Name, noise.Name, noise.Background = "second", "noise", true
			x.Traffic = append(x.Traffic, second, noise)
		},
		Mishap: func(x wire.Trial, attempt int, c *synthetic.Conditions) {
			if attempt == 1 {
				c.InterruptedNode = "car"
			}
		}})
	var rows []metrics.Row
	for attempt, mb := range []float64{100, 3} {
		for flow, part := range map[string]float64{"bulk": mb, "second": mb / 4, "noise": 50} {
			rows = append(rows, metrics.Row{Trial: 1, Attempt: attempt + 1, Flow: flow, Name: "transferred_mb",
				Value: part})
		}
	}
	var out strings.Builder
	if err := resultTable(&out, a, rows); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`5 +1 +3\.75 +3\.75\n`).MatchString(out.String()) {
		t.Errorf("the table:\n%s", &out)
	}
}
