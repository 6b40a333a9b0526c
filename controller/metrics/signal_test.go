package metrics

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// besideEachOther has car and roadside node at known places throughout a window of a second, at whose opening the
// roadside node's radio was sampled.
func besideEachOther() Attempt {
	at := Attempt{trial: wire.Trial{Number: 1, Sender: "car", Receiver: "roadside"}}
	for i, node := range []string{"car", "roadside"} {
		at.records = append(at.records, told(node, 0, &wire.Provenance{MAC: string(rune('a' + i))}),
			told(node, 0, &wire.Window{OpenBootNs: tenS, CloseBootNs: tenS + second}))
		for tenth := range 11 {
			fix := told(node, 0.1*float64(tenth), &wire.GPS{Mode: 3, Connected: true, LatDeg: new(50.0),
				LonDeg: new(8.0)})
			fix.Body.(*wire.GPS).FixBootNs = &fix.TBootNs
			at.records = append(at.records, fix)
		}
	}
	at.records = append(at.records, told("roadside", 0, &wire.Survey{Channel: 6}))
	return at
}

// A driver tells in whole ticks of its kernel how long ago it heard a frame, so that one frame
// seems to be of two moments.
func TestAFrameIsHeardOnce(t *testing.T) {
	for name, c := range map[string]struct {
		inactive [4]float64 // ms, at 110, 210, 310 and 410 ms
		want     []float64  // s
	}{
		"one frame":                {[4]float64{20, 120, 220, 320}, []float64{0.09}},
		"one, its age a tick off":  {[4]float64{20, 124, 216, 320}, []float64{0.09}},
		"one, its age two off":     {[4]float64{20, 112, 220, 328}, []float64{0.09}},
		"one, beside a moment":     {[4]float64{12, 110, 208, 308}, []float64{0.1}},
		"two, the second 50 ms on": {[4]float64{20, 70, 170, 270}, []float64{0.09, 0.14}},
	} {
		at := besideEachOther()
		for i, inactive := range c.inactive {
			at.records = append(at.records, told("roadside", 0.11+0.1*float64(i),
				&wire.Station{Peer: "a", SignalDbm: new(-60.0), InactiveMs: &inactive}))
		}
		var got []float64
		for _, h := range at.Hears("roadside", "car", Origin{50, 8}) {
			if h.SignalDbm != nil {
				got = append(got, h.S)
			}
		}
		same := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			same = same && got[i] > c.want[i]-0.011 && got[i] < c.want[i]+0.011
		}
		if !same {
			t.Errorf("%s: heard at %v s, want %v", name, got, c.want)
		}
	}
}

// What a radio does not tell is no silence: when it heard a peer, that peer's signal, or who the peer is.
func TestWhatARadioDoesNotTellIsNoSilence(t *testing.T) {
	heard := func(*wire.Station) {}
	undated := func(b *wire.Station) { b.InactiveMs = nil }
	nameless := func(b *wire.Station) { b.SignalDbm = nil }
	neither := func(b *wire.Station) { b.SignalDbm, b.InactiveMs = nil, nil } // so an emulated radio lists it
	silent := func(b *wire.Station) { b.InactiveMs = new(5000.0) }
	forgotten := func(b *wire.Station) { b.Peer = "x" }
	for name, c := range map[string]struct {
		first, second   func(*wire.Station) // what is told in the first half of the window, and in the second
		signals, silent int
	}{
		"a signal of nobody knows when":               {undated, undated, 0, 0},
		"nothing of when, and then a silence":         {undated, silent, 0, 0},
		"nothing of when, then nothing of the peer":   {undated, forgotten, 0, 0},
		"a peer that is heard without a signal":       {nameless, nameless, 0, 0},
		"a peer without a signal, and then not":       {nameless, silent, 0, 0},
		"a signal, and then one of nobody knows when": {heard, undated, 5, 0},
		"a signal, and then a silence":                {heard, silent, 5, 3},
		"a peer that was sent to and never heard":     {neither, neither, 0, 11},
		"a silence": {silent, silent, 0, 11},
	} {
		at := besideEachOther()
		for i := range 10 {
			b := &wire.Station{Peer: "a", SignalDbm: new(-60.0), InactiveMs: new(0.0)}
			if c.first(b); i >= 5 {
				b = &wire.Station{Peer: "a", SignalDbm: new(-60.0), InactiveMs: new(0.0)}
				c.second(b)
			}
			at.records = append(at.records, told("roadside", 0.1*float64(i), b))
		}
		var signals, silent int
		for _, h := range at.Hears("roadside", "car", Origin{50, 8}) {
			if h.SignalDbm != nil {
				signals++
			} else {
				silent++
			}
		}
		if signals != c.signals || silent != c.silent {
			t.Errorf("%s: %d signals and %d silences, want %d and %d", name, signals, silent, c.signals, c.silent)
		}
	}
	at := besideEachOther()
	for i := range 10 { // one frame, of which mac80211 tells no signal, and none after it
		at.records = append(at.records, told("roadside", 0.1*float64(i),
			&wire.Station{Peer: "a", InactiveMs: new(100 * float64(i))}))
	}
	if got := at.Hears("roadside", "car", Origin{50, 8}); at.Untold("roadside", "car") || len(got) == 0 {
		t.Errorf("one frame, and then a silence: untold %v, %d moments", at.Untold("roadside", "car"), len(got))
	}
	at = besideEachOther()
	at.records = append(at.records, told("roadside", 0, &wire.Provenance{MAC: "b", Radio: &wire.Caps{}}))
	for i := range 10 {
		at.records = append(at.records, told("roadside", 0.1*float64(i), &wire.Station{Peer: "a"}))
	}
	if got := at.Hears("roadside", "car", Origin{50, 8}); len(got) > 0 {
		t.Errorf("a driver that tells neither: %d moments", len(got))
	}
	at = besideEachOther()
	at.records = slices.DeleteFunc(at.records, func(r wire.Record) bool { return r.Body.Kind() == "provenance" })
	if got := at.Hears("roadside", "car", Origin{50, 8}); len(got) > 0 {
		t.Errorf("a peer whose address is not known: %d moments", len(got))
	}
}
