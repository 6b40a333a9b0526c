package propagation

import (
	"fmt"
	"math"
	"time"
)

const (
	// faderWaves: 8 suffice for the statistics of the model's paper; more bring
	// one link nearer to the average of all.
	faderWaves = 20
	// FadingHeadroom is how far above its mean the power may rise: Rayleigh's is
	// higher for a 22 000th of the time.
	FadingHeadroom = 10.0

	fadingRayleigh = "rayleigh"
	fadingRician   = "rician"
)

// Fader is the small-scale fading of one link: the sum of sinusoids of Xiao,
// Zheng and Beaulieu ("Novel sum-of-sinusoids simulation models for Rayleigh
// and Rician fading channels", IEEE Trans. Wireless Comm. 5(12), 2006), Clarke's
// isotropic scattering.
//
// It is written in space where they write it in time: wave n turns its phase by
// 2π/λ for each metre that the relative place of the two nodes moves along its
// direction of arrival. Under constant relative velocity v that is their model
// with the Doppler frequency v/λ; under any other motion it needs no history, so
// it depends on the seed and on where the nodes are at a model time only. The
// line of sight turns with the distance itself.
//
// Scatterers that move turn the waves also while both nodes stand: each by a Doppler frequency of
// its own, drawn from the bell of the TGn channel models (Erceg et al., IEEE 802.11-03/940r4,
// section 4.7.1): 1 / (1 + 9 (f/f_d)²) up to 5 f_d, where f_d is their speed by the wavelength.
type Fader struct {
	waves  [faderWaves]faderWave
	phase0 float64
	of     *FaderKind
	drift  *[faderWaves]float64 // steps a second that moving scatterers turn; nil: they stand
}

// faderWave is a wave: six bytes, because a frame asks for the waves of many links.
type faderWave struct {
	cos, sin int16 // of the direction of arrival, times waveUnit
	phase    uint16
}

const (
	waveUnit  = 1<<15 - 1
	placeUnit = 1 << 8 // parts of a step that places are in
	waveShift = 15 + 8
)

// FaderKind is what the faders of a field share.
type FaderKind struct {
	perM          float64 // phase in steps that a metre turns
	scatter, line float64 // amplitudes of a wave and of the line of sight
	dopplerHz     float64 // of moving scatterers
}

// NewFaderKind is what faders have in common at a wavelength.
func NewFaderKind(cfg FadingConfig, waveM float64) *FaderKind {
	k := &FaderKind{perM: phasorSteps / waveM, scatter: math.Sqrt(1.0 / faderWaves),
		dopplerHz: cfg.ScattererMps / waveM}
	if cfg.Model == fadingRician {
		ratio := DbToRatio(cfg.KFactorDb)
		k.line = math.Sqrt(ratio / (1 + ratio))
		k.scatter *= math.Sqrt(1 / (1 + ratio))
	}
	return k
}

// Turns is how often a wave may at most turn its phase in a move and a time.
func (k *FaderKind) Turns(movedM float64, in time.Duration) float64 {
	return movedM*k.perM/phasorSteps + bellDopplers*k.dopplerHz*in.Seconds()
}

// NewFader makes the fading of the link between two stations.
func NewFader(seed uint64, a, b int, kind *FaderKind) *Fader {
	s := newStream(seed, forFading, a, b)
	f := &Fader{of: kind, phase0: inSteps(s.phase())}
	for i := range f.waves {
		angle := (2*math.Pi*float64(i) + s.phase() - math.Pi) / faderWaves
		sin, cos := math.Sincos(angle)
		f.waves[i] = faderWave{int16(math.Round(waveUnit * cos)), int16(math.Round(waveUnit * sin)),
			uint16(inSteps(s.phase()))}
	}
	if kind.dopplerHz > 0 {
		f.drift = newDrift(&s, kind.dopplerHz)
	}
	return f
}

// bellDopplers is where the bell is cut off, in Doppler frequencies.
const bellDopplers = 5

// newDrift draws the waves' Doppler frequencies, one from each of as many strata, in steps a
// second.
func newDrift(s *stream, dopplerHz float64) *[faderWaves]float64 {
	var out [faderWaves]float64
	for i := range out {
		share := 2*(float64(i)+s.unit())/faderWaves - 1
		out[i] = phasorSteps * dopplerHz / 3 * math.Tan(share*math.Atan(3*bellDopplers))
	}
	for i := range out { // which wave has which is chance
		j := int(s.next() % uint64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return &out
}

// Power is the ratio to the mean power at a relative place and a time.
func (f *Fader) Power(xM, yM float64, at time.Duration) float64 {
	k := f.of
	xUnits, yUnits := int64(xM*k.perM*placeUnit), int64(yM*k.perM*placeUnit)
	var re, im float32
	for i := range f.waves {
		w := &f.waves[i]
		steps := (xUnits*int64(w.cos)+yUnits*int64(w.sin))>>waveShift + int64(w.phase)
		if f.drift != nil {
			steps += int64(math.Floor(f.drift[i] * at.Seconds()))
		}
		p := &phasors[steps&(phasorSteps-1)]
		re += p[0]
		im += p[1]
	}
	x, y := k.scatter*float64(re), k.scatter*float64(im)
	if k.line > 0 {
		p := phasor(k.perM*math.Hypot(xM, yM) + f.phase0)
		x += k.line * float64(p[0])
		y += k.line * float64(p[1])
	}
	return x*x + y*y
}

// Validate says what cannot be.
func (cfg FadingConfig) Validate() error {
	if !(cfg.ScattererMps >= 0 && cfg.ScattererMps <= 100) || cfg.ScattererMps > 0 && cfg.Model == "" {
		return fmt.Errorf("check fading: scatterers at %g m/s: 0 to 100 are possible, with a model", cfg.ScattererMps)
	}
	switch cfg.Model {
	case "", fadingRayleigh:
		return nil
	case fadingRician:
		if !(cfg.KFactorDb >= -30 && cfg.KFactorDb <= 40) {
			return fmt.Errorf("check fading: K factor %g dB: -30 to 40 is possible", cfg.KFactorDb)
		}
		return nil
	}
	return fmt.Errorf("check fading: model %q: %s and %s are known", cfg.Model, fadingRayleigh, fadingRician)
}
