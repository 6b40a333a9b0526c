package medium

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// A frame whose preamble was missed keeps the channel busy by its energy only: from -62 dBm on for
// OFDM, from -70 to -76 dBm by the own power for 802.11b, or from where the field says.
func TestEnergyKeepsTheChannelBusyByTheStandardsLevels(t *testing.T) {
	field := -68.0
	for _, v := range []struct {
		standard         string
		ownDbm, levelDbm float64
		set              *float64
	}{
		{phy.Standard80211g, 20, -62, nil}, {phy.Standard80211a, 20, -62, nil}, {phy.Standard80211b, 20, -73, nil},
		{phy.Standard80211b, 15, -70, nil}, {phy.Standard80211b, 23, -76, nil}, {phy.Standard80211g, 20, -68, &field},
	} {
		for _, aboveDb := range []float64{-1, 1} {
			waited := waitsForEnergy(t, v.standard, v.ownDbm, v.levelDbm+aboveDb, v.set)
			if want := aboveDb > 0; waited != want {
				t.Errorf("%s at %g dBm: %g dB above %g dBm: waits %v, want %v", v.standard, v.ownDbm, aboveDb,
					v.levelDbm, waited, want)
			}
		}
	}
}

// waitsForEnergy reports whether node 1, which sends a short frame as node 0 begins a long one, lets
// that pass before its next when it is so strong there.
func waitsForEnergy(t *testing.T, standard string, ownDbm, strengthDbm float64, energyDbm *float64) bool {
	t.Helper()
	cfg := testConfig(standard, 0, 2)
	cfg.EnergyDetectDbm = energyDbm
	cfg.Nodes[1].TxPowerDbm = ownDbm
	signalDbm, _ := mustCore(t, cfg, line(10), newRecorder(2)).Strength(0, 1)
	cfg.Nodes[0].TxPowerDbm += strengthDbm - signalDbm
	var last time.Duration
	cfg.Trace = func(e Trace) {
		if e.Event == "tx" && e.Node == 1 {
			last = e.At
		}
	}
	c := mustCore(t, cfg, line(10), newRecorder(2))
	c.Advance(time.Second)
	c.Enqueue(0, ethernet(0, -1, 1, 1500))
	c.Enqueue(1, ethernet(1, -1, 2, 20))
	c.Enqueue(1, ethernet(1, -1, 3, 20))
	c.Advance(c.Now())
	long := c.stations[0].tx.end
	c.Advance(2 * time.Second)
	return last > long
}

// A frame that is stronger by more than 10 dB and comes late in another is received by a radio that
// goes over to it, and lost by one that does not; one that is 8 dB stronger by neither.
func TestLateCaptureIsTheRadios(t *testing.T) {
	for _, v := range []struct {
		radio    string
		farM     float64
		received int
	}{{phy.RadioOFDMRecent, 30, 1}, {phy.RadioOFDMRecent, 18, 0}, {phy.RadioOFDM2003, 30, 0}, {"", 30, 0}} {
		cfg := testConfig(phy.Standard80211g, 6, 3)
		deaf := 0.0 // nobody defers
		cfg.Radio, cfg.CarrierSenseDbm = v.radio, &deaf
		cfg.Nodes[2].NoiseFigureDb = 80 // nor reads the other
		sink := newRecorder(3)
		c := mustCore(t, cfg, onALine(-v.farM, 0, 10), sink)
		c.Advance(time.Second)
		c.Enqueue(0, ethernet(0, -1, 1, 1500))
		c.Advance(c.Now() + time.Millisecond)
		c.Enqueue(2, ethernet(2, -1, 2, 100))
		c.Advance(2 * time.Second)
		far, near := sink.delivered[[2]int{1, 1}], sink.delivered[[2]int{1, 2}]
		if near != v.received || far != 0 {
			t.Errorf("radio %q, other sender at %g m: late frame received %d times, want %d; the other %d", v.radio,
				v.farM, near, v.received, far)
		}
	}
}
