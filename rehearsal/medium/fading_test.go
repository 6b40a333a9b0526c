package medium

import (
	"math"
	"testing"
	"time"
)

const testWaveM = speedOfLightMps / 2437e6

// fadeStats is what happened at one level.
type fadeStats struct{ lcrHz, afdS float64 }

// crossings lets node 1 move and counts, over independent links, how often per
// second the envelope rises through ρ times its root mean square, and how long
// it stays below on average.
func crossings(t *testing.T, fading FadingConfig, speedMps float64, rhos []float64,
	path func(s float64) (x, y float64)) []fadeStats {
	const links, waves, stepsPerWave = 120, 40, 100
	const steps = waves * stepsPerWave
	stepS := testWaveM / stepsPerWave / speedMps
	up, below := make([]float64, len(rhos)), make([]float64, len(rhos))
	for seed := range uint64(links) {
		cfg := testConfig(Standard80211g, 6, 2)
		cfg.Seed, cfg.Fading = seed, fading
		c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
			if n == 0 {
				return 0, 0
			}
			return path(speedMps * at.Seconds())
		}, newRecorder(2))
		was := make([]bool, len(rhos))
		for i := range steps {
			c.Advance(time.Duration(float64(i) * stepS * 1e9))
			power := c.links.fadingNow(0, 1)
			for j, rho := range rhos {
				is := power < rho*rho
				if is {
					below[j]++
				}
				if was[j] && !is {
					up[j]++
				}
				was[j] = is
			}
		}
	}
	out := make([]fadeStats, len(rhos))
	for j := range rhos {
		out[j] = fadeStats{up[j] / (links * steps * stepS), below[j] * stepS / up[j]}
	}
	return out
}

// Rayleigh: N = √(2π) f_d ρ exp(-ρ²), τ = (exp(ρ²) - 1) / (ρ f_d √(2π))
// (Rappaport, Wireless Communications, 2nd ed., section 5.7.3).
func TestRayleighLevelCrossingsAndFadeDurations(t *testing.T) {
	rhos := []float64{0.1, 0.3, 1}
	for _, speed := range []float64{1.4, 8.3, 16.7} {
		doppler := speed / testWaveM
		got := crossings(t, FadingConfig{Model: "rayleigh"}, speed, rhos, func(s float64) (x, y float64) {
			return 500 + 0.6*s, 0.8 * s
		})
		for j, rho := range rhos {
			wantLCR := math.Sqrt(2*math.Pi) * doppler * rho * math.Exp(-rho*rho)
			wantAFD := math.Expm1(rho*rho) / (rho * doppler * math.Sqrt(2*math.Pi))
			checkFades(t, speed, rho, got[j], fadeStats{wantLCR, wantAFD})
		}
	}
}

// Rician with the line of sight standing still (a circle around the other):
// N = √(2π(K+1)) f_d ρ exp(-K-(K+1)ρ²) I0(2ρ√(K(K+1))), and the fades' share of
// time is 1 - Q1(√(2K), ρ√(2(K+1))) (Stüber, Principles of Mobile
// Communication, 2nd ed., section 2.1.4).
func TestRicianLevelCrossingsAndFadeDurations(t *testing.T) {
	const radiusM = 1000
	circle := func(s float64) (x, y float64) {
		sin, cos := math.Sincos(s / radiusM)
		return radiusM * cos, radiusM * sin
	}
	rhos := []float64{0.3, 0.5, 1}
	const kDb = 3.0
	k := dbToRatio(kDb)
	for _, speed := range []float64{1.4, 8.3, 16.7} {
		doppler := speed / testWaveM
		got := crossings(t, FadingConfig{Model: "rician", KFactorDb: kDb}, speed, rhos, circle)
		for j, rho := range rhos {
			wantLCR := math.Sqrt(2*math.Pi*(k+1)) * doppler * rho * math.Exp(-k-(k+1)*rho*rho) *
				besselI0(2*rho*math.Sqrt(k*(k+1)))
			checkFades(t, speed, rho, got[j], fadeStats{wantLCR, riceBelow(k, rho) / wantLCR})
		}
	}
}

func checkFades(t *testing.T, speedMps, rho float64, got, want fadeStats) {
	t.Helper()
	t.Logf("%g m/s, ρ = %g: %.2f crossings/s, want %.2f; fades of %.3g s, want %.3g", speedMps, rho, got.lcrHz,
		want.lcrHz, got.afdS, want.afdS)
	within(t, "level crossing rate", got.lcrHz, want.lcrHz, 0.1)
	within(t, "average fade duration", got.afdS, want.afdS, 0.1)
}

// besselI0 is the modified Bessel function's power series.
func besselI0(x float64) float64 {
	sum, term := 1.0, 1.0
	for i := 1.0; term > 1e-15*sum; i++ {
		term *= x * x / 4 / (i * i)
		sum += term
	}
	return sum
}

