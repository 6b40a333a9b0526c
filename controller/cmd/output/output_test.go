package output

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// unitOf scales a value: throughput is in bit/s.
func unitOf(name string) float64 {
	if name == metrics.ThroughputBps {
		return 1e6
	}
	return 1
}

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
			for _, name := range []string{metrics.TransferredMB, metrics.ThroughputBps} {
				rows = append(rows, metrics.Row{Trial: 1, Attempt: attempt + 1, Flow: flow, Name: name,
					Value: unitOf(name) * part})
			}
		}
	}
	var out strings.Builder
	if err := Table(&out, a, rows); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`5 +1 +3\.75 +3\.75\n`).MatchString(out.String()) {
		t.Errorf("the table:\n%s", &out)
	}
}

// What nodes drove after the run had enough is in no mean that is printed.
func TestTheTableHasNothingBeyondEnough(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 4, Speeds: []float64{5}, Repetitions: 3, Enough: 2})
	var rows []metrics.Row
	for _, v := range a.Decisions() {
		x, _ := a.Trial(v.Trial)
		if x.Factors["section"] == "A" {
			for _, name := range []string{metrics.TransferredMB, metrics.ThroughputBps} {
				rows = append(rows, metrics.Row{Trial: v.Trial, Attempt: v.Attempt, Flow: "bulk", Name: name,
					Value: unitOf(name) * float64(x.Block)})
			}
		}
	}
	var out strings.Builder
	if err := Table(&out, a, rows); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`A +5 +2 +1\.50 `).MatchString(out.String()) {
		t.Errorf("the table:\n%s", &out)
	}
}

func TestTheTableSaysTheUnitOfSpeeds(t *testing.T) {
	trials := []wire.Trial{
		{SpeedMps: new(2.8), Factors: map[string]string{"speed": "2.8", "lanes": "2", "speed_mps": "2.8"}},
		{SpeedMps: new(16.0), Factors: map[string]string{"speed": "16", "lanes": "16", "speed_mps": "16"}},
	}
	for factor, want := range map[string]string{"speed": "speed m/s", "lanes": "lanes", "speed_mps": "speed_mps"} {
		if got := withUnit(factor, trials); got != want {
			t.Errorf("%s: %q, want %q", factor, got, want)
		}
	}
}

// A trial of which one flow's amount is not known has no value, as in the report.
func TestATrialThatLacksAFlowHasNoValueInTheTable(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 4, Speeds: []float64{5}, Repetitions: 2,
		Change: func(x *wire.Trial) {
			second := x.Traffic[0]
			second.Name = "second"
			x.Traffic, x.Factors = append(x.Traffic, second), map[string]string{"speed_mps": "5"}
		}})
	var rows []metrics.Row
	for trial, flows := range map[int][]string{1: {"bulk", "second"}, 2: {"bulk"}, 3: {"second"}} {
		for _, flow := range flows {
			for _, name := range []string{metrics.TransferredMB, metrics.ThroughputBps} {
				rows = append(rows, metrics.Row{Trial: trial, Attempt: 1, Flow: flow, Name: name,
					Value: unitOf(name) * 3})
			}
		}
	}
	var out strings.Builder
	if err := Table(&out, a, rows); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^5 +1 +6\.00 +6\.00$`).MatchString(out.String()) {
		t.Errorf("the table:\n%s", &out)
	}
}

// Where only UDP is measured the table has iperf3's own amounts, and says so.
func TestTheTableOfUDPSaysWhoseCountItIs(t *testing.T) {
	for kind, says := range map[string]bool{"iperf3_udp": true, "iperf3_tcp": false} {
		a := synthetic.Run(t, synthetic.Options{Seed: 4, Speeds: []float64{5}, Repetitions: 1,
			Change: func(x *wire.Trial) {
				x.Traffic[0].Kind, x.Traffic[0].ClientPort, x.Factors = kind, 0, map[string]string{"speed_mps": "5"}
			}})
		var out strings.Builder
		rows := []metrics.Row{{Trial: 1, Attempt: 1, Flow: "bulk", Name: metrics.Iperf3MB, Value: 3}}
		if err := Table(&out, a, rows); err != nil {
			t.Fatal(err)
		}
		told := strings.Contains(out.String(), "the kernel keeps none for UDP")
		if shown := regexp.MustCompile(`(?m)^5 +1 +3\.00 +3\.00$`).MatchString(out.String()); told != says || shown != says {
			t.Errorf("%s: the table:\n%s", kind, &out)
		}
	}
}

func TestWithoutABrowserTheErrorNamesOne(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	path, err := PDF(t.Context(), "report.html")
	if err == nil || !strings.Contains(err.Error(), "apt install chromium") {
		t.Errorf("%q, %v", path, err)
	}
}

// A program that ends well and prints nothing is not taken for a browser.
func TestABrowserThatPrintsNothingFails(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := os.WriteFile(filepath.Join(dir, "chromium"), []byte("#!/bin/sh\necho no display\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := PDF(t.Context(), filepath.Join(dir, "report.html"))
	if err == nil || !strings.Contains(err.Error(), "no display") {
		t.Errorf("%q, %v", path, err)
	}
}
