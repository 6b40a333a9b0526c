package field

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

func pair(settings Settings) Config {
	return Config{Nodes: []Node{{Name: "a"}, {Name: "b"}}, Seed: 7, Field: settings}
}

// leaving is a car that drives away from the roadside node at 10 m/s, practically at once.
func leaving(standard string, rateMbps, windowS float64) wire.Trial {
	speed := 10.0
	return wire.Trial{Number: 1, Repetition: 1, Car: "a", Roadside: "b", Sender: "a", Receiver: "b", Initiator: "a",
		SpeedMps: &speed, Direction: "outbound", DurationS: windowS,
		Course: wire.Course{Kind: "depart", AccelMps2: 1e6, BrakeMps2: 4},
		Radio:  wire.Radio{Mode: "adhoc", Standard: standard, Channel: 6, RateMbps: &rateMbps}}
}

// theoryMbps is what one saturated link of an ad hoc cell carries of UDP's payload: IEEE
// 802.11-2020's times, written out, and the mean first back-off.
func theoryMbps(standard string, rate float64) float64 { return theoryAtSlotMbps(standard, rate, 20) }

func theoryAtSlotMbps(standard string, rate, slotUs float64) float64 {
	const mpduBytes, ackBytes = 24 + 8 + 1500 + 4, 14
	if standard == phy.Standard80211b { // long preamble; ACK at 2 Mbit/s at most
		air := func(rate, bytes float64) float64 { return 192 + math.Ceil(8*bytes/rate) }
		return 8 * 1472 / (50 + 20*15.5 + air(rate, mpduBytes) + 10 + air(min(rate, 2), ackBytes))
	}
	if standard == phy.Standard80211n { // in 20 MHz, MCS 7: as many frames as 5.484 ms and 65,535 bytes let through
		frames := 28.0
		ampdu := 36 + 4*math.Ceil((22+8*(27*1544+1542))/260) + 6
		return frames * 8 * 1472 / (10 + 3*slotUs + slotUs*7.5 + ampdu + 10 + 20 + 4*math.Ceil((22+8*32)/96.0) + 6)
	}
	air := func(rate, bytes float64) float64 { return 20 + 4*math.Ceil((22+8*bytes)/(4*rate)) + 6 }
	control := 6.0
	for _, basic := range []float64{12, 24} {
		if basic <= rate {
			control = basic
		}
	}
	return 8 * 1472 / (10 + 2*slotUs + slotUs*7.5 + air(rate, mpduBytes) + 10 + air(control, ackBytes))
}

