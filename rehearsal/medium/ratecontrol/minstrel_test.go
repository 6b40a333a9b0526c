package ratecontrol

import (
	"math/rand/v2"
	"testing"
	"time"
)

// ofdmAirtimes are of 802.11g's 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s: 20 µs of preamble, symbols of
// 4 µs and 6 µs of silence (IEEE 802.11-2020, 17.3.2.2 and 18.3.2.4).
func ofdmAirtimes() (out []time.Duration) {
	for _, bits := range []int{24, 36, 48, 72, 96, 144, 192, 216} {
		symbols := (22 + 8*MinstrelBytes + bits - 1) / bits
		out = append(out, time.Duration(26+4*symbols)*time.Microsecond)
	}
	return out
}

// play lets Minstrel send frames, a millisecond apart, to a peer that acknowledges
// each rate with its chance; it returns how often each rate was a frame's first.
func play(m *Minstrel, rng *rand.Rand, from, to int, chance []float64) []int {
	first := make([]int, len(chance))
	for i := from; i < to; i++ {
		at := time.Duration(i) * time.Millisecond
		for attempt := range 7 {
			mode := m.Pick(0, attempt, at)
			if attempt == 0 {
				first[mode]++
			}
			ok := rng.Float64() < chance[mode]
			m.Result(0, mode, ok)
			if ok {
				break
			}
		}
	}
	return first
}

// It finds the rate with the best product of success and speed, spends a tenth
// of the frames on others, and follows when that rate stops working.
func TestMinstrelFindsTheBestRateFromSuccessAlone(t *testing.T) {
	airtime := ofdmAirtimes()
	rng := rand.New(rand.NewPCG(9, 9))
	m := NewMinstrel(airtime, false, 1, rng)
	good := []float64{1, 1, 1, 1, 1, 0.95, 0.4, 0.05}
	play(m, rng, 0, 3000, good)
	first := play(m, rng, 3000, 8000, good)
	t.Logf("first attempts by rate: %v", first)
	if share := float64(first[5]) / 5000; share < 0.85 {
		t.Errorf("36 Mbit/s, the best, went first in %.2f of the frames: %v", share, first)
	}
	if faster := first[6] + first[7]; faster == 0 || faster > 500 {
		t.Errorf("%d of 5000 frames sampled a faster rate; at most a tenth may", faster)
	}
	bad := []float64{1, 1, 0.9, 0.05, 0, 0, 0, 0}
	play(m, rng, 8000, 10_000, bad)
	first = play(m, rng, 10_000, 13_000, bad)
	t.Logf("after the channel got worse: %v", first)
	if share := float64(first[2]) / 3000; share < 0.8 {
		t.Errorf("12 Mbit/s, the best now, went first in %.2f of the frames: %v", share, first)
	}
	if fresh := NewMinstrel(airtime, false, 1, rng); fresh.Pick(0, 0, 0) > 7 || fresh.Pick(-2, 0, 0) != 0 {
		t.Error("a rate out of the table")
	}
}

// The retry chain: best, second best, surest, lowest, two attempts each.
func TestMinstrelRetryChain(t *testing.T) {
	p := &minstrelPeer{best: 5, second: 4, surest: 3, sampling: -1}
	for _, v := range []struct {
		sampling int
		after    bool
		want     [7]int
	}{
		{-1, false, [7]int{5, 5, 4, 4, 3, 3, 0}},
		{7, false, [7]int{7, 7, 5, 5, 3, 3, 0}},
		{2, true, [7]int{5, 5, 2, 2, 3, 3, 0}},
	} {
		p.sampling, p.after = v.sampling, v.after
		for attempt, want := range v.want {
			if got := p.chain(attempt / minstrelTries); got != want {
				t.Errorf("sampling %d, attempt %d: mode %d, want %d", v.sampling, attempt, got, want)
			}
		}
	}
}
