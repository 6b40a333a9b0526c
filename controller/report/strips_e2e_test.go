//go:build e2e

package report_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// Every strip of the timelines has the one cursor, with the value of its moment to a pixel of the drawing, by pointer
// and by slider; a drag zooms all of them, and there is a way back.
func TestE2ETheTimelinesShareACursor(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 51, Speeds: []float64{2.8, 8.3}, Repetitions: 1})
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(of(t, a)), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := browser.Script(ctx, t, "testdata/strips.cjs", file).CombinedOutput()
	if err != nil {
		t.Fatalf("use the timelines: %v\n%s", err, out)
	}
	var seen struct {
		Trial   int       `json:"trial"` // of the first row
		AtS     float64   `json:"at_s"`
		Told    []float64 `json:"told"`    // throughput, speed, distance, signal, cwnd
		PixelOf []float64 `json:"pixelOf"` // what a pixel of each strip is worth
	}
	if err := json.Unmarshal(out, &seen); err != nil || len(seen.Told) != 5 {
		t.Fatalf("%v\n%s", err, out)
	}
	at, err := metrics.Load(a, wire.TrialKey{Trial: seen.Trial, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := at.Timeline()[int(math.Round(seen.AtS*metrics.TickHz))]
	for i, want := range []float64{*p.ThroughputBps / 1e6, *p.SpeedMps, *p.DistanceM, *p.SignalDbm, *p.CwndSegments} {
		// Half a tick beside it, a tenth of a pixel of drawing, and the last digit that is told.
		if math.Abs(seen.Told[i]-want) > seen.PixelOf[i] {
			t.Errorf("number %d is told as %g, and was %g", i, seen.Told[i], want)
		}
	}
	t.Logf("trial %d at %.1f s: %v", seen.Trial, seen.AtS, seen.Told)
}
