// Package propagation is what lies between two antennas: the loss of power with
// distance, shadowing and fading on top of it, and errors in bursts. All of it is a
// function of the seed, of places and of the model's time. Who hears whom, and what a
// receiver makes of it, is package medium's.
package propagation

// Config chooses the loss of power with distance.
type Config struct {
	Model string // free_space | log_distance | two_ray_ground | disc
	// Exponent is log-distance's path loss exponent: 2 in free space, 2.7 to
	// 3.5 in urban streets (Rappaport, Wireless Communications, 2nd ed.,
	// table 4.2).
	Exponent float64
	// ReferenceM is log-distance's close-in distance; 0 means 1 m.
	ReferenceM float64
	// RangeM is the disc's radius of reception; powers and antennas do not
	// matter in it. phy.RadioNS2WaveLAN at its usual power receives so far; 0 means its 250 m.
	RangeM float64
	// CarrierSenseM is the disc's radius of carrier sense and interference, at
	// least RangeM; 0 means 2.2 times RangeM, the ratio of ns-2's 550 m to its 250 m.
	CarrierSenseM float64
}

// ShadowingConfig is log-normal shadowing correlated over distance.
type ShadowingConfig struct {
	SigmaDb        float64 // standard deviation; 0 is off
	DecorrelationM float64 // a node moved so far keeps 1/e of the correlation
	// NodeCorrelation is that of the shadows of two links that have one end in common and the
	// others far apart: 0 to 0.5.
	NodeCorrelation float64
}

// FadingConfig is small-scale fading. It is fixed in space, so that it changes as fast as the two
// nodes move relative to each other, unless scatterers move too.
type FadingConfig struct {
	Model     string  // empty: off | rayleigh | rician
	KFactorDb float64 // rician: line of sight to scattered power
	// ScattererMps is how fast scatterers move: 0 not at all; the TGn channel models take 1.2
	// km/h in buildings.
	ScattererMps float64
}

// ChannelErrorConfig is a two-state Markov channel (Gilbert–Elliott) on every
// directed link: a data frame that arrives in the bad state is lost. Exactly
// one of the two burst lengths is set when Mean is.
type ChannelErrorConfig struct {
	Mean        float64 // share of data frames lost, 0 (off) to below 1
	BurstFrames float64 // mean run of frames lost, in frames on that link, ≥ 1
	BurstS      float64 // mean stay in the bad state, in seconds of model time
}
