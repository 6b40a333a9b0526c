package plan

import (
	"errors"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// FuzzParse: whatever the bytes, the parser does not panic, every fault has a
// place inside the file and words, and what it takes for a campaign is one
// that can be driven, and one by the JSON Schema too.
func FuzzParse(f *testing.F) {
	for _, name := range shipped {
		f.Add(load(f, name).Raw)
	}
	for _, x := range readFaults(f) {
		f.Add(x.file(f))
	}
	for _, raw := range []string{"", "a", "a: [", "? a\n: b", "- - -", "a: &x [*x]", "fieldmesh: 1\n---\n",
		"a: !!binary x", "%YAML 1.2\n---\na: 1", "\xef\xbb\xbffieldmesh: 1",
		"fieldmesh: 1\ntrial: {traffic: {\"a.b\": {}}}\nfactors: {f: {key: traffic.a.b.port, levels: [1]}}",
		"a: |\n  b\n", "? [a, b]\n: c\n", "{a: 1, ? b}"} {
		f.Add([]byte(raw))
	}
	validate := editor(f)
	fuzz.Run(f, func(t *testing.T, raw []byte) {
		c, err := Parse("f", raw)
		if err == nil {
			checkDrivable(t, c)
			if err := validate(raw); err != nil {
				t.Errorf("the JSON Schema refuses a campaign: %v", err)
			}
			return
		}
		var problems tree.Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("error %v is not a list of problems", err)
		}
		lines := strings.Count(string(raw), "\n") + strings.Count(string(raw), "\r") + 1
		before := tree.Problem{}
		for _, p := range problems {
			if p.File != "f" || p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" {
				t.Errorf("problem %+v in a file of %d lines", p, lines)
			}
			if p.Line < before.Line || (p.Line == before.Line && p.Column < before.Column) {
				t.Errorf("problem %v comes after %v", p, before)
			}
			before = p
		}
	})
}

func checkDrivable(t *testing.T, c *Campaign) {
	t.Helper()
	for i, x := range schedule(t, c) {
		if x.Number != i+1 || x.Sender == "" || x.Receiver == "" || x.Sender == x.Receiver || x.Initiator == "" ||
			x.DurationS <= 0 || len(x.Traffic) == 0 {
			t.Fatalf("trial %d: %s", i+1, line(x))
		}
		if x.SpeedMps != nil && (*x.SpeedMps <= 0 || *x.SpeedMps > maxSpeedMps || x.Car != x.Initiator ||
			x.Direction == "") {
			t.Fatalf("trial %d: %s", i+1, line(x))
		}
		for _, flow := range x.Traffic {
			if flow.From == "" || flow.To == "" || flow.From == flow.To || flow.DurationS <= 0 || flow.ClientPort <
				clientPortFirst {
				t.Fatalf("trial %d: flow %+v", i+1, flow)
			}
		}
	}
	if e := c.Estimate(); !(e.RoadTotalS > 0) || e.ToM < e.FromM {
		t.Fatalf("estimate %+v", e)
	}
}
