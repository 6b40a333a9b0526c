package medium

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

type nobody struct{}

func (nobody) Deliver(int, time.Duration, []byte) bool  { return true }
func (nobody) TxFailed(int, time.Duration, MAC, []byte) {}
func apart(m float64) Locate {
	return func(node int, _ time.Duration) (float64, float64) { return m * float64(node), 0 }
}

// At its reach a rate is just chosen, a little beyond it no more; in free
// space the reach of 6 Mbit/s is where the closed form has the least SNR.
func TestReachIsWhereTheRateEnds(t *testing.T) {
	cfg := Config{Standard: phy.Standard80211g, Channel: 6, Propagation: propagation.Config{Model: "two_ray_ground"},
		Nodes: []NodeConfig{{Name: "a", MAC: "02:00:00:00:00:01", TxPowerDbm: 20, NoiseFigureDb: 10, HeightM: 1.5},
			{Name: "b", MAC: "02:00:00:00:00:02", TxPowerDbm: 20, NoiseFigureDb: 10, HeightM: 1.5}}}
	probe, err := NewCore(cfg, apart(1), nobody{})
	if err != nil {
		t.Fatal(err)
	}
	before := 1e9
	for _, rate := range probe.RatesMbps() {
		reach := probe.ReachM(0, rate)
		if reach <= 0 || reach > before+1e-6 && rate != 9 { // 9 Mbit/s needs more than 12: BPSK with a weak code
			t.Errorf("%g Mbit/s reaches %g m, a slower rate %g m", rate, reach, before)
		}
		before = reach
		for shift, within := range map[float64]bool{0.99: true, 1.01: false} {
			c, err := NewCore(cfg, apart(reach*shift), nobody{})
			if err != nil {
				t.Fatal(err)
			}
			if best := c.BestRateMbps(0, 1); (best >= rate) != within && !(best > rate && !within) {
				t.Errorf("at %g of the reach of %g Mbit/s the best rate is %g Mbit/s", shift, rate, best)
			}
		}
	}
	signal, snr := probe.Strength(0, 1)
	// Free space at 1 m and 2437 MHz: 40.18 dB.
	if signal < 20-40.2 || signal > 20-40.1 || snr < 60 || !probe.Hears(0, 1) {
		t.Errorf("a metre apart: %g dBm, SNR %g dB", signal, snr)
	}
}
