package ratecontrol

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// ofdmTimes are of 802.11a's 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s: 16 µs of SIFS, 20 µs of preamble and
// symbols of 4 µs (IEEE 802.11-2020, 17.3.2.2), of a frame and of an ACK at 6 Mbit/s.
func ofdmTimes() (out MinstrelTimes) {
	for _, bits := range []int{24, 36, 48, 72, 96, 144, 192, 216} {
		symbols := (22 + 8*(MinstrelBytes+4) + bits - 1) / bits
		out.Frame = append(out.Frame, time.Duration(36+4*symbols)*time.Microsecond)
	}
	out.Groups = [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}
	out.Overhead, out.OverheadRTS = 60*time.Microsecond, 180*time.Microsecond
	return out
}

// rig is Minstrel with a peer that acknowledges each rate with its chance.
type rig struct {
	*Minstrel
	rng *rand.Rand
	at  time.Duration
}

func newRig() *rig { return newRigOf(ofdmTimes()) }

func newRigOf(times MinstrelTimes) *rig {
	rng := rand.New(rand.NewPCG(9, 9))
	return &rig{Minstrel: NewMinstrel(times, 1, rng), rng: rng}
}

// twoWidths have the modes of ofdmTimes in half of the channel, and behind them those of all of it.
func twoWidths() MinstrelTimes {
	out := ofdmTimes()
	for i, t := range out.Frame {
		out.Groups = append(out.Groups[:1], append(slices.Concat(out.Groups[1:]...), 8+i))
		out.Frame = append(out.Frame, t/2)
	}
	return out
}

// send sends frames a millisecond apart, and returns how often each rate was a frame's first, and
// how many frames sampled.
func (r *rig) send(frames int, chance ...float64) (first []int, sampled int) {
	first = make([]int, len(chance))
	for range frames {
		r.at += time.Millisecond
		for tried := 0; tried == 0 || tried < r.Tries(0); tried++ {
			c := r.Pick(0, tried, false, r.at)
			if tried == 0 {
				first[c.Mode]++
			}
			if c.Sample {
				sampled++
			}
			ok := 0
			if r.rng.Float64() < chance[c.Mode] {
				ok = 1
			}
			r.Result(0, c.Mode, 1, ok, r.at)
			if ok == 1 {
				break
			}
		}
	}
	return first, sampled
}

// It finds the rate with the best product of success and speed, samples every 20 ms, and follows
// when that rate stops working.
func TestMinstrelFindsTheBestRateFromSuccessAlone(t *testing.T) {
	r := newRig()
	good := []float64{1, 1, 1, 1, 1, 0.95, 0.4, 0.05}
	r.send(3000, good...)
	first, sampled := r.send(5000, good...)
	t.Logf("first attempts by rate: %v, %d samples", first, sampled)
	if share := float64(first[5]) / 5000; share < 0.8 {
		t.Errorf("36 Mbit/s, the best, went first in %.2f of the frames: %v", share, first)
	}
	// There are three turns in each update's 52 ms, and one or two rates for them.
	if updates := 5000 / 52; sampled > 3*updates || sampled < updates {
		t.Errorf("%d of 5000 frames sampled, want one to three in each of %d updates", sampled, updates)
	}
	bad := []float64{1, 1, 0.9, 0.05, 0, 0, 0, 0}
	r.send(500, bad...)
	first, _ = r.send(3000, bad...)
	t.Logf("after the channel got worse: %v", first)
	if share := float64(first[2]) / 3000; share < 0.85 {
		t.Errorf("12 Mbit/s, the best now, went first in %.2f of the frames: %v", share, first)
	}
	if fresh := newRig(); fresh.Pick(0, 0, false, 0).Mode > 7 || fresh.Pick(-2, 0, false, 0) != (Choice{}) {
		t.Error("a rate out of the table")
	}
}

// A link whose every rate works is at the fastest within half a second: the jumps find it.
func TestMinstrelClimbs(t *testing.T) {
	r := newRig()
	all := []float64{1, 1, 1, 1, 1, 1, 1, 1}
	r.send(500, all...)
	if first, _ := r.send(1000, all...); first[7] < 950 {
		t.Errorf("54 Mbit/s went first in %d of 1000 frames: %v", first[7], first)
	}
}

