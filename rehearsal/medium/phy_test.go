package medium

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/errorrate"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ratecontrol"
)

// A frame of 1 Mbit/s has the long preamble and its header in any case (16.2.2.2).
func TestTheShortPreambleLeavesOneMbpsAsItIs(t *testing.T) {
	long := mustPHY(t, phy.Standard80211b)
	short, err := phy.New(phy.Config{Standard: phy.Standard80211b, ShortPreamble: true})
	if err != nil {
		t.Fatal(err)
	}
	for db := 0.0; db < 16; db++ {
		snr := math.Pow(10, db/10)
		got, want := short.FrameErrorRate(short.Modes[0], snr, 100), long.FrameErrorRate(long.Modes[0], snr, 100)
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("at %g dB %g are lost with the short preamble, %g without", db, got, want)
		}
	}
	if got, want := short.LockSNROf(&short.Modes[0]), long.LockSNR; got != want || short.LeastLock != want {
		t.Errorf("it is noticed from %g on, and any frame from %g on, want %g", got, short.LeastLock, want)
	}
	if short.LockSNROf(&short.Modes[3]) <= long.LockSNR || short.EIFS != long.EIFS {
		t.Errorf("11 Mbit/s is noticed from %g on, EIFS is %s", short.LockSNROf(&short.Modes[3]), short.EIFS)
	}
}

func mustPHY(t testing.TB, standard string) *phy.PHY {
	t.Helper()
	p, err := phy.New(phy.Config{Standard: standard})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func within(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s: got %g, want %g within %g %%", what, got, want, 100*relative)
	}
}

func TestPathLossAgainstFormulas(t *testing.T) {
	const freq = 2437e6
	lambda := 299792458.0 / freq
	for _, d := range []float64{1, 10, 99, 250, 1000} {
		friis := -10 * math.Log10(lambda*lambda/(16*math.Pi*math.Pi*d*d))
		within(t, "free space", propagation.FreeSpace{FrequencyHz: freq}.LossDb(d, 1, 1), friis, 1e-9)
		first := -10 * math.Log10(lambda*lambda/(16*math.Pi*math.Pi))
		law := propagation.LogDistance{FrequencyHz: freq, Exponent: 2.7, ReferenceM: 1}
		within(t, "log distance", law.LossDb(d, 1, 1), first+27*math.Log10(d), 1e-9)
	}
	two := propagation.TwoRayGround{FrequencyHz: freq}
	cross := two.CrossoverM(1.5, 2)
	within(t, "crossover", cross, 4*math.Pi*1.5*2/lambda, 1e-9)
	within(t, "continuous at the crossover", two.LossDb(cross*1.0000001, 1.5, 2), two.LossDb(cross*0.9999999, 1.5, 2),
		1e-6)
	d := 3 * cross
	within(t, "two-ray", two.LossDb(d, 1.5, 2), -10*math.Log10(1.5*1.5*2*2/math.Pow(d, 4)), 1e-9)
	free := propagation.FreeSpace{FrequencyHz: freq}
	if near := free.LossDb(0, 1, 1); near != free.LossDb(1, 1, 1) {
		t.Errorf("two nodes in one place: loss %g dB, want that of 1 m", near)
	}
}