// Close together, every rate carries what its airtime lets through. The back-off of some
// hundred frames or more is its mean but for chance: its standard deviation, of a few slots.
func TestSaturationNearbyIsThatOfTheStandard(t *testing.T) {
	for standard, rates := range map[string][]float64{phy.Standard80211b: {1, 2, 5.5, 11},
		phy.Standard80211g: {6, 9, 12, 18, 24, 36, 48, 54}, phy.Standard80211n: {65}} {
		for _, rate := range rates {
			settings := Settings{}
			if standard == phy.Standard80211n {
				settings.Radio = phy.RadioHT20
			}
			got, err := SaturateApart(pair(settings), leaving(standard, rate, 1), 10, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			want := theoryMbps(standard, rate)
			if math.Abs(got.GoodputMbps/want-1) > 0.01 || got.WithinReach != 1 || got.NearestM != 10 ||
				got.FarthestM != 10 {
				t.Errorf("%s at %g Mbit/s: %+v, theory %g", standard, rate, got, want)
			}
		}
	}
}

// An ad hoc cell at 2.4 GHz keeps to the long slot, as Linux has it, and a mesh to the short one; a field may
// say otherwise.
func TestSaturationIsThatOfTheNetworksSlot(t *testing.T) {
	for _, c := range []struct {
		mode     string
		longSlot *bool
		slotUs   float64
	}{{"adhoc", nil, 20}, {"none", nil, 20}, {"mesh", nil, 9}, {"adhoc", new(false), 9}, {"mesh", new(true), 20}} {
		for standard, rate := range map[string]float64{phy.Standard80211g: 54, phy.Standard80211n: 65} {
			settings, trial := Settings{LongSlot: c.longSlot}, leaving(standard, rate, 1)
			if trial.Radio.Mode = c.mode; standard == phy.Standard80211n {
				settings.Radio = phy.RadioHT20
			}
			got, err := SaturateApart(pair(settings), trial, 10, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if want := theoryAtSlotMbps(standard, rate, c.slotUs); math.Abs(got.GoodputMbps/want-1) > 0.01 {
				t.Errorf("%s in mode %s, long_slot %v: %g Mbit/s, theory %g", standard, c.mode, c.longSlot,
					got.GoodputMbps, want)
			}
		}
	}
}

// In a disc of 100 m a car that leaves at 10 m/s is within reach for 10 s of a window of 20 s, and
// what comes over is what comes over in them; a window that opens later has the less.
func TestSaturationEndsWithTheReach(t *testing.T) {
	cfg := pair(Settings{Radio: phy.RadioDisc, RangeM: 100})
	whole := theoryMbps(phy.Standard80211g, 24)
	for _, direction := range []string{"outbound", "inbound"} {
		trial := leaving(phy.Standard80211g, 24, 20)
		trial.Direction = direction
		for opensS, share := range map[float64]float64{0: 0.5, 5: 0.25, 9.5: 0.025, 10.5: 0} {
			got, err := Saturate(cfg, trial, time.Duration(opensS*float64(time.Second)))
			if err != nil {
				t.Fatal(err)
			}
			// One look in 200, and the frames of a hundredth of the window.
			if math.Abs(got.WithinReach-share) > 0.0051 || math.Abs(got.GoodputMbps/whole-share) > 0.01 {
				t.Errorf("%s, opens at %g s: %+v, want a share of %g of %g Mbit/s", direction, opensS, got, share,
					whole)
			}
			if math.Abs(got.NearestM-10*opensS) > 0.1 || math.Abs(got.FarthestM-10*(opensS+20)) > 1.1 {
				t.Errorf("%s, opens at %g s: from %g to %g m apart", direction, opensS, got.NearestM, got.FarthestM)
			}
			if share == 0 && got.GoodputMbps != 0 {
				t.Errorf("beyond reach %g Mbit/s came over", got.GoodputMbps)
			}
		}
	}
}

// With distance goodput falls, or stays as it is but for the back-off's chance, to nothing.
func TestSaturationFallsWithDistance(t *testing.T) {
	trial := leaving(phy.Standard80211g, 0, 1)
	trial.Radio.RateMbps = nil // by its signal
	before, last := math.Inf(1), Saturation{}
	for _, apartM := range []float64{10, 100, 200, 300, 400, 600, 800, 1600, 3200} {
		got, err := SaturateApart(pair(Settings{}), trial, apartM, 4*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if got.GoodputMbps > 1.01*before {
			t.Errorf("%g m: %g Mbit/s, nearer %g", apartM, got.GoodputMbps, before)
		}
		before, last = got.GoodputMbps, got
	}
	if last.GoodputMbps != 0 || last.WithinReach != 0 {
		t.Errorf("3.2 km apart: %+v", last)
	}
}

// The draw is the seed's, with all that is drawn.
func TestSaturationIsDrawnBySeed(t *testing.T) {
	cfg := pair(Settings{Shadowing: &ShadowingConfig{SigmaDb: 8, DecorrelationM: 20},
		Fading: &FadingConfig{Model: "rayleigh"}})
	trial := leaving(phy.Standard80211g, 24, 5)
	seen := map[string]bool{}
	for range 2 {
		for seed := range uint64(3) {
			cfg.Seed = seed
			got, err := Saturate(cfg, trial, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			seen[fmt.Sprint(seed, got)] = true
			if got.GoodputMbps <= 0 || got.GoodputMbps > theoryMbps(phy.Standard80211g, 24) {
				t.Errorf("seed %d: %+v", seed, got)
			}
		}
	}
	values := map[string]bool{}
	for s := range seen {
		_, value, _ := strings.Cut(s, " ")
		values[value] = true
	}
	if len(seen) != 3 || len(values) != 3 {
		t.Errorf("three seeds, twice each: %v", seen)
	}
}

// What a third node overhears does not count.
func TestSaturationIsTheReceivers(t *testing.T) {
	trial := leaving(phy.Standard80211g, 24, 1)
	trial.Routing.Protocol = "dsr-ns2"
	cfg := pair(Settings{})
	two, err := SaturateApart(cfg, trial, 10, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Nodes = append(cfg.Nodes, Node{Name: "c"})
	three, err := SaturateApart(cfg, trial, 10, time.Second)
	if err != nil || !trial.Routing.Overhears() || two != three {
		t.Errorf("two nodes: %+v, with a third: %+v, %v", two, three, err)
	}
}

func TestSaturationNeedsItsNodes(t *testing.T) {
	trial := leaving(phy.Standard80211g, 24, 1)
	trial.Sender = "c"
	_, err := SaturateApart(pair(Settings{}), trial, 10, time.Second)
	if err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("%v", err)
	}
}

// Where minstrel sends in a part of the channel, two nodes are within reach as far as that carries something.
func TestSaturationIsWithinReachOfNarrowFrames(t *testing.T) {
	cfg := pair(Settings{Radio: phy.RadioVHT80})
	trial := leaving(phy.Standard80211ac, 29.3, 1)
	trial.Radio.Channel = 36
	farther := 0
	for apartM := 20.0; apartM < 2000; apartM *= 1.2 {
		at := func(rateMbps *float64) Saturation {
			trial.Radio.RateMbps = rateMbps
			s, err := SaturateApart(cfg, trial, apartM, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		fixed, chosen := at(new(29.3)), at(nil)
		if chosen.WithinReach == 0 && chosen.GoodputMbps > 1 {
			t.Errorf("%.0f m apart, out of reach: %g Mbit/s", apartM, chosen.GoodputMbps)
		}
		if fixed.WithinReach == 0 && chosen.WithinReach == 1 {
			farther++
		}
	}
	if farther < 2 {
		t.Errorf("narrow frames reached farther at %d distances", farther)
	}
}
