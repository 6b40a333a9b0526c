package medium

import (
	"math"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

const fadingWaveM = propagation.SpeedOfLightMps / 2437e6

// fadeStats is what happened at one level.
type fadeStats struct{ lcrHz, afdS float64 }

// crossings lets node 1 move and counts, over independent links, how often per
// second the envelope rises through ρ times its root mean square, and how long
// it stays below on average.
func crossings(t *testing.T, fading propagation.FadingConfig, speedMps float64, rhos []float64,
	path func(s float64) (x, y float64)) []fadeStats {
	const links, waves, stepsPerWave = 120, 40, 100
	const steps = waves * stepsPerWave
	stepS := fadingWaveM / stepsPerWave / speedMps
	up, below := make([]float64, len(rhos)), make([]float64, len(rhos))
	for seed := range uint64(links) {
		cfg := testConfig(phy.Standard80211g, 6, 2)
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
		doppler := speed / fadingWaveM
		got := crossings(t, propagation.FadingConfig{Model: "rayleigh"}, speed, rhos, func(s float64) (x, y float64) {
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
	k := propagation.DbToRatio(kDb)
	for _, speed := range []float64{1.4, 8.3, 16.7} {
		doppler := speed / fadingWaveM
		got := crossings(t, propagation.FadingConfig{Model: "rician", KFactorDb: kDb}, speed, rhos, circle)
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

// A frame that is longer than the channel stays the same is lost as often as the error rate
// says that goes with the power of each moment, and not as its start alone would have it.
func TestFadingWithinLongFrames(t *testing.T) {
	const frames, bytes, speedMps, parts = 4000, 1000, 17.0, 400
	cfg := testConfig(phy.Standard80211b, 1, 2) // 8.6 ms: 1.2 wavelengths
	cfg.Fading = propagation.FadingConfig{Model: "rayleigh"}
	cfg.Nodes[0].TxPowerDbm = 14
	c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
		sin, cos := math.Sincos(speedMps / 160 * at.Seconds())
		return 160 * float64(n) * cos, 160 * float64(n) * sin
	}, newRecorder(2))
	p, want, byStart := c.phy, 0.0, 0.0
	m, bits := &p.Modes[0], phy.PayloadBits(&p.Modes[0], dot11.MPDUBytes(dot11.EthernetHeaderBytes+bytes))
	for i := range frames {
		c.Enqueue(0, ethernet(0, -1, i, bytes))
		mean := c.links.meanMw(0, 1) / c.stations[1].noiseMw
		start := mean * c.links.fadingNow(0, 1)
		moments, whole := 0.0, math.Inf(-1)
		for k := range parts {
			at := c.Now() + p.Preamble + time.Duration((float64(k)+0.5)/parts*float64(bits)*1e3)
			moments += m.LogSuccess(mean*c.links.fadingAt(0, 1, at), bits/parts)
		}
		if start >= p.LockSNR {
			whole = p.Header.LogSuccess(start, p.HeaderBits)
		}
		want += phy.LostShare(whole+moments) / frames
		byStart += phy.LostShare(whole+m.LogSuccess(start, bits)) / frames
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

// What lies around them stands: two cars that drive side by side see the channel change within
// milliseconds, as one does that passes. Two that stand see none that does, and the way back is the same.
func TestFadingFollowsEitherMotion(t *testing.T) {
	for _, v := range []struct {
		what   string
		speeds [2]float64
		moves  bool
	}{
		{"convoy", [2]float64{16.7, 16.7}, true},
		{"pass", [2]float64{16.7, 0}, true},
		{"both stand", [2]float64{}, false},
	} {
		cfg := testConfig(phy.Standard80211g, 6, 2)
		cfg.Fading = propagation.FadingConfig{Model: "rayleigh"}
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
	cfg := testConfig(phy.Standard80211g, 6, 2)
	cfg.Fading = propagation.FadingConfig{Model: "rayleigh"}
	c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
		sin, cos := math.Sincos(0.1 * at.Seconds())
		return 160 * float64(n) * cos, 160 * float64(n) * sin // 16 m/s, always 160 m away
	}, newRecorder(2))
	const frames, bytes = 6000, 54
	for i := range frames {
		c.Enqueue(0, ethernet(0, -1, i, bytes-dot11.EthernetHeaderBytes))
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
		if snr < p.LockSNR {
			want += 1.0 / parts
			continue
		}
		want += p.FrameErrorRate(p.Modes[0], snr, dot11.MPDUBytes(bytes)) / parts
	}
	got := float64(n.Lost[ChannelError]) / frames
	t.Logf("%.3f of the frames lost, %.3f by theory", got, want)
	within(t, "lost in fades", got, want, 0.1)
}