// The times by which minstrel_ht compares rates, from the formulas of rc80211_minstrel_ht.c in µs; those of
// OFDM are rounded down there by up to a symbol.
func TestMinstrelsTimesAreTheKernels(t *testing.T) {
	for _, v := range []struct {
		standard, radio  string
		channel          int
		overhead, rts    float64
		slowest, fastest float64
	}{
		{phy.Standard80211b, "", 1, 10 + 96 + 112, 3 * (10 + 96 + 112), 10 + 192 + 9632, 10 + 192 + 875},
		{phy.Standard80211g, "", 1, 36 + 24, 3 * (36 + 24), 36 + 4*401, 36 + 4*44},
		{phy.Standard80211a, "", 36, 36 + 24, 3 * (36 + 24), 36 + 4*401, 36 + 4*44},
		{phy.Standard80211n, phy.RadioHT20, 36, 48 + 60, 48 + 3*60, 5908 * 4. / 16, 591 * 4. / 16},
		{phy.Standard80211ac, phy.RadioVHT80, 36, 48 + 60, 48 + 3*60, 1313 * 4. / 16, 99 * 4. / 16},
	} {
		p, err := phy.New(phy.Config{Standard: v.standard, Radio: v.radio, Channel: v.channel})
		if err != nil {
			t.Fatal(err)
		}
		plain, rts := p.Overheads()
		us := func(d time.Duration) float64 { return d.Seconds() * 1e6 }
		within(t, v.standard+" overhead", us(plain), v.overhead, 1e-9)
		within(t, v.standard+" overhead with RTS", us(rts), v.rts, 1e-9)
		for i, want := range map[int]float64{p.FirstData: v.slowest, p.NarrowFrom - 1: v.fastest} {
			got := us(p.SampleTime(&p.Modes[i], ratecontrol.MinstrelBytes, ratecontrol.MinstrelFrames))
			if math.Abs(got-want) > 0.5 {
				t.Errorf("%s: a frame at %g Mbit/s counts %g µs, want %g", v.standard, p.Modes[i].RateMbps, got, want)
			}
		}
	}
}

// The kernel keeps them in 16 bits: of 32 ns each where MCS 0 takes 1477 µs (20 MHz of 802.11ac), and of 8 ns where it
// takes 328 µs (80 MHz). So 58.5 Mbit/s of 20 MHz is faster than that of 80. And 802.11b with the long preamble has
// three rates with the short one that no frame goes at, at places 5 to 7.
func TestMinstrelsTimesAreAsCoarseAsTheKernels(t *testing.T) {
	p, err := phy.New(phy.Config{Standard: phy.Standard80211ac, Radio: phy.RadioVHT80, Channel: 36, Narrower: true})
	if err != nil {
		t.Fatal(err)
	}
	times := p.MinstrelTimes()
	narrow, wide := times.Frame[times.Groups[0][6]], times.Frame[times.Groups[2][1]]
	if narrow != 164_224 || wide != 164_248 {
		t.Errorf("frames at 58.5 Mbit/s take %v in 20 MHz and %v in 80, want 164.224 and 164.248 µs", narrow, wide)
	}
	times = mustPHY(t, phy.Standard80211b).MinstrelTimes()
	if want := []int{0, 1, 2, 3, -1, 4, 5, 6}; !slices.Equal(times.Groups[0], want) ||
		!slices.Equal(times.Unsent, want[5:]) {
		t.Errorf("802.11b has the modes %v, of which %v are not sent, want %v and the last three", times.Groups[0],
			times.Unsent, want)
	}
	if saved := times.Frame[3] - times.Frame[6]; saved < 95*time.Microsecond || saved > 97*time.Microsecond {
		t.Errorf("11 Mbit/s is shorter by %v with the short preamble, want 96 µs", saved)
	}
	if p, err = phy.New(phy.Config{Standard: phy.Standard80211b, ShortPreamble: true}); err != nil {
		t.Fatal(err)
	}
	if times = p.MinstrelTimes(); len(times.Unsent) > 0 || len(times.Groups[0]) != 4 {
		t.Errorf("with the short preamble 802.11b has the modes %v, without %v", times.Groups[0], times.Unsent)
	}
}

// Airtimes worked out by hand from the standard's symbol sizes.
func TestAirtime(t *testing.T) {
	for _, v := range []struct {
		standard string
		rate     float64
		bytes    int
		want     time.Duration
	}{
		{phy.Standard80211g, 54, 1536, (20 + 4*57 + 6) * time.Microsecond},
		{phy.Standard80211g, 24, 14, (20 + 4*2 + 6) * time.Microsecond},
		{phy.Standard80211a, 6, 14, (20 + 4*6) * time.Microsecond},
		{phy.Standard80211b, 1, 14, (192 + 112) * time.Microsecond},
		{phy.Standard80211b, 11, 1536, (192 + 1118) * time.Microsecond},
		{phy.Standard80211b, 5.5, 100, (192 + 146) * time.Microsecond},
	} {
		p := mustPHY(t, v.standard)
		i, err := p.ModeIndex(v.rate)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Airtime(&p.Modes[i], v.bytes); got != v.want {
			t.Errorf("%s %g Mbit/s, %d bytes: %s, want %s", v.standard, v.rate, v.bytes, got, v.want)
		}
	}
}

