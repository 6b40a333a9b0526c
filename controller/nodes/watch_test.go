package nodes

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func reportOf(name string, battery float64, problems ...wire.Problem) report {
	return report{node: fleet.Node{Name: name, Unit: "laptop-1", Labels: map[string]string{"seat": "front",
		"car": "blue"}},
		status: wire.NodeStatus{Node: name, Version: "1", GPS: &wire.GPS{Mode: 3, Connected: true}, Problems: problems,
			Host:    wire.HostStatus{Reached: true},
			Machine: &wire.Machine{BatteryPercent: &battery, BatteryState: "discharging", TemperatureC: new(51.0)}},
		clock: &wire.Clock{WallOffsetNs: 12e6, UncertaintyNs: 1e6}}
}

func TestALineTellsWhatItsReceiverLacks(t *testing.T) {
	for want, gps := range map[string]*wire.GPS{"no gpsd": {Mode: 3}, "no fix": {Mode: 1, Connected: true},
		"2-D": {Mode: 2, Connected: true}, "mode 7": {Mode: 7, Connected: true}} {
		r := reportOf("car", 80)
		r.status.GPS, r.status.GPSRateHz = gps, new(10.0)
		if got := r.line().GPS; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWatchWritesALinePerChange(t *testing.T) {
	var out bytes.Buffer
	w := &watching{out: &out, asJSON: true, before: map[string]line{}}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	lost := report{node: fleet.Node{Name: "road"}, err: &fleet.NodeError{Node: "road", Doing: "ask status",
		Cure: "start it", Err: errors.New("no answer within 3.01s")}}
	again := lost
	again.err = &fleet.NodeError{Node: "road", Doing: "ask status", Cure: "start it",
		Err: errors.New("no answer within 3.02s")}
	for i, reports := range [][]report{
		{reportOf("car", 80.2), lost},
		{reportOf("car", 79.9), again}, // nothing that means anything
		{reportOf("car", 79.4), lost},
		{reportOf("car", 79.4, wire.Problem{Need: "gps", Found: "no fix", Cure: "sky"}), reportOf("road", 50)},
	} {
		if err := w.show(reports, at.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for text := range strings.Lines(out.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		word := l.Node + " " + l.At.Format("05")
		if l.BatteryPercent != nil {
			word += " " + testnet.JSON(t, *l.BatteryPercent)
		}
		if len(l.Problems) > 0 {
			word += " " + l.Problems[0].Need
		}
		got = append(got, word)
	}
	if want := "car 00 80,road 00,car 02 79,car 03 79 gps,road 03 50"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s\n%s", got, want, out.String())
	}
}

func TestWatchOfAPlainFilePrintsTheTableWhenSomethingChanges(t *testing.T) {
	var out bytes.Buffer
	w := &watching{out: &out, before: map[string]line{}}
	for _, battery := range []float64{80, 80, 20} {
		if err := w.show([]report{reportOf("car", battery)}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "BATTERY"); n != 2 || !strings.Contains(out.String(), "car=blue seat=front") ||
		!strings.Contains(out.String(), "20 %") || !strings.Contains(out.String(), "51 °C") {
		t.Errorf("%d tables:\n%s", n, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a file got a terminal's control characters")
	}
	w.terminal = true
	out.Reset()
	if err := w.show([]report{reportOf("car", 20)}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "\x1b[H") {
		t.Error("a terminal is not refreshed in place")
	}
}