// riceBelow is the chance that a Rician envelope is below ρ times its root mean
// square: its density, integrated.
func riceBelow(k, rho float64) float64 {
	const n = 20000
	sum := 0.0
	for i := range n {
		r := rho * (float64(i) + 0.5) / n
		sum += 2 * (k + 1) * r * math.Exp(-k-(k+1)*r*r) * besselI0(2*r*math.Sqrt(k*(k+1))) * rho / n
	}
	return sum
}

// The autocorrelation of the scattered part is J0(2π f_d τ) = J0(2π d/λ)
// (Clarke; Jakes, Microwave Mobile Communications, 1974).
func TestFadingDecorrelatesAsBessel(t *testing.T) {
	const links = 20000
	for _, d := range []float64{0.1, 0.25, 0.38, 0.6} { // in wavelengths; J0 is 0 at 0.38
		// For a complex Gaussian the powers' correlation is the field's squared.
		var p0, p1, both float64
		for i := range links {
			f := newFader(6, i, i+1, newFaderKind(FadingConfig{Model: "rayleigh"}, testWaveM))
			a, b := f.power(100, 20, 0), f.power(100, 20+d*testWaveM, 0)
			p0, p1, both = p0+a/links, p1+b/links, both+a*b/links
		}
		got, want := both/(p0*p1)-1, math.Pow(math.J0(2*math.Pi*d), 2)
		t.Logf("moved by %g wavelengths: correlation of power %.3f, want %.3f; mean power %.3f", d, got, want, p0)
		// 20 waves take 1/20 off a Gaussian's.
		if math.Abs(got-want) > 0.07 || math.Abs(p0-1) > 0.03 {
			t.Errorf("moved by %g wavelengths: correlation %g, want %g; mean power %g, want 1", d, got, want, p0)
		}
	}
}

// With scatterers that move, the field of two nodes that stand decorrelates as the bell of the TGn
// models says: exp(-2π f_d τ / 3), a bell without its cut-off being Lorentz's.
func TestMovingScatterersFadeStandingNodes(t *testing.T) {
	const links, speedMps = 20000, 0.5
	kind := newFaderKind(FadingConfig{Model: "rayleigh", ScattererMps: speedMps}, testWaveM)
	for _, seconds := range []float64{0.02, 0.05, 0.1, 0.3} {
		var p0, p1, both float64
		for i := range links {
			f := newFader(6, i, i+1, kind)
			a, b := f.power(100, 20, time.Second), f.power(100, 20, time.Second+time.Duration(seconds*1e9))
			p0, p1, both = p0+a/links, p1+b/links, both+a*b/links
		}
		got, want := both/(p0*p1)-1, math.Exp(-2*2*math.Pi*speedMps/testWaveM*seconds/3)
		t.Logf("after %g s: correlation of power %.3f, want %.3f; mean power %.3f", seconds, got, want, p0)
		if math.Abs(got-want) > 0.07 || math.Abs(p1-1) > 0.03 { // as for Bessel
			t.Errorf("after %g s: correlation %g, want %g; mean power %g, want 1", seconds, got, want, p1)
		}
	}
}

// The tables of phasors against the sum of cosines that they stand for, in powers that
// matter: 30 dB below the mean and above.
func TestFaderAgainstItsFormula(t *testing.T) {
	for _, cfg := range []FadingConfig{{Model: "rayleigh"}, {Model: "rician", KFactorDb: 6}} {
		kind, worst := newFaderKind(cfg, testWaveM), 0.0
		for i := range 5000 {
			f := newFader(3, i, i+1, kind)
			x, y := 3000*math.Sin(float64(i)), 3000*math.Cos(float64(i))
			sin, cos := math.Sincos(2*math.Pi*(math.Hypot(x, y)/testWaveM) + f.phase0*2*math.Pi/phasorSteps)
			re, im := kind.line*cos, kind.line*sin
			for _, w := range f.waves {
				turns := (x*float64(w.cos)+y*float64(w.sin))/(1<<15)/testWaveM + float64(w.phase)/phasorSteps
				s, c := math.Sincos(2 * math.Pi * turns)
				re, im = re+kind.scatter*c, im+kind.scatter*s
			}
			if want := re*re + im*im; want > 1e-3 {
				worst = math.Max(worst, math.Abs(ratioToDb(f.power(x, y, 0)/want)))
			}
		}
		t.Logf("%s: at most %.3f dB from the formula", cfg.Model, worst)
		if worst > 0.2 {
			t.Errorf("%s: %g dB from the formula", cfg.Model, worst)
		}
	}
}

