package propagation

import (
	"fmt"
	"math"
)

const (
	// shadowWaves makes the sum nearly Gaussian: its excess kurtosis is
	// -1.5 / 64.
	shadowWaves = 64
	// ShadowHeadroom is in standard deviations: 3 in 100 000 links are better.
	ShadowHeadroom = 4.0
)

// ShadowField is log-normal shadowing with Gudmundson's correlation ("Correlation
// model for shadow fading in mobile radio systems", Electronics Letters 27(23),
// 1991): exp(-d / d0) when one end moves by d; when both do, the product of
// the two. He measured a deviation of 7.5 dB and 0.82 over 100 m (d0 = 500 m)
// in suburbs at 900 MHz, 4.3 dB and 0.3 over 10 m (d0 = 8.3 m) in a city at
// 1.7 GHz.
//
// It is a sum of plane waves over the places of both ends (Cai and Giannakis,
// "A two-dimensional channel simulation model for shadowing processes", IEEE
// Trans. Veh. Tech. 52(6), 2003), a function of seed and places: who comes
// back finds the same shadow. Waves are common to all links; phases, and how
// the waves are turned at either end, are each link's own: links are independent
// of each other, and on average over them the correlation holds in one field.
//
// Links of one node are not, where NodeCorrelation says so: a part of the shadow is the sum of two
// values of a field of its own over the places of single nodes, one at each end (after
// Klingenbrunn and Mogensen, "Modelling cross-correlated shadowing in network simulations", VTC
// 1999; Agrawal and Patwari, "Correlated link shadow fading in multi-hop wireless networks", IEEE
// Trans. Wireless Comm. 8(8), 2009, measured correlations up to 0.33). That part's correlation is the
// mean of both ends' when both move.
type ShadowField struct {
	seed  uint64
	scale float64 // dB a wave of what is the link's own
	nodes float64 // dB a wave of what is an end's
	cellM float64 // side of the squares within which it stays the same
	waves [shadowWaves]shadowWave
}

// shadowWave is the wave numbers at either end of a link: the phase, in steps, that a metre turns.
type shadowWave struct{ ax, ay, bx, by float64 }

// NewShadowField draws the shadowing of a field.
func NewShadowField(seed uint64, cfg ShadowingConfig) *ShadowField {
	wave := cfg.SigmaDb * math.Sqrt(2.0/shadowWaves)
	f := &ShadowField{seed: seed, scale: wave * math.Sqrt(1-2*cfg.NodeCorrelation),
		nodes: wave * math.Sqrt(cfg.NodeCorrelation),
		cellM: cfg.DecorrelationM / shadowCells}
	s := newStream(seed, forShadowField, 0, 0)
	first, second := shuffled(&s), shuffled(&s)
	for i := range f.waves {
		w := &f.waves[i]
		w.ax, w.ay = shadowWaveNumber(&s, first[i], cfg.DecorrelationM)
		w.bx, w.by = shadowWaveNumber(&s, second[i], cfg.DecorrelationM)
	}
	return f
}

// shadowWaveNumber draws from the spectrum of exp(-d/d0) in the plane, whose
// density falls as k (1/d0² + k²)^(-3/2) with the wave number: its distribution
// is 1 - 1/√(1 + k² d0²). Each of the strata is drawn from once, which brings
// the correlation of one seed closer to that of all.
func shadowWaveNumber(s *stream, stratum int, decorrelationM float64) (kx, ky float64) {
	left := 1 - (float64(stratum)+s.unit())/shadowWaves // in (0, 1]
	k := math.Sqrt(1/(left*left)-1) / decorrelationM
	sin, cos := math.Sincos(s.phase())
	return inSteps(k * cos), inSteps(k * sin)
}

func shuffled(s *stream) (out [shadowWaves]int) {
	for i := range out {
		j := int(s.next() % uint64(i+1))
		out[i], out[j] = out[j], i
	}
	return out
}

// shadowCells is how many squares a side, within which the shadow stays the same, the
// decorrelation distance has. The correlation over one of them is 0.95.
const shadowCells = 20

// Cell is the square that a place is in.
type Cell struct{ x, y int32 }

// Cell is the square that a place lies in.
func (f *ShadowField) Cell(xM, yM float64) Cell {
	return Cell{int32(math.Floor(xM / f.cellM)), int32(math.Floor(yM / f.cellM))}
}

// middle is the middle of a square, turned.
func (f *ShadowField) middle(c Cell, angle float64) (x, y float64) {
	sin, cos := math.Sincos(angle)
	xM, yM := (float64(c.x)+0.5)*f.cellM, (float64(c.y)+0.5)*f.cellM
	return cos*xM - sin*yM, sin*xM + cos*yM
}

// AtDb is the gain (negative: loss) of the link between two stations, a < b.
func (f *ShadowField) AtDb(a, b int, from, to Cell) float64 {
	s := newStream(f.seed, forShadowLink, a, b)
	fromX, fromY := f.middle(from, s.phase())
	toX, toY := f.middle(to, s.phase())
	sum := float32(0)
	for i := range f.waves {
		w := &f.waves[i]
		phase := float64(s.next()>>40) * (phasorSteps / float64(1<<24))
		sum += phasor(w.ax*fromX + w.ay*fromY + w.bx*toX + w.by*toY + phase)[0]
	}
	gainDb := f.scale * float64(sum)
	if f.nodes > 0 {
		gainDb += f.nodeDb(from) + f.nodeDb(to)
	}
	return gainDb
}

// nodeDb is an end's part of the gain.
func (f *ShadowField) nodeDb(c Cell) float64 {
	s := newStream(f.seed, forShadowNode, 0, 0)
	x, y := f.middle(c, 0)
	sum := float32(0)
	for i := range f.waves {
		w := &f.waves[i]
		sum += phasor(w.ax*x + w.ay*y + inSteps(s.phase()))[0]
	}
	return f.nodes * float64(sum)
}

// Validate says what cannot be.
func (cfg ShadowingConfig) Validate() error {
	switch {
	case !(cfg.SigmaDb >= 0 && cfg.SigmaDb <= 30):
		return fmt.Errorf("check shadowing: standard deviation %g dB: 0 to 30 is possible", cfg.SigmaDb)
	case !(cfg.NodeCorrelation >= 0 && cfg.NodeCorrelation <= 0.5):
		return fmt.Errorf("check shadowing: correlation %g of a node's links: 0 to 0.5 is possible",
			cfg.NodeCorrelation)
	case cfg.SigmaDb > 0 && !(cfg.DecorrelationM > 0 && cfg.DecorrelationM <= 1e6):
		return fmt.Errorf("check shadowing: decorrelation distance %g m must be above 0", cfg.DecorrelationM)
	}
	return nil
}