func TestNoiseFloor(t *testing.T) {
	// kT at 290 K is -173.98 dBm/Hz; 20 MHz add 73.01 dB.
	within(t, "noise", propagation.RatioToDb(mustPHY(t, phy.Standard80211g).NoiseMw(7)), -173.975+73.010+7, 1e-4)
}

func TestErrorRateFallsWithSNRAndGrowsWithLengthAndRate(t *testing.T) {
	everyRadio(t, func(standard string, p *phy.PHY) {
		for _, m := range p.Modes {
			last := 1.1
			for db := -15.0; db <= 40; db += 0.25 {
				snr := propagation.DbToRatio(db)
				per := p.FrameErrorRate(m, snr, 1500)
				if per > last+1e-12 || per < 0 || per > 1 || math.IsNaN(per) {
					t.Fatalf("%s %g Mbit/s at %g dB: error rate %g after %g", standard, m.RateMbps, db, per, last)
				}
				if short := p.FrameErrorRate(m, snr, 64); short > per+1e-12 {
					t.Fatalf("%s %g Mbit/s at %g dB: 64 bytes fail more (%g) than 1500 (%g)", standard, m.RateMbps, db,
						short, per)
				}
				last = per
			}
			if last > 1e-9 {
				t.Errorf("%s %g Mbit/s still loses %g at 40 dB", standard, m.RateMbps, last)
			}
		}
	})
}

// everyRadio calls for each radio that has noise, in each of its standards.
func everyRadio(t *testing.T, f func(what string, p *phy.PHY)) {
	t.Helper()
	for _, r := range phy.KnownRadios() {
		for _, standard := range r.Standards {
			if r.OwnPropagation {
				continue
			}
			p, err := phy.New(phy.Config{Standard: standard, Radio: r.Name, Narrower: true})
			if err != nil {
				t.Fatal(err)
			}
			f(strings.TrimSpace(r.Name+" "+standard), p)
		}
	}
}

// Within one radio each faster rate needs more SNR, for short frames and long ones and
// whatever share of them may be lost.
func TestFasterModesNeedMoreSNR(t *testing.T) {
	everyRadio(t, func(what string, p *phy.PHY) {
		for _, bytes := range []int{100, phy.TargetBytes} {
			for _, lost := range []float64{0.5, phy.TargetErrorRate, 0.01, 0.001} {
				for _, group := range p.Groups {
					last := 0.0
					for _, mode := range group {
						m := p.Modes[mode]
						needs := errorrate.LeastSNR(lost, func(snr float64) float64 {
							return p.FrameErrorRate(m, snr, bytes)
						})
						t.Logf("%s %g Mbit/s: %d bytes lost at most %g of the time from %.2f dB", what, m.RateMbps,
							bytes, lost, propagation.RatioToDb(needs))
						if needs <= last {
							t.Errorf("%s %g Mbit/s needs %g for %d bytes lost %g of the time, the rate below %g", what,
								m.RateMbps, needs, bytes, lost, last)
						}
						last = needs
					}
				}
			}
		}
	})
}

// A frame in a part of the channel meets as much less noise, and so does its answer, which is as wide. What it
// is modulated with is that of the wide frame.
func TestNarrowerFramesNeedLessSNR(t *testing.T) {
	everyRadio(t, func(what string, p *phy.PHY) {
		wide := p.Groups[len(p.Groups)-1]
		for g, group := range p.Groups {
			share := math.Pow(2, float64(g-len(p.Groups)+1))
			for i, mode := range group {
				m, w := &p.Modes[mode], &p.Modes[wide[i]]
				if m.Modulation != w.Modulation || m.Code != w.Code {
					t.Errorf("%s: MCS %d of group %d is modulated with %v", what, i, g, m.Modulation)
				}
				answer, wider := &p.Modes[m.Response], &p.Modes[w.Response]
				if answer.RateMbps != wider.RateMbps {
					t.Errorf("%s %g Mbit/s: answered at %g Mbit/s, want %g", what, m.RateMbps, answer.RateMbps,
						wider.RateMbps)
				}
				within(t, what+" needs", p.LockSNROf(m)/p.LockSNROf(w), share, 1e-9)
				for snr := 1.0; snr < 300; snr *= 1.3 {
					within(t, what+" data", m.LogSuccess(snr*share, 1e4), w.LogSuccess(snr, 1e4), 1e-9)
					within(t, what+" answer", p.FrameErrorRate(*answer, snr*share, phy.ACKBytes),
						p.FrameErrorRate(*wider, snr, phy.ACKBytes), 1e-9)
				}
			}
		}
	})
}

