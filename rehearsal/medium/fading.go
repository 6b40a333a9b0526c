package medium

import (
	"fmt"
	"math"
)

const (
	// faderWaves: 8 suffice for the statistics of the model's paper; more bring
	// one link nearer to the average of all.
	faderWaves = 20
	// fadingHeadroom is how far above its mean the power may rise: Rayleigh's is
	// higher for a 22 000th of the time.
	fadingHeadroom = 10.0

	fadingRayleigh = "rayleigh"
	fadingRician   = "rician"
)

// fader is the small-scale fading of one link: the sum of sinusoids of Xiao,
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
type fader struct {
	perM    float64 // 2π/λ
	scatter float64 // amplitude of a wave
	line    float64 // amplitude of the line of sight
	phase0  float64
	cos     [faderWaves]float64 // of the direction of arrival
	sin     [faderWaves]float64
	phase   [faderWaves]float64
}

func newFader(seed uint64, a, b int, cfg FadingConfig, waveM float64) *fader {
	s := newStream(seed, forFading, a, b)
	f := &fader{perM: 2 * math.Pi / waveM, scatter: math.Sqrt(1.0 / faderWaves)}
	if cfg.Model == fadingRician {
		k := dbToRatio(cfg.KFactorDb)
		f.line = math.Sqrt(k / (1 + k))
		f.scatter *= math.Sqrt(1 / (1 + k))
	}
	f.phase0 = s.phase()
	for i := range faderWaves {
		angle := (2*math.Pi*float64(i) + s.phase() - math.Pi) / faderWaves
		f.sin[i], f.cos[i] = math.Sincos(angle)
		f.phase[i] = s.phase()
	}
	return f
}

// power is the ratio to the mean power at a relative place.
func (f *fader) power(xM, yM float64) float64 {
	im, re := math.Sincos(f.perM*math.Hypot(xM, yM) + f.phase0)
	re, im = f.line*re, f.line*im
	for i := range faderWaves {
		s, c := math.Sincos(f.perM*(xM*f.cos[i]+yM*f.sin[i]) + f.phase[i])
		re += f.scatter * c
		im += f.scatter * s
	}
	return re*re + im*im
}

func (cfg FadingConfig) validate() error {
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