// A stage's tries, with backoffs of 7.5, 15.5, 31.5 … slots, last less than 6 ms. At 54 Mbit/s one
// takes 276 µs, and five of them with their backoffs 3.6 ms, six 6.2 ms.
func TestMinstrelLimitsAStageByItsTime(t *testing.T) {
	r := newRig()
	p := r.peer(0, 0)
	for i := range p.rates {
		p.rates[i].chance = sure
	}
	for _, v := range []struct {
		mode, frames int
		rts          bool
		want         int32
	}{{7, 1, false, 5}, {7, 1, true, 5}, {0, 1, false, 3}, {0, 1, true, 3}, {3, 1, false, 5}, {5, 8, false, 2}} {
		p.perExchange = v.frames * sure
		if got := r.tries(p, v.mode, v.rts); got != v.want {
			t.Errorf("mode %d, %d frames, RTS %v: %d tries, want %d", v.mode, v.frames, v.rts, got, v.want)
		}
	}
	p.rates[7].chance = doubtful - 1
	if got := r.tries(p, 7, false); got != 2 {
		t.Errorf("a rate that succeeds less often than one in five has %d tries, want 2", got)
	}
}

// The retry chain: the three best, and the surest, all but the first with RTS. A sample takes the
// first one's place, once. The chain is the frame's, whatever is learnt meanwhile.
func TestMinstrelRetryChain(t *testing.T) {
	r := newRig()
	p := r.peer(0, 0)
	for i := range p.rates {
		p.rates[i].chance = sure
	}
	walk := func() (out []Choice) {
		p.best, p.surest = [3]int{5, 4, 3}, 2
		r.tabulate(p)
		for tried := 0; tried == 0 || tried < r.Tries(0); tried++ {
			out = append(out, r.Pick(0, tried, false, 0))
			p.best = [3]int{}
			r.tabulate(p)
		}
		return out
	}
	stages := func(choices ...Choice) (out []Choice) {
		for _, c := range choices {
			for range r.tries(p, c.Mode, c.RTS) {
				out = append(out, c)
			}
		}
		return out
	}
	rest := []Choice{{Mode: 4, RTS: true}, {Mode: 3, RTS: true}, {Mode: 2, RTS: true}}
	p.sampleAt = jiffy
	if got, want := walk(), stages(append([]Choice{{Mode: 5}}, rest...)...); !slices.Equal(got, want) {
		t.Errorf("the chain is %v, want %v", got, want)
	}
	p.sampleAt, p.samples[sampleNext][0] = 0, 6
	if got, want := walk(), append([]Choice{{Mode: 6, Sample: true}}, stages(rest...)...); !slices.Equal(got, want) {
		t.Errorf("with a sample the chain is %v, want %v", got, want)
	}
	if got := walk()[0]; got.Sample {
		t.Error("two frames sample in 20 ms")
	}
}

// The chance is a low-pass filter's of the shares of each update: its step response is that of
// y = x(1 - c + a²) + c y' - a² y" with a = exp(-π√2/16) and c = 2a cos(2π√2/16).
func TestMinstrelFiltersChances(t *testing.T) {
	a := math.Exp(-math.Pi * math.Sqrt2 / 16)
	c := 2 * a * math.Cos(2*math.Pi*math.Sqrt2/16)
	r, y, before := minstrelRate{}, 1.0, 1.0
	for i, share := range []float64{1, 1, 0.5, 0.5, 0.5, 0, 0.25, 1, 1} {
		r.attempts, r.ok = 100, int(100*share)
		r.count()
		if i > 0 {
			y, before = min(1, max(0, share*(1-c+a*a)+c*y-a*a*before)), y
		}
		if got := float64(r.chance) / sure; math.Abs(got-y) > 0.005 {
			t.Errorf("update %d: the chance is %.4f, want %.4f", i, got, y)
		}
	}
}