// The closed forms once more, written down independently: uncoded DBPSK frame
// error, and BPSK's Q(√(2 Eb/N0)).
func TestErrorRateAgainstClosedForms(t *testing.T) {
	p := mustPHY(t, phy.Standard80211b)
	for _, db := range []float64{-6, -4, -3, -2, 0} {
		ebN0 := math.Pow(10, db/10) * 22 // 22 MHz of noise, 1 Mbit/s
		ber := math.Exp(-ebN0) / 2
		want := 1 - math.Pow(1-ber, 8*1000+48)
		if got := p.FrameErrorRate(p.Modes[0], propagation.DbToRatio(db), 1000); math.Abs(got-want) > 1e-4*want+1e-9 {
			t.Errorf("DBPSK at %g dB: %g, want %g", db, got, want)
		}
	}
	for _, snr := range []float64{0.1, 1, 2, 4, 8} {
		// Craig's form of the Gaussian tail: an integral that shares nothing
		// with erfc.
		q := 0.0
		const n = 20000
		for i := range n {
			theta := (float64(i) + 0.5) * math.Pi / 2 / n
			q += math.Exp(-snr/math.Pow(math.Sin(theta), 2)) / 2 / n
		}
		within(t, "BPSK", errorrate.SubcarrierBER(errorrate.BPSK, snr), q, 1e-3)
	}
}

// The information weights of the K = 7 code, counted again: paths that leave
// the all-zero state and come back, over every puncturing phase.
func TestCodeSpectraAgainstTheGenerators(t *testing.T) {
	patterns := map[errorrate.CodeRate][]uint{ // bit 0: output of 133, bit 1: of 171
		errorrate.CodeHalf:          {3},
		errorrate.CodeTwoThirds:     {3, 1},
		errorrate.CodeThreeQuarters: {3, 1, 2},
		errorrate.CodeFiveSixths:    {3, 1, 2, 1, 2},
	}
	for code, pattern := range patterns {
		s := errorrate.CodeSpectrum(code)
		top := s.First + 9*s.Step
		total, events := make([]float64, top+1), make([]float64, top+1)
		for phase := range pattern {
			weights, paths := spectrumFrom(pattern, phase, top)
			for d := range weights {
				total[d] += weights[d]
				events[d] += paths[d]
			}
		}
		for i := range s.Weights {
			d := s.First + i*s.Step
			if total[d] != s.Weights[i] || events[d] != s.Events[i] {
				t.Errorf("rate %d, distance %d: table says %g in %g events, counted %.0f in %.0f", code, d,
					s.Weights[i], s.Events[i], total[d], events[d])
			}
		}
		for d := range s.First {
			if total[d] != 0 {
				t.Errorf("rate %d: an event of distance %d, below the free distance %d", code, d, s.First)
			}
		}
	}
}

