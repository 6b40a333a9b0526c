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
// 2π/λ for each metre that either node moves along the wave's direction there. Of
// one that moves at v while the other stands that is their model, with the
// Doppler frequency v/λ. What moves needs no history: fading depends on the seed
// and on where the nodes are at a model time only. The line of sight turns with
// the distance itself.
//
// The scatterers of both ends stand, so that two nodes that drive side by side
// fade as well: the correlation is that of the one's motion times that of the
// other's, J0(2π d₁/λ) J0(2π d₂/λ) (Akki and Haber, "A statistical model of
// mobile-to-mobile land communication channel", IEEE Trans. Veh. Tech. 35(1),
// 1986). It is so on average over links. Of one link it is the mean over five
// angles, 72 degrees apart, between the two motions as its waves see them: over
// all angles J0 of their sum's length has that product for its mean.
//
// Scatterers that move turn the waves also while both nodes stand: each by a Doppler frequency of
// its own, drawn from the bell of the TGn channel models (Erceg et al., IEEE 802.11-03/940r4,
// section 4.7.1): 1 / (1 + 9 (f/f_d)²) up to 5 f_d, where f_d is their speed by the wavelength.
//
// The waves come from directions that lie 18 degrees apart: four of them are the directions along and
// across one and their opposites. A fader has 64 bytes, because a frame asks for those of many links.
type Fader struct {
	turns  faderTurns         // at the node with the higher number
	phases [faderWaves]uint16 // in 65536ths of a turn; those of turn i begin at 4i
	line   uint16             // phase of the line of sight
	drift  uint8              // which of the kind's drifts it has
	others uint8              // which of otherTurns it has at the node with the lower number
}

// faderTurn is a direction, times waveUnit.
type faderTurn struct{ cos, sin int16 }

type faderTurns [faderWaves / 4]faderTurn

// newTurns are directions that begin with an angle and lie so far apart.
func newTurns(angle, apart float64) (out faderTurns) {
	for i := range out {
		sin, cos := math.Sincos(angle + apart*float64(i))
		out[i] = faderTurn{int16(math.Round(waveUnit * cos)), int16(math.Round(waveUnit * sin))}
	}
	return out
}

// apart is the angle from one wave's direction to the next.
const apart = 2 * math.Pi / faderWaves

// otherTurns are what faders choose from for the node with the lower number. They go back by three while those of the
// higher go on by one: twenty directions, and 72 degrees more between both ends with each four waves.
var otherTurns = func() (out [256]faderTurns) {
	for i := range out {
		out[i] = newTurns(2*math.Pi*float64(i)/float64(len(out)), -3*apart)
	}
	return out
}()

const (
	waveUnit   = 1<<15 - 1
	placeUnit  = 1 << 8 // parts of a step that places are in
	phaseShift = 16 - 12
	waveShift  = 15 + 8 - phaseShift
)

// FaderKind is what the faders of a field share.
type FaderKind struct {
	perM          float64 // phase in steps that a metre turns
	scatter, line float64 // amplitudes of a wave and of the line of sight
	unit          float64 // of a wave, over packedUnit
	dopplerHz     float64 // of moving scatterers
	drifts        []drift // that faders choose from; empty: scatterers stand
	drifted       Fader   // that drift gave last
	fetched       uint16
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
	k.unit = k.scatter / packedUnit
	if k.dopplerHz > 0 {
		s := newStream(0, forDrift, 0, 0)
		for range kindDrifts {
			k.drifts = append(k.drifts, newDrift(&s, k.dopplerHz))
		}
	}
	return k
}

// Turns is how often a wave may at most turn its phase while both nodes move so far in all, and in a time.
func (k *FaderKind) Turns(movedM float64, in time.Duration) float64 {
	return movedM*k.perM/phasorSteps + bellDopplers*k.dopplerHz*in.Seconds()
}

// NewFader makes the fading of the link between two stations.
func NewFader(seed uint64, a, b int) *Fader {
	s := newStream(seed, forFading, a, b)
	f := &Fader{line: uint16(s.next())}
	angle := s.phase() / faderWaves
	f.turns = newTurns(angle, apart)
	for i := range f.phases {
		f.phases[i] = uint16(s.next())
	}
	f.drift, f.others = uint8(s.next()%kindDrifts), uint8(s.next())
	return f
}

// drift is what moving scatterers turn each wave by, in 65536ths of a turn a second.
type drift [faderWaves]float64

const (
	// bellDopplers is where the bell is cut off, in Doppler frequencies.
	bellDopplers = 5
	// kindDrifts is how many drifts a field's faders share: what two of one drift have of their own is every
	// wave's phase and direction.
	kindDrifts = 256
)

