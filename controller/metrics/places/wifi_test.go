package places_test

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// stock is an attempt of two phones whose apps reported their Wi-Fi, the car's at 0.25, 3.25,
// 6.25 and 9.25 s, and no node of another's frames.
func stock(t *testing.T) *archive.Archive {
	t.Helper()
	return oneAttempt(t, options, func(node string, all []wire.Record) (out []wire.Record) {
		for _, r := range all {
			if _, is := r.Body.(*wire.Station); !is {
				out = append(out, r)
			}
			w, is := r.Body.(*wire.Window)
			for i := -1; is && i < 5; i++ { // one before the window, and one after it
				tell := r
				tell.TBootNs = w.OpenBootNs + int64(i)*3e9 + 25e7
				tell.Body = &wire.WiFi{Source: wire.SourceAndroid, RenewedWithinMs: 500,
					SignalDbm: new(map[string]float64{"car": -50, "roadside": -90}[node] - float64(i))}
				out = append(out, tell)
			}
		}
		for i := range out {
			out[i].Seq = uint64(i + 1)
		}
		return out
	})
}

// What Android says about the access point is the car's, in the second in which it was found and
// in no other, and no signal between the nodes.
func TestAPhonesSignalIsTheAccessPoints(t *testing.T) {
	a := stock(t)
	log := logOf(t, a)
	for _, s := range log.Seconds {
		want := s.S%3 == 0
		if (s.WiFiDbm != nil) != want || s.WiFiDbm != nil && *s.WiFiDbm != -50-float64(s.S/3) || s.SignalDbm != nil {
			t.Errorf("second %d: %v dBm of the access point, %v of the other node", s.S, s.WiFiDbm, s.SignalDbm)
		}
	}
	readings := 0
	for _, s := range log.ByDistance() {
		if s.SignalDbm != nil {
			t.Errorf("from %g m: %g dBm", s.FromM, *s.SignalDbm)
		}
		if s.WiFiDbm != nil && *s.WiFiDbm <= -50 && *s.WiFiDbm >= -53 {
			readings++
		}
	}
	if readings == 0 {
		t.Error("it is not there by distance")
	}
	var text bytes.Buffer
	if err := log.WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&text).ReadAll()
	if err != nil || lines[4][slices.Index(lines[0], "wifi_signal_dbm")] != "-51" {
		t.Errorf("%v: %v", err, lines[:5])
	}
	text.Reset()
	if err := log.WriteGPX(&text); err != nil || !strings.Contains(text.String(),
		"<fm:wifi_signal_dbm>-51</fm:wifi_signal_dbm>") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// Where only one node's phone tells, its own is there alone; the timeline has each reading once.
func TestTheNumbersOfAPhonesSignalAreByNode(t *testing.T) {
	a := stock(t)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	trial, _ := a.Trial(1)
	rows, err := metrics.Of(a, k)
	if err != nil {
		t.Fatal(err)
	}
	for name, node := range map[string]string{"wifi_signal_sender_dbm": trial.Sender,
		"wifi_signal_receiver_dbm": trial.Receiver} {
		want := map[string]float64{"car": -51.5, "roadside": -91.5}[node]
		if v := metrics.Value(rows, "", name); v == nil || *v != want {
			t.Errorf("%s of %s: %v, want %g", name, node, v, want)
		}
	}
	if v := metrics.Value(rows, "", metrics.SignalMeanDbm); v != nil {
		t.Errorf("the signal of the other node is %g", *v)
	}
	at, err := metrics.Load(a, k)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, p := range at.Timeline() {
		if p.WiFiDbm != nil {
			told++
		}
	}
	if told != 4 {
		t.Errorf("the timeline has %d readings of 4", told)
	}
}