// spectrumFrom is the sum of input weights, and the number, by output distance of all
// error events that start at a phase of the puncturing pattern.
func spectrumFrom(pattern []uint, phase, top int) (weights, events []float64) {
	type sums struct{ paths, weight []float64 }
	fresh := func() []sums {
		out := make([]sums, 64)
		for i := range out {
			out[i] = sums{make([]float64, top+1), make([]float64, top+1)}
		}
		return out
	}
	parity := func(v uint) uint {
		n := uint(0)
		for ; v != 0; v &= v - 1 {
			n ^= 1
		}
		return n
	}
	weights, events = make([]float64, top+1), make([]float64, top+1)
	now := fresh()
	now[0].paths[0] = 1
	for step := range 200 {
		next := fresh()
		for state := range uint(64) {
			for bit := range uint(2) {
				if step == 0 && (state != 0 || bit == 0) || step > 0 && state == 0 {
					continue
				}
				reg := bit<<6 | state
				keep := pattern[(phase+step)%len(pattern)]
				d := int(parity(reg&0o133)&keep + parity(reg&0o171)&(keep>>1))
				for from := 0; from+d <= top; from++ {
					paths, weight := now[state].paths[from], now[state].weight[from]
					next[reg>>1].paths[from+d] += paths
					next[reg>>1].weight[from+d] += weight + float64(bit)*paths
				}
			}
		}
		for d := range weights {
			weights[d] += next[0].weight[d]
			events[d] += next[0].paths[d]
		}
		now = next
	}
	return weights, events
}

// CCK's formulas against simulated decisions among the standard's own code words
// (16.3.6.6), by envelopes and phases: the receiver's carrier is anywhere.
func TestCCKAgainstSimulatedDecisions(t *testing.T) {
	const seed, symbols = 1, 100000
	rng := rand.New(rand.NewPCG(seed, 0))
	full := cckWords(func(bits int) [4]float64 {
		quarter := func(i int) float64 { return float64(bits>>(2*i)&3) * math.Pi / 2 }
		return [4]float64{0, quarter(0), quarter(1), quarter(2)}
	}, 64)
	half := cckWords(func(bits int) [4]float64 {
		return [4]float64{0, float64(bits&1)*math.Pi + math.Pi/2, 0, float64(bits>>1) * math.Pi}
	}, 4)
	for _, v := range []struct {
		name  string
		words [][8]complex128
		esN0  float64
		want  float64
	}{
		{"5.5", half, propagation.DbToRatio(12), errorrate.CCK16SER(propagation.DbToRatio(12))},
		{"11", full, propagation.DbToRatio(15), errorrate.CCK256SER(propagation.DbToRatio(15))},
	} {
		sigma := math.Sqrt(8 / v.esN0 / 2) // a word has energy 8
		wrong, counted := 0, 0
		before, reference := true, complex(1, 0)
		carrier := cmplx.Rect(1, 2*math.Pi*rng.Float64())
		phase := 0
		for range symbols {
			sent, turn := rng.IntN(len(v.words)), rng.IntN(4)
			phase += turn
			turned := carrier * cmplx.Rect(1, float64(phase)*math.Pi/2)
			var r [8]complex128
			for i, chip := range v.words[sent] {
				r[i] = turned*chip + complex(rng.NormFloat64()*sigma, rng.NormFloat64()*sigma)
			}
			best, at := complex(0, 0), 0
			for w := range v.words {
				sum := complex(0, 0)
				for i, chip := range v.words[w] {
					sum += r[i] * cmplx.Conj(chip)
				}
				if cmplx.Abs(sum) > cmplx.Abs(best) {
					best, at = sum, w
				}
			}
			quarters := cmplx.Phase(best/reference) / (math.Pi / 2)
			good := at == sent && (int(math.Round(quarters))+4)%4 == turn
			if before { // else the reference is that of another word
				counted++
				wrong += boolToInt(!good)
			}
			before, reference = at == sent, best
		}
		got := float64(wrong) / float64(counted)
		t.Logf("seed %d: CCK %s: simulated %.4f, formula %.4f", seed, v.name, got, v.want)
		if v.want < got*0.9 || v.want > got*1.3 {
			t.Errorf("CCK %s: formula %g, simulated %g", v.name, v.want, got)
		}
	}
}

func cckWords(phases func(bits int) [4]float64, n int) [][8]complex128 {
	out := make([][8]complex128, n)
	for bits := range n {
		p := phases(bits)
		e := func(sum float64) complex128 { return cmplx.Exp(complex(0, sum)) }
		out[bits] = [8]complex128{
			e(p[0] + p[1] + p[2] + p[3]), e(p[0] + p[2] + p[3]), e(p[0] + p[1] + p[3]), -e(p[0] + p[3]),
			e(p[0] + p[1] + p[2]), e(p[0] + p[2]), -e(p[0] + p[1]), e(p[0])}
	}
	return out
}
