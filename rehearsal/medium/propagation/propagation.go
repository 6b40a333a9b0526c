package propagation

import (
	"fmt"
	"math"
)

const SpeedOfLightMps = 299792458.0

// MinDistanceM keeps two antennas in each other's far field: nearer than this
// the formulas mean nothing, and the loss stays what it is here.
const MinDistanceM = 1.0

// Model is the loss of power between two isotropic antennas.
type Model interface {
	// LossDb is the path loss in dB, never negative in the far field.
	LossDb(distanceM, txHeightM, rxHeightM float64) float64
}

// ReachM is the distance up to which the loss between two antennas of a height is within a budget: 0 when it is
// nowhere, 1000 km at most.
func ReachM(m Model, heightM, budgetDb float64) float64 {
	near, far := MinDistanceM, 1e6
	if m.LossDb(near, heightM, heightM) > budgetDb {
		return 0
	}
	for far-near > 1e-3 {
		mid := math.Sqrt(near * far) // the scale is one of ratios
		if m.LossDb(mid, heightM, heightM) <= budgetDb {
			near = mid
		} else {
			far = mid
		}
	}
	return near
}

// FreeSpace is Friis's law (Rappaport, Wireless Communications, 2nd ed.,
// section 4.2): the loss grows by 20 dB a decade.
type FreeSpace struct{ FrequencyHz float64 }

// LossDb is 20 log10(4 π d f / c).
func (p FreeSpace) LossDb(distanceM, _, _ float64) float64 {
	d := math.Max(distanceM, MinDistanceM)
	return 20 * math.Log10(4*math.Pi*d*p.FrequencyHz/SpeedOfLightMps)
}

// LogDistance is the log-distance law without its shadowing term (Rappaport,
// section 4.9.1): free space to ReferenceM, then 10·Exponent dB a decade.
type LogDistance struct {
	FrequencyHz float64
	Exponent    float64
	ReferenceM  float64
}

// LossDb is free space's loss at the reference plus 10 n log10(d / d0).
func (p LogDistance) LossDb(distanceM, _, _ float64) float64 {
	free := FreeSpace{p.FrequencyHz}
	if distanceM <= p.ReferenceM {
		return free.LossDb(distanceM, 0, 0)
	}
	return free.LossDb(p.ReferenceM, 0, 0) + 10*p.Exponent*math.Log10(distanceM/p.ReferenceM)
}

// TwoRayGround is the direct ray and its reflection off flat ground: beyond the
// crossover 4 π ht hr / λ the loss is 40 log10 d − 20 log10(ht hr) (Rappaport,
// section 4.6), and before it free space, where the two laws meet; the split is
// ns-2's.
type TwoRayGround struct{ FrequencyHz float64 }

// CrossoverM is where the fourth-power law takes over.
func (p TwoRayGround) CrossoverM(txHeightM, rxHeightM float64) float64 {
	return 4 * math.Pi * txHeightM * rxHeightM * p.FrequencyHz / SpeedOfLightMps
}

// LossDb is the loss of the side of the crossover that the distance is on.
func (p TwoRayGround) LossDb(distanceM, txHeightM, rxHeightM float64) float64 {
	d := math.Max(distanceM, MinDistanceM)
	if d < p.CrossoverM(txHeightM, rxHeightM) {
		return FreeSpace(p).LossDb(d, 0, 0)
	}
	return 40*math.Log10(d) - 20*math.Log10(txHeightM*rxHeightM)
}

// Disc is the unit disc of ns-2-era studies: whoever is within RangeM gets a frame whole, unless another radio within
// CarrierSenseM of him sends at the same time; within CarrierSenseM the channel is sensed busy, and a frame that cannot
// be read is followed by EIFS. Powers, antennas and noise do not matter in it. Its overlaps are harsher than those of
// ns-2's radio, for which see phy.RadioNS2WaveLAN: there a frame survives a later one that is 10 dB weaker, and here
// none.
type Disc struct{ RangeM, CarrierSenseM float64 }

// discRatio is ns-2's 550 m to 250 m.
const discRatio = 2.2

// LossDb is 0 inside and infinite outside.
func (p Disc) LossDb(distanceM, _, _ float64) float64 {
	if distanceM <= p.RangeM {
		return 0
	}
	return math.Inf(1)
}

// New makes the model that a configuration names.
func New(cfg Config, freqHz float64) (Model, error) {
	switch cfg.Model {
	case "free_space":
		return FreeSpace{freqHz}, nil
	case "log_distance":
		if !(cfg.Exponent >= 1 && cfg.Exponent <= 8) {
			return nil, fmt.Errorf("check propagation: log_distance exponent %g: 1 to 8 is possible", cfg.Exponent)
		}
		ref := cfg.ReferenceM
		if ref == 0 {
			ref = MinDistanceM
		}
		if !(ref >= MinDistanceM) {
			return nil, fmt.Errorf("check propagation: reference distance %g m is below %g m", ref, MinDistanceM)
		}
		return LogDistance{freqHz, cfg.Exponent, ref}, nil
	case "two_ray_ground":
		return TwoRayGround{freqHz}, nil
	case "disc":
		if !(cfg.RangeM > 0 && cfg.RangeM <= 1e6) {
			return nil, fmt.Errorf("check propagation: disc of %g m: its range_m must be above 0", cfg.RangeM)
		}
		sense := cfg.CarrierSenseM
		if sense == 0 {
			sense = discRatio * cfg.RangeM
		}
		if !(sense >= cfg.RangeM && sense <= 1e6) {
			return nil, fmt.Errorf("check propagation: carrier sense to %g m is less than the range of %g m", sense,
				cfg.RangeM)
		}
		return Disc{cfg.RangeM, sense}, nil
	}
	return nil, fmt.Errorf("check propagation: model %q: free_space, log_distance, two_ray_ground and disc are known",
		cfg.Model)
}

// DbToRatio is a level in dB as a ratio of powers.
func DbToRatio(db float64) float64 { return math.Exp(db * (math.Ln10 / 10)) }

// RatioToDb is a ratio of powers in dB.
func RatioToDb(ratio float64) float64 { return 10 * math.Log10(ratio) }