// newDrift draws the waves' Doppler frequencies, one from each of as many strata.
func newDrift(s *stream, dopplerHz float64) (out drift) {
	for i := range out {
		share := 2*(float64(i)+s.unit())/faderWaves - 1
		out[i] = (1 << 16) * dopplerHz / 3 * math.Tan(share*math.Atan(3*bellDopplers))
	}
	for i := range out { // which wave has which is chance
		j := int(s.next() % uint64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Fetch brings a fader near, so that memory answers for many of them at the same time.
func (k *FaderKind) Fetch(f *Fader) { k.fetched += f.line }

// Place is where a node is, in metres.
type Place struct{ XM, YM float64 }

// Spot is a place, and the same in parts as faders have it.
type Spot struct {
	Place
	x, y int64
}

// Spot is a place as faders have it: a frame's sender is at one for all of its receivers.
func (k *FaderKind) Spot(p Place) Spot {
	return Spot{p, int64(p.XM * k.perM * placeUnit), int64(p.YM * k.perM * placeUnit)}
}

// Power is the ratio to the mean power between the node with the lower number and that with the higher, at a time.
func (k *FaderKind) Power(f *Fader, lower, higher Spot, at time.Duration) float64 {
	if len(k.drifts) > 0 {
		f = k.drift(f, at)
	}
	there, back := f.sum(&otherTurns[f.others], lower.x, lower.y, higher.x, higher.y)
	const offset = packedOffset * faderWaves
	x := k.unit * float64(int32(there>>16+back>>16)-offset)
	y := k.unit * float64(int32(there&0xffff+back&0xffff)-offset)
	if k.line > 0 {
		p := phasor(k.perM*math.Hypot(higher.XM-lower.XM, higher.YM-lower.YM) + float64(f.line>>phaseShift))
		x += k.line * float64(p[0])
		y += k.line * float64(p[1])
	}
	return x*x + y*y
}

// sum adds up the waves at two places: those that come from one side of the nodes, and those from the other. It is
// written out because a loop takes a sixth longer, and this is what a frame asks for most.
func (f *Fader) sum(others *faderTurns, ax, ay, bx, by int64) (there, back uint32) {
	turns, phases := &f.turns, &f.phases
	along, across := turned(&others[0], &turns[0], ax, ay, bx, by)
	there, back = fourWaves(phases, 0, along, across)
	along, across = turned(&others[1], &turns[1], ax, ay, bx, by)
	t, b := fourWaves(phases, 4, along, across)
	there, back = there+t, back+b
	along, across = turned(&others[2], &turns[2], ax, ay, bx, by)
	t, b = fourWaves(phases, 8, along, across)
	there, back = there+t, back+b
	along, across = turned(&others[3], &turns[3], ax, ay, bx, by)
	t, b = fourWaves(phases, 12, along, across)
	there, back = there+t, back+b
	along, across = turned(&others[4], &turns[4], ax, ay, bx, by)
	t, b = fourWaves(phases, 16, along, across)
	return there + t, back + b
}

// turned is how far two nodes are along a direction at each, and across: x cos + y sin and y cos - x sin of both. The
// two have (x + y) cos in common, which saves a multiplication in four.
func turned(atA, atB *faderTurn, ax, ay, bx, by int64) (along, across uint16) {
	cosA, sinA, cosB, sinB := int64(atA.cos), int64(atA.sin), int64(atB.cos), int64(atB.sin)
	both := (ax+ay)*cosA + (bx+by)*cosB
	return uint16((both + ay*(sinA-cosA) + by*(sinB-cosB)) >> waveShift),
		uint16((both - ax*(sinA+cosA) - bx*(sinB+cosB)) >> waveShift)
}

// fourWaves adds up those along a direction and across, and their opposites.
func fourWaves(phases *[faderWaves]uint16, i int, along, across uint16) (there, back uint32) {
	return packed[(phases[i]+along)>>phaseShift] + packed[(phases[i+1]+across)>>phaseShift],
		packed[(phases[i+2]-along)>>phaseShift] + packed[(phases[i+3]-across)>>phaseShift]
}

// drift is a fader as moving scatterers have turned it by a time. It is the kind's own.
func (k *FaderKind) drift(f *Fader, at time.Duration) *Fader {
	k.drifted = *f
	drift := &k.drifts[f.drift]
	for i := range drift {
		k.drifted.phases[i] += uint16(int64(math.Floor(drift[i] * at.Seconds())))
	}
	return &k.drifted
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