// A frame that is longer than the channel stays the same is lost as often as the error rate
// says that goes with the power of each moment, and not as its start alone would have it.
func TestFadingWithinLongFrames(t *testing.T) {
	const frames, bytes, speedMps, parts = 4000, 1000, 17.0, 400
	cfg := testConfig(Standard80211b, 1, 2) // 8.6 ms: 1.2 wavelengths
	cfg.Fading = FadingConfig{Model: "rayleigh"}
	cfg.Nodes[0].TxPowerDbm = 14
	c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
		sin, cos := math.Sincos(speedMps / 160 * at.Seconds())
		return 160 * float64(n) * cos, 160 * float64(n) * sin
	}, newRecorder(2))
	p, want, byStart := c.phy, 0.0, 0.0
	m, bits := &p.modes[0], payloadBits(p.modes[0], mpduBytes(ethernetHeaderBytes+bytes))
	for i := range frames {
		c.Enqueue(0, ethernet(0, -1, i, bytes))
		mean := c.links.meanMw(0, 1) / c.stations[1].noiseMw
		start := mean * c.links.fadingNow(0, 1)
		moments, whole := 0.0, math.Inf(-1)
		for k := range parts {
			at := c.Now() + p.preamble + time.Duration((float64(k)+0.5)/parts*float64(bits)*1e3)
			moments += m.logSuccess(mean*c.links.fadingAt(0, 1, at), bits/parts)
		}
		if start >= p.lockSNR {
			whole = p.header.logSuccess(start, p.headerBits)
		}
		want += lostShare(whole+moments) / frames
		byStart += lostShare(whole+m.logSuccess(start, bits)) / frames
		c.Advance(c.Now() + 20*time.Millisecond)
	}
	n := c.Counters(0)
	got := float64(n.Lost.Total()) / frames
	t.Logf("seed %d: %.3f of the frames lost, %.3f by the power of each moment, %.3f by that of their start", cfg.Seed,
		got, want, byStart)
	within(t, "lost in frames longer than the channel stays", got, want, 0.06)
	if got < 1.2*byStart {
		t.Errorf("%g of the frames lost, %g by the power of their start", got, byStart)
	}
}

// Two cars side by side see a channel that stands still; one that passes sees
// it change within milliseconds.
func TestFadingFollowsRelativeMotion(t *testing.T) {
	for _, v := range []struct {
		what   string
		speeds [2]float64
		moves  bool
	}{{"convoy", [2]float64{16.7, 16.7}, false}, {"pass", [2]float64{16.7, 0}, true}} {
		cfg := testConfig(Standard80211g, 6, 2)
		cfg.Fading = FadingConfig{Model: "rayleigh"}
		c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
			return 5*float64(n) + v.speeds[n]*at.Seconds(), 0
		}, newRecorder(2))
		low, high := math.Inf(1), math.Inf(-1)
		for range 200 {
			c.Advance(c.Now() + time.Millisecond)
			c.links.refresh()
			p := c.links.fadingNow(0, 1)
			low, high = min(low, p), max(high, p)
			if back := c.links.fadingNow(1, 0); back != p {
				t.Fatalf("%s: %g there and %g back", v.what, p, back)
			}
		}
		if moves := high > 2*low; moves != v.moves {
			t.Errorf("%s: power from %g to %g of its mean in 200 ms", v.what, low, high)
		}
	}
}

// A frame that a fade swallows on a link that carries its mean is a channel
// error, not out of range; and the share of such losses is that of the error
// rate averaged over the exponential power of Rayleigh fading.
func TestFramesLostInFadesAreChannelErrors(t *testing.T) {
	cfg := testConfig(Standard80211g, 6, 2)
	cfg.Fading = FadingConfig{Model: "rayleigh"}
	c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
		sin, cos := math.Sincos(0.1 * at.Seconds())
		return 160 * float64(n) * cos, 160 * float64(n) * sin // 16 m/s, always 160 m away
	}, newRecorder(2))
	const frames, bytes = 6000, 54
	for i := range frames {
		c.Enqueue(0, ethernet(0, -1, i, bytes-ethernetHeaderBytes))
		c.Advance(c.Now() + 5*time.Millisecond)
	}
	n := c.Counters(0)
	if n.Lost[OutOfRange] != 0 || n.Lost[ChannelError] == 0 {
		t.Fatalf("lost %v: want channel errors only", n.Lost)
	}
	p, mean := c.phy, c.links.meanMw(0, 1)/c.stations[1].noiseMw
	want := 0.0
	const parts = 4000
	for i := range parts {
		snr := -mean * math.Log((float64(i)+0.5)/parts)
		if snr < p.lockSNR {
			want += 1.0 / parts
			continue
		}
		want += p.frameErrorRate(p.modes[0], snr, mpduBytes(bytes)) / parts
	}
	got := float64(n.Lost[ChannelError]) / frames
	t.Logf("%.3f of the frames lost, %.3f by theory", got, want)
	within(t, "lost in fades", got, want, 0.1)
}
