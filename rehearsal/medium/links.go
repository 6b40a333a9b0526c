package medium

import (
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

const (
	// positionStep is how often the radios are looked for. At 40 m/s a node
	// moves 0.4 m in it: 0.03 dB at 100 m under the fourth-power law is far
	// below what any rate notices. Fading, which does notice, asks at each frame.
	positionStep = 10 * time.Millisecond
	// inaudibleRatio is how far below a receiver's noise (and below its
	// carrier sense level) a transmission is left out altogether: 13 dB, so
	// that one such costs the SINR at most 0.2 dB.
	inaudibleRatio = 0.05
)

// The disc has two powers, far above and far below what any mode needs, and
// its interferers count so much more that every overlap is a collision.
const (
	discPowerMw     = 1e-4  // -40 dBm
	discOutsideMw   = 1e-14 // -140 dBm
	discInterferers = 1e16
)

// place is where a radio was found last.
type place struct {
	xM, yM float64
	moved  int64            // step at which it was last found elsewhere
	cell   propagation.Cell // of the shadowing
}

// link is what two radios make of each other's power, on average over fading.
// The channel is reciprocal: the way back is the same.
type link struct {
	ratio  float64
	step   int64 // at which it was worked out; 0 is never
	fader  *propagation.Fader
	shadow *shadowLink
}

// shadowLink is the last shadow of a link.
type shadowLink struct {
	from, to propagation.Cell
	gainDb   float64
}

// links knows who can hear whom. All is worked out when a radio transmits, and
// again only when one has moved: a transmission costs by those who can hear it,
// and radios that stand cost nothing.
type links struct {
	c        *Core
	places   []place
	step     int64 // of the places
	moved    int64 // step at which any radio was last found elsewhere
	pairs    []link
	reach    []reach
	props    []propagation.Model      // by station
	faders   []*propagation.FaderKind // by station
	disc     *propagation.Disc        // nil for the other models
	shadow   *propagation.ShadowField
	headroom float64 // dB that shadowing may add to the mean
	exact    []exactPlace
}

// exactPlace is where a radio is at a moment.
type exactPlace struct {
	xM, yM float64
	at     time.Duration
	known  bool
}

// reach is the stations that may notice a radio's transmissions, ascending.
type reach struct {
	list    []int32
	step    int64
	limitM2 float64 // square of the distance beyond which nobody can
}

func newLinks(c *Core) (*links, error) {
	n := len(c.cfg.Nodes)
	l := &links{c: c, places: make([]place, n), pairs: make([]link, n*n), reach: make([]reach, n)}
	for _, node := range c.cfg.Nodes {
		channel := node.Channel
		if channel == 0 {
			channel = c.cfg.Channel
		}
		freq, err := frequencyHz(c.cfg.Standard, channel)
		if err != nil {
			return nil, fmt.Errorf("%w (node %q)", err, node.Name)
		}
		prop, err := propagation.New(c.cfg.Propagation, freq)
		if c.ns2() {
			prop, err = propagation.TwoRayGround{FrequencyHz: ns2FrequencyHz}, nil
		}
		if err != nil {
			return nil, err
		}
		l.props = append(l.props, prop)
		l.faders = append(l.faders, propagation.NewFaderKind(c.cfg.Fading, propagation.SpeedOfLightMps/freq))
		if d, is := prop.(propagation.Disc); is {
			l.disc = &d
		}
	}
	if s := c.cfg.Shadowing; s.SigmaDb > 0 {
		l.shadow = propagation.NewShadowField(c.cfg.Seed, s)
		l.headroom = propagation.ShadowHeadroom * s.SigmaDb
	}
	l.exact = make([]exactPlace, n)
	return l, nil
}

// refresh looks where everybody is, once a step.
func (l *links) refresh() {
	step := int64(l.c.now/positionStep) + 1
	if step == l.step {
		return
	}
	l.step = step
	for i := range l.places {
		p := &l.places[i]
		x, y := l.c.locate(i, l.c.now)
		if x != p.xM || y != p.yM || p.moved == 0 {
			p.xM, p.yM, p.moved, l.moved = x, y, step, step
			if l.shadow != nil {
				p.cell = l.shadow.Cell(p.xM, p.yM)
			}
		}
	}
}

// hearers is the stations that may notice what a radio sends now. The slice is
// the links' own.
func (l *links) hearers(from int) []int32 {
	l.refresh()
	r := &l.reach[from]
	if r.step >= l.moved {
		return r.list
	}
	r.step = l.step
	r.list = r.list[:0]
	if r.limitM2 == 0 {
		r.limitM2 = l.limitM2(from)
	}
	xM, yM, limitM2, channel := l.places[from].xM, l.places[from].yM, r.limitM2, l.c.stations[from].channel
	for j := range l.places {
		p := &l.places[j]
		if dx, dy := p.xM-xM, p.yM-yM; dx*dx+dy*dy > limitM2 {
			continue
		}
		s := l.c.stations[j]
		if j != from && s.channel == channel && (l.disc != nil || l.atLeast(from, j, s.floorMw, s.floorDbm)) {
			r.list = append(r.list, int32(j))
		}
	}
	return r.list
}

// limitM2 is the square of the distance beyond which a radio's power is below
// everybody's floor, whoever stands there and however lucky.
func (l *links) limitM2(from int) float64 {
	if l.disc != nil {
		return l.disc.CarrierSenseM * l.disc.CarrierSenseM
	}
	gain, height, floor := math.Inf(-1), 0.0, math.Inf(1)
	for i, n := range l.c.cfg.Nodes {
		gain, height = max(gain, n.AntennaGainDbi), max(height, n.HeightM)
		floor = min(floor, l.c.stations[i].floorMw)
	}
	s := l.c.stations[from]
	budgetDb := s.txPowerDbm + l.c.cfg.Nodes[from].AntennaGainDbi + gain + l.headroom - propagation.RatioToDb(floor)
	near, far := propagation.MinDistanceM, 1e6 // a million metres are beyond any horizon
	for far-near > 0.1 {
		mid := (near + far) / 2
		if l.props[from].LossDb(mid, height, height) <= budgetDb {
			near = mid
		} else {
			far = mid
		}
	}
	return far * far
}

// forget makes the links of a radio be worked out again: its power has changed.
func (l *links) forget(from int) { l.reach[from].step, l.reach[from].limitM2 = -1, 0 }

// meanMw is the power of a radio at another, without fading.
func (l *links) meanMw(from, to int) float64 {
	if l.disc != nil {
		return l.discMw(from, to)
	}
	return l.c.stations[from].txPowerMw * l.pair(from, to).ratio
}

func (l *links) discMw(from, to int) float64 {
	a, b := &l.places[from], &l.places[to]
	if dx, dy := a.xM-b.xM, a.yM-b.yM; dx*dx+dy*dy <= l.disc.RangeM*l.disc.RangeM {
		return discPowerMw
	}
	return discOutsideMw
}

// pair is the link between two radios at the present step.
func (l *links) pair(a, b int) *link {
	if a > b {
		a, b = b, a
	}
	p := &l.pairs[a*len(l.places)+b]
	if !l.fresh(p, a, b) {
		l.work(p, a, b, l.gainDb(a, b))
	}
	return p
}

// fresh reports whether neither end has moved since a link was worked out.
func (l *links) fresh(p *link, a, b int) bool {
	return p.step != 0 && p.step >= l.places[a].moved && p.step >= l.places[b].moved
}

// work works a link out from its gain without shadowing.
func (l *links) work(p *link, a, b int, gainDb float64) {
	p.step = l.step
	p.ratio = propagation.DbToRatio(gainDb + l.shadowDb(p, a, b))
}

// shadowDb is the shadow of a link, worked out again when an end has come into another square.
func (l *links) shadowDb(p *link, a, b int) float64 {
	if l.shadow == nil {
		return 0
	}
	from, to := l.places[a].cell, l.places[b].cell
	if s := p.shadow; s != nil && s.from == from && s.to == to {
		return s.gainDb
	}
	if p.shadow == nil {
		p.shadow = &shadowLink{}
	}
	*p.shadow = shadowLink{from, to, l.shadow.AtDb(a, b, from, to)}
	return p.shadow.gainDb
}

// atLeast reports whether a radio's mean power at another reaches a floor. Where no shadow could
// make it so, none is worked out.
func (l *links) atLeast(from, to int, floorMw, floorDbm float64) bool {
	a, b := min(from, to), max(from, to)
	p, s := &l.pairs[a*len(l.places)+b], l.c.stations[from]
	if !l.fresh(p, a, b) {
		gainDb := l.gainDb(a, b)
		if s.txPowerDbm+gainDb+l.headroom < floorDbm {
			return false
		}
		l.work(p, a, b, gainDb)
	}
	return s.txPowerMw*p.ratio >= floorMw
}

// gainDb is the gain of a link without shadowing.
func (l *links) gainDb(a, b int) float64 {
	m, n := &l.c.cfg.Nodes[a], &l.c.cfg.Nodes[b]
	from, to := &l.places[a], &l.places[b]
	return m.AntennaGainDbi + n.AntennaGainDbi -
		l.props[a].LossDb(math.Hypot(to.xM-from.xM, to.yM-from.yM), m.HeightM, n.HeightM)
}

// fadingNow is the power ratio of a link's fading at this very moment.
func (l *links) fadingNow(a, b int) float64 { return l.fadingAt(a, b, l.c.now) }

// fadingAt is the same at a time.
func (l *links) fadingAt(a, b int, at time.Duration) float64 {
	if a > b {
		a, b = b, a
	}
	p := &l.pairs[a*len(l.places)+b]
	if p.fader == nil {
		p.fader = propagation.NewFader(l.c.cfg.Seed, a, b, l.faders[a])
	}
	if at != l.c.now {
		x, y := l.relative(a, b, at)
		return p.fader.Power(x, y, at)
	}
	from, to := l.exactly(a), l.exactly(b)
	return p.fader.Power(to.xM-from.xM, to.yM-from.yM, at)
}

// steadyTurns is the part of a wavelength over which fading counts as the same: of the field of
// Rayleigh's fading 0.98 of the correlation is left in between (Clarke).
const steadyTurns = 0.05

// steady is for how long a link's fading stays the same during a frame: 0 is for all of it.
func (l *links) steady(a, b int, from, to time.Duration) time.Duration {
	x1, y1 := l.relative(a, b, from)
	x2, y2 := l.relative(a, b, to)
	kind := l.faders[a]
	turns := kind.Turns(math.Hypot(x2-x1, y2-y1), to-from)
	if turns <= steadyTurns {
		return 0
	}
	return max(time.Microsecond, time.Duration(float64(to-from)*steadyTurns/turns))
}

// relative is where one radio is at a time as the other sees it.
func (l *links) relative(a, b int, at time.Duration) (xM, yM float64) {
	x1, y1 := l.c.locate(a, at)
	x2, y2 := l.c.locate(b, at)
	return x2 - x1, y2 - y1
}

// exactly is where a radio is now.
func (l *links) exactly(node int) *exactPlace {
	p := &l.exact[node]
	if !p.known || p.at != l.c.now {
		x, y := l.c.locate(node, l.c.now)
		*p = exactPlace{x, y, l.c.now, true}
	}
	return p
}
