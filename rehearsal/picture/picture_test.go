package picture

import (
	"fmt"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func sketch() field.Sketch {
	return field.Sketch{AtS: 8, Title: `a "title" <of> one`, LowestMbps: 6, HighestMbps: 54,
		Nodes: []field.SketchNode{
			{Name: "bravo", Role: "roadside", LowReachM: 700, HighReachM: 100},
			{Name: "alpha", Role: "car", XM: 74, YM: -5, SpeedMps: 11, TrackDeg: 90, LowReachM: 700, HighReachM: 100,
				Way: []field.Point{{XM: 10, YM: -5}, {XM: 150, YM: -5}}},
			{Name: "far", XM: 140, YM: 100, LowReachM: 700, HighReachM: 100},
		},
		Links: []field.SketchLink{{From: 0, To: 1, SignalDbm: -58.2, SNRDb: 33, RateMbps: 54},
			{From: 0, To: 2, SignalDbm: -99, SNRDb: -4}}}
}

// wellFormed fails unless a drawing is XML, as SVG must be, and asks for nothing from outside.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	testnet.WellFormed(t, svg)
	for _, bad := range []string{"href", "<script", "NaN", "Inf", "%!", "-0 m"} {
		if strings.Contains(svg, bad) {
			t.Errorf("the drawing has %q", bad)
		}
	}
}

func TestDrawingSaysWhatTheSketchSays(t *testing.T) {
	svg := SVG(sketch())
	wellFormed(t, svg)
	for _, want := range []string{"&lt;of&gt;", "8 s after setting off", "alpha (car)", "bravo (roadside)", ">far<",
		"-58 dBm, SNR 33 dB, 54 Mbit/s",
		"-99 dBm, no data", "54 Mbit/s reach 100 m", "6 Mbit/s 700 m", "<polyline"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the drawing", want)
		}
	}
}

// Whatever is asked for is drawn: one place for all, no reach, 200 nodes.
func TestOddFieldsAreDrawn(t *testing.T) {
	one := sketch()
	for i := range one.Nodes {
		one.Nodes[i].XM, one.Nodes[i].YM, one.Nodes[i].LowReachM, one.Nodes[i].HighReachM, one.Nodes[i].Way = 0, 0, 0,
			0, nil
	}
	wellFormed(t, SVG(one))
	crowd := field.Sketch{LowestMbps: 1, HighestMbps: 11, Area: &field.AreaConfig{WidthM: 1600, HeightM: 400}}
	for i := range 200 {
		crowd.Nodes = append(crowd.Nodes, field.SketchNode{Name: fmt.Sprint("n", i), XM: float64(i % 20 * 80),
			YM: float64(i / 20 * 40)})
	}
	svg := SVG(crowd)
	wellFormed(t, svg)
	if strings.Contains(svg, ">n7<") || !strings.Contains(svg, "n7 at (560.0 m") {
		t.Error("a crowd's names are hints, not labels")
	}
}

func TestNamesKeepClearOfEachOther(t *testing.T) {
	var names taken
	if a, b := names.place(100, "bravo (roadside)", 50, 80), names.place(130, "alpha (car)", 51, 81); a != 50 ||
		b != 81 {
		t.Errorf("names at %g and %g", a, b)
	}
}
