package report

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/papers"
)

// The words about ns-2's figures are those that its figures bear out.
func TestWhatTheSimulatorGivesIsTold(t *testing.T) {
	published, err := papers.Read()
	if err != nil {
		t.Fatal(err)
	}
	choices, err := published.SimulatedChain()
	if err != nil {
		t.Fatal(err)
	}
	stands := nearest(choices, "static")
	if stands.RateMbps != 1 || stands.SpacingM != 105 || stands.SenseM != 550 || len(stands.Cells) != 12 {
		t.Errorf("nearest is %+v", stands)
	}
	for _, c := range stands.Cells {
		if c.Routing != "dsdv" && (c.Ratio() < 0.99 || c.Ratio() > 1.01) {
			t.Errorf("%s, %s: %.1f kbit/s, the paper has %s", c.Routing, c.Variant, c.ThroughputKbitS,
				c.PublishedKbitS.Printed)
		}
		if c.Routing != "dsdv" && (c.DelayRatio() < 0.99 || c.DelayRatio() > 1.01) {
			t.Errorf("%s, %s: %.1f ms, the paper has %s", c.Routing, c.Variant, c.DelayMs, c.PublishedMs.Printed)
		}
	}
	for _, s := range choices {
		if s.RateMbps <= 1 {
			continue
		}
		for _, c := range s.Cells {
			if c.Ratio() < 1.2 {
				t.Errorf("%g Mbit/s, %s, %s: %.2f of the paper's throughput", s.RateMbps, c.Routing, c.Variant,
					c.Ratio())
			}
		}
	}
	v, err := simulatedChain()
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(v.Said, "\n")
	for _, want := range []string{"nearest to the paper is 1 Mbit/s, 105 m apart, sensed to 550 m",
		"8 of its 8 throughputs are the paper's to the last digit",
		"With 2 Mbit/s", "With 11 Mbit/s", "the same to the digit", "set off back at 250 s"} {
		if !strings.Contains(told, want) {
			t.Errorf("it does not say %q: %s", want, told)
		}
	}
	if len(v.Choices) != len(choices) || len(v.Cells) != 24 {
		t.Errorf("%d choices and %d cells", len(v.Choices), len(v.Cells))
	}
	stands.Cells[1].ThroughputKbitS++
	told = strings.Join(said(choices, stands, nearest(choices, "mobile")), "\n")
	if strings.Contains(told, "to the digit") {
		t.Errorf("variants that differ are called the same: %s", told)
	}
}
