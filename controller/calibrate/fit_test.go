package calibrate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// roads are samples of stretches of road with shadows of their own, one each 5 m, as Gudmundson has them.
func roads(dice *rand.Rand, n int, lengthM, exponent, sigmaDb, d0M float64) *Survey {
	s := &Survey{units: []string{"one", "other"}}
	for road := range n {
		shadow := sigmaDb * dice.NormFloat64()
		for x := 15.0; x <= 15+lengthM; x += cellM {
			s.samples = append(s.samples, sample{link: fmt.Sprint("one other ", road), tx: "one", rx: "other",
				passes: 1, distanceM: x, b: metrics.Place{EastM: x},
				gainDb: 10 - 10*exponent*math.Log10(x) + shadow + 0.3*dice.NormFloat64()})
			kept := math.Exp(-cellM / d0M)
			shadow = kept*shadow + math.Sqrt(1-kept*kept)*sigmaDb*dice.NormFloat64()
		}
	}
	return s
}

// A dozen short roads are as good as one long road: their shadows are told, though each road has a dozen of them at
// most. Of one such road they are not.
func TestShortRoadsTellShadowsTogether(t *testing.T) {
	const seed = 8
	dice := rand.New(rand.NewPCG(seed, 0))
	told, held := 0, 0
	const repeats = 8
	for range repeats {
		r, err := roads(dice, 12, 150, 3, 4, 12).fit()
		if err != nil {
			t.Fatal(err)
		}
		if r.ShadowDb == nil || r.CorrelationM == nil {
			t.Logf("not known: %v", r.Open)
			continue
		}
		told++
		if r.ShadowDb.Low < 4 && r.ShadowDb.High > 4 && r.CorrelationM.Low < 12 && r.CorrelationM.High > 12 {
			held++
		}
	}
	if told < repeats || held < repeats-2 {
		t.Errorf("seed %d: shadows are told by %d of %d, rightly by %d", seed, told, repeats, held)
	}
	one, err := roads(dice, 1, 150, 3, 4, 12).fit()
	if err != nil {
		t.Fatal(err)
	}
	if one.CorrelationM != nil {
		t.Errorf("one road of 150 m tells a correlation of %+v", *one.CorrelationM)
	}
}

// Where single samples scatter as they do under fading, roads without shadows may have some as well as none. That the
// grid ends where shadows have a fiftieth of the variance is no reason to tell them.
func TestShadowsThatMayNotBeThereAreNotTold(t *testing.T) {
	const seed = 21
	const fadingDb = 5.57 // standard deviation of Rayleigh's in decibels: 10/ln 10 · π/√6
	dice := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		s := roads(dice, 12, 150, 3, 0, 12)
		for i := range s.samples {
			s.samples[i].gainDb += fadingDb * dice.NormFloat64()
		}
		r, err := s.fit()
		if err != nil {
			t.Fatal(err)
		}
		if r.ShadowDb != nil || r.CorrelationM != nil {
			t.Errorf("seed %d: without shadows, some of %+v dB are told, over %v m", seed, r.ShadowDb, r.CorrelationM)
		}
		open := strings.Join(r.Open, "\n")
		if !strings.Contains(open, "shadowing: ") || !strings.Contains(open, "fading") {
			t.Errorf("seed %d: said: %s", seed, open)
		}
	}
}

// That there are no shadows is open by the last step's weight beside the others', however many steps share it.
func TestNoShadowsAreOpenWhereTheLastShareIsAboutAsLikely(t *testing.T) {
	for weight, want := range map[float64]bool{1: true, 0.2: true, 0.1: false, 0: false} {
		p := &posterior{}
		for i := range 70 {
			p.grid = append(p.grid, point{d0M: 5, ownShare: 0.98 - 0.01*float64(i), weight: 1})
		}
		p.grid[0].weight = weight
		if p.unshadowed() != want {
			t.Errorf("%g times as likely as 69 others: open is %v, want %v", weight, !want, want)
		}
	}
}

// fitted is what twelve roads tell, and a campaign to put it into.
func fitted(t *testing.T) (*Result, []byte) {
	t.Helper()
	r, err := roads(rand.New(rand.NewPCG(3, 0)), 12, 120, 2.5, 3, 15).fit()
	if err != nil {
		t.Fatal(err)
	}
	r.Run = "road"
	campaign, err := os.ReadFile("../../campaigns/velocity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return r, campaign
}

// What a campaign assumed of the channel, and its run does not tell, is not in what the run told.
func TestWhatWasAssumedOfTheChannelIsNotInTheScenario(t *testing.T) {
	r, campaign := fitted(t)
	out, err := r.Scenario([]byte(strings.Replace(string(campaign), "\nfield:\n", "\nfield:\n"+
		"  channel_error: {mean: 0.3, burst_frames: 10}\n  fading: {model: rayleigh}\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, field, _ := strings.Cut(string(out), "\nfield:\n")
	if !strings.Contains(field, "path_loss_exponent: 2.") || strings.Contains(field, "channel_error") ||
		strings.Contains(field, "fading") {
		t.Errorf("the scenario has\n%s", field)
	}
}

// What changes nothing in the field of a run of an earlier version would be refused in a new campaign, and is left out.
func TestWhatChangesNothingIsNotInTheScenario(t *testing.T) {
	r, campaign := fitted(t)
	out, err := r.Scenario([]byte(strings.Replace(string(campaign), "\nfield:\n", "\nfield:\n"+
		"  short_preamble: true\n  long_slot: true\n  spacing_m: 30\n  mobility: {model: chain, spacing_m: 100}\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, field, _ := strings.Cut(string(out), "\nfield:\n")
	if strings.Contains(field, "short_preamble") || strings.Contains(field, "spacing_m: 30") ||
		!strings.Contains(field, "long_slot: true") || !strings.Contains(field, "spacing_m: 100") {
		t.Errorf("the scenario has\n%s", field)
	}
}

// A gain that no antenna has is refused, and nobody is sent to a campaign file for it.
func TestAGainThatNoAntennaHasIsRefused(t *testing.T) {
	r, campaign := fitted(t)
	for gainDbi, sound := range map[float64]bool{-20.1: false, -20: true, 20: true, 35.35: false} {
		r.GainDbi.Value = gainDbi
		if _, err := r.Scenario(campaign); sound != (err == nil) || !sound && !errors.Is(err, ErrNoLaw) {
			t.Errorf("an antenna gain of %g dBi: %v", gainDbi, err)
		}
	}
}

// A point may be so unlikely that its weight is 0 in floating point. Its step counts once
// all the same.
func TestAStepWhoseFirstPointsWeighNothingCountsOnce(t *testing.T) {
	p := &posterior{edges: [2]float64{5, 20}, grid: []point{{d0M: 5}, {d0M: 5, weight: 0.1}, {d0M: 10},
		{d0M: 10, weight: 0.8}, {d0M: 20}, {d0M: 20, weight: 0.1}}}
	if e, _ := p.correlation(); math.Abs(e.Value-10) > 0.05 || e.Low > 5 || e.High < 19 {
		t.Errorf("%+v, want about 10, from below 5 to 20", e)
	}
}