// The last stage is the fastest of the rates that are reliable, and the surest where none is.
func TestMinstrelSurestRate(t *testing.T) {
	for _, v := range []struct {
		chance []int // in 100
		best   int
		surest int
	}{
		{[]int{100, 100, 100, 100, 96, 80, 40, 5}, 5, 5},
		{[]int{100, 100, 100, 100, 96, 74, 40, 5}, 5, 4},
		{[]int{70, 65, 60, 20, 0, 0, 0, 0}, 2, 0},
		{[]int{100, 100, 100, 100, 100, 100, 100, 100}, 7, 7},
	} {
		r := newRig()
		p := r.peer(0, 0)
		for i := range p.rates {
			p.rates[i].chance, p.rates[i].tried = sure*v.chance[i]/100, true
		}
		r.update(p, 0)
		if p.best[0] != v.best || p.surest != v.surest {
			t.Errorf("of chances %v the best is %d and the surest %d, want %d and %d", v.chance, p.best[0], p.surest,
				v.best, v.surest)
		}
	}
}

// With two widths it finds the best rate in either.
func TestMinstrelFindsTheBestRateOfEveryGroup(t *testing.T) {
	for _, v := range []struct {
		best   int
		chance []float64
	}{
		{14, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}},
		{7, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}},
		{0, []float64{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	} {
		r := newRigOf(twoWidths())
		r.send(2000, v.chance...)
		if first, _ := r.send(2000, v.chance...); first[v.best] < 1700 {
			t.Errorf("mode %d, the best, went first in %d of 2000 frames: %v", v.best, first[v.best], first)
		}
	}
}

// A rate that fails more than three times in four, in more than 30 tries, is left for the best one of the
// group before, and not only at the next update. In the first group nothing is before it.
func TestMinstrelLeavesAFailingRateAtOnce(t *testing.T) {
	for mode, want := range map[int]int{14: 5, 6: 6} {
		r := newRigOf(twoWidths())
		p := r.peer(0, 0)
		p.best, p.surest = [3]int{mode, 5, 4}, 0
		p.inGroup[0].best = [3]int{5, 4, 3}
		r.tabulate(p)
		p.sampleAt = time.Hour
		for _, v := range []struct{ tries, ok, want int }{{30, 0, mode}, {1, 7, mode}, {1, 0, want}} {
			r.Result(0, mode, v.tries, v.ok, 0)
			if got := r.Pick(0, 0, false, 0).Mode; got != v.want {
				t.Errorf("mode %d after %+v: mode %d is next, want %d", mode, p.rates[mode], got, v.want)
			}
		}
	}
}

// A mode that no frame goes at takes a sample's turn.
func TestMinstrelSamplesAnUnsentModeInVain(t *testing.T) {
	times := ofdmTimes()
	times.Unsent = []int{7}
	r := newRigOf(times)
	p := r.peer(0, 0)
	p.samples[sampleNext][0], p.samples[sampleJump][0] = 7, 6
	if got := r.Pick(0, 0, false, 0); got.Sample {
		t.Errorf("mode 7 is sampled: %+v", got)
	}
	if got := r.Pick(0, 0, false, minstrelSample-1); got.Sample {
		t.Errorf("a second sample within 20 ms: %+v", got)
	}
	if got := r.Pick(0, 0, false, minstrelSample); !got.Sample || got.Mode != 6 {
		t.Errorf("the next sample is %+v, want mode 6", got)
	}
}

// The mean length of A-MPDUs is of whole 2^-12 frames, rounded towards the last one: it ends 3 of them below two
// frames, which counts as one, and at as many above (minstrel_ewma).
func TestMinstrelAveragesLengthsAsTheKernelDoes(t *testing.T) {
	for from, want := range map[int]int{1: 2*sure - 3, 4: 2*sure + 3} {
		r := newRig()
		p := r.peer(0, 0)
		p.perExchange = from * sure
		for range 100 {
			r.Result(0, 0, 2, 2, 0)
			r.update(p, 0)
		}
		if p.perExchange != want {
			t.Errorf("from %d frames: %d, want %d", from, p.perExchange, want)
		}
	}
}
