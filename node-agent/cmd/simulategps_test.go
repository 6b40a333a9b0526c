package cmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/gps"
)

func TestSimulatedTrackIsAsFastAsItSays(t *testing.T) {
	tr := simulatedTrack{speedsMps: []float64{2, 8}, holdS: 5}
	perDegree := metresPerDegree * math.Cos(simulatedLatDeg*math.Pi/180)
	for s := 0.05; s < 35; s += 0.1 {
		fix, next := tr.at(s), tr.at(s+0.01)
		want := tr.speedsMps[int(s/5)%2]
		if math.Abs(fix.SpeedMps-want) > 1e-9 {
			t.Fatalf("after %.2f s the track says %g m/s, want %g", s, fix.SpeedMps, want)
		}
		moved := (next.LonDeg - fix.LonDeg) * perDegree / 0.01
		if east := int(s/10)%2 == 0; math.Abs(math.Abs(moved)-want) > 0.01 || (moved > 0) != east ||
			(fix.TrackDeg == 90) != east {
			t.Fatalf("after %.2f s it moves by %g m/s and says %g m/s to %g degrees", s, moved, want, fix.TrackDeg)
		}
	}
}

func TestSimulatedTrackIsRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- simulatedTrack{speedsMps: []float64{5.6}, holdS: 9}.serve(ctx, l) }()
	client := gps.New(l.Addr().String(), clock.System{})
	read := make(chan error, 1)
	go func() { read <- client.Run(ctx) }()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if fix, ok := client.Last(); ok && fix.Mode == 3 && fix.SpeedMps != nil && *fix.SpeedMps == 5.6 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("no fix of 5.6 m/s comes")
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSimulatedTrackIsRefused(t *testing.T) {
	for want, tr := range map[string]simulatedTrack{
		"at least one speed": {holdS: 9},
		"--speeds-mps 61":    {speedsMps: []float64{1, 61}, holdS: 9},
		"--speeds-mps NaN":   {speedsMps: []float64{math.NaN()}, holdS: 9},
		"--hold-s 0":         {speedsMps: []float64{1}},
	} {
		if err := tr.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", tr, err, want)
		}
	}
}

// The desk check waits for the speeds of its campaign, each for at most its gate's time.
func TestSimulatedTrackHasTheSpeedsOfTheDeskCheck(t *testing.T) {
	campaign, err := os.ReadFile(filepath.Join("..", "..", "campaigns", "stationary-check.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	speeds, err := SimulateGPSCommand().Flags().GetFloat64Slice("speeds-mps")
	if err != nil {
		t.Fatal(err)
	}
	levels := strings.Join(strings.Fields(fmt.Sprint(speeds)), ", ")
	if !strings.Contains(string(campaign), "key: speed_mps, levels: "+levels) {
		t.Errorf("the campaign has not the levels %s", levels)
	}
}
