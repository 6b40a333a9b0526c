package medium

import (
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

const (
	// positionStep is how often the radios are looked for. At 40 m/s a node moves 0.4 m in it: 0.03 dB at 100 m
	// under the fourth-power law. For fading it goes straight on to where it is at the step's end: one that
	// accelerates by 10 m/s² is off by 0.13 mm at most, one that turns on the spot for a step.
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

// place is where a radio was found last, and what of it those who send to it ask for.
type place struct {
	xM, yM  float64 // with the channel first, for they are looked at most
	channel int
	moved   int64            // step at which it was last found elsewhere
	entered int64            // step at which it was last found in another square of the shadowing
	wayM    float64          // how far it has come; not of a disc, which does not ask
	cell    propagation.Cell // of the shadowing
	floorMw float64          // of its station
}

// course is where a radio was found last and how far it goes in a nanosecond until the step's end.
type course struct{ xM, yM, vxM, vyM float64 }

// after is where it is some nanoseconds after it was found.
func (c *course) after(ns float64) propagation.Place {
	return propagation.Place{XM: c.xM + c.vxM*ns, YM: c.yM + c.vyM*ns}
}

// link is what two radios make of each other's power, on average over fading.
// The channel is reciprocal: the way back is the same. It has half a cache line, for a frame asks many of them.
type link struct {
	ratio      float64 // 0: not worked out
	untilM     float64 // how far both may have come in all before that changes pathDb
	shadowStep int64   // at which shadowDb was worked out
	fader      *propagation.Fader
}

// gain is what a link's ratio was worked out of.
type gain struct {
	pathDb   float64 // without shadowing
	shadowDb float64
	pathStep int64 // at which pathDb was worked out; 0: never
}

// links knows who can hear whom. All is worked out when a radio transmits, and
// again only when one has moved: a transmission costs by those who can hear it,
// and radios that stand cost nothing.
type links struct {
	c        *Core
	places   []place
	courses  []course      // as places; known where there is fading
	step     int64         // of the places
	foundAt  time.Duration // when in it they were looked for
	moved    int64         // step at which any radio was last found elsewhere
	wentM    float64       // sum over the steps of how far any radio came at most
	pairs    []link        // not of a disc
	gains    []gain        // as pairs
	reach    []reach
	props    []propagation.Model      // by station
	faders   []*propagation.FaderKind // by station
	disc     *propagation.Disc        // nil for the other models
	shadow   *propagation.ShadowField
	headroom float64   // dB that shadowing may add to the mean
	powers   []float64 // that powersMw gave last
	fetched  float64
}

// reach is the stations that may notice a radio's transmissions, ascending.
type reach struct {
	list    []int32
	to      []hearer // by place in list
	step    int64
	limitM2 float64 // square of the distance beyond which nobody can; 0: not worked out
	near    []int32 // who was nearly within it, ascending
	nearToM float64 // wentM up to which nobody else can be within it
}

// hearer is what a radio's transmissions are at one who may notice them.
type hearer struct {
	meanMw float64            // without fading
	fader  *propagation.Fader // nil: fading does not count
}

func newLinks(c *Core) (*links, error) {
	n := len(c.cfg.Nodes)
	l := &links{c: c, places: make([]place, n), courses: make([]course, n), reach: make([]reach, n)}
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
	if l.disc == nil {
		l.pairs, l.gains = make([]link, n*n), make([]gain, n*n)
	}
	if s := c.cfg.Shadowing; s.SigmaDb > 0 {
		l.shadow = propagation.NewShadowField(c.cfg.Seed, s)
		l.headroom = propagation.ShadowHeadroom * s.SigmaDb
	}
	return l, nil
}

// refresh looks where everybody is, once a step.
func (l *links) refresh() {
	step := int64(l.c.now/positionStep) + 1
	if step == l.step {
		return
	}
	l.step, l.foundAt = step, l.c.now
	mostM2 := 0.0
	for i := range l.places {
		p := &l.places[i]
		x, y := l.c.locate(i, l.c.now)
		if x != p.xM || y != p.yM || p.moved == 0 {
			mostM2 = max(mostM2, l.found(p, x, y))
		}
		if l.c.cfg.Fading.Model != "" {
			end := time.Duration(step) * positionStep
			x, y = l.c.locate(i, end)
			ns := float64(end - l.c.now)
			l.courses[i] = course{p.xM, p.yM, (x - p.xM) / ns, (y - p.yM) / ns}
		}
	}
	l.wentM += math.Sqrt(mostM2)
}

// found takes note of a radio that is elsewhere, and says by how much: the square of the distance.
func (l *links) found(p *place, xM, yM float64) float64 {
	dx, dy := xM-p.xM, yM-p.yM
	if l.disc == nil {
		p.wayM += math.Hypot(dx, dy)
	}
	p.xM, p.yM, p.moved, l.moved = xM, yM, l.step, l.step
	if l.shadow != nil {
		if cell := l.shadow.Cell(xM, yM); cell != p.cell || p.entered == 0 {
			p.cell, p.entered = cell, l.step
		}
	}
	return dx*dx + dy*dy
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
	r.list, r.to = r.list[:0], r.to[:0]
	near := l.nearby(from)
	if l.disc == nil {
		for _, j := range near { // brings all links near at once, as Fetch does with faders
			p, _, _ := l.ends(from, int(j))
			l.fetched += p.ratio
		}
	}
	for _, j := range near {
		apartM2 := l.apartM2(from, int(j))
		if apartM2 > r.limitM2 {
			continue
		}
		if l.disc != nil {
			r.list, r.to = append(r.list, j), append(r.to, hearer{meanMw: l.discMw(apartM2)})
		} else if h, does := l.hearer(l.c.stations[from], int(j)); does {
			r.list, r.to = append(r.list, j), append(r.to, h)
		}
	}
	return r.list
}

// nearMargin is how much farther than its limit those may be whom a radio keeps in mind, so that it looks at all others
// now and then only: with an eighth, a limit of 500 m and 40 m/s, in one step of 78.
const nearMargin = 1.0 / 8

// nearby is the stations that can be within a radio's limit now, and some more.
func (l *links) nearby(from int) []int32 {
	r := &l.reach[from]
	if r.limitM2 == 0 {
		r.limitM2, r.nearToM = l.limitM2(from), -1
	}
	if l.wentM <= r.nearToM {
		return r.near
	}
	limitM := math.Sqrt(r.limitM2)
	farM := limitM * (1 + nearMargin)
	r.near, r.nearToM = r.near[:0], l.wentM+0.499*nearMargin*limitM // half: both may come nearer
	for j := range l.places {
		if j != from && l.places[j].channel == l.places[from].channel && l.apartM2(from, j) <= farM*farM {
			r.near = append(r.near, int32(j))
		}
	}
	return r.near
}

// hearer is what a radio's transmissions are at another now, and whether that may notice them.
func (l *links) hearer(s *station, to int) (h hearer, notices bool) {
	p, x, y := l.ends(s.index, to)
	if (p.ratio == 0 || x.wayM+y.wayM > p.untilM || p.shadowed(x, y)) && !l.mayReach(s, to) {
		return h, false
	}
	floorMw := l.places[to].floorMw
	if h.meanMw = s.txPowerMw * p.ratio; math.Abs(h.meanMw-floorMw) < borderlineDb*math.Ln10/10*floorMw {
		h.meanMw = s.txPowerMw * l.pair(s.index, to).ratio
	}
	if h.meanMw < floorMw {
		return h, false
	}
	if l.c.fades(&l.c.receivers[to], h.meanMw) {
		if p.fader == nil {
			p.fader = propagation.NewFader(l.c.cfg.Seed, min(s.index, to), max(s.index, to))
		}
		h.fader = p.fader
	}
	return h, true
}

// powersMw is the power of a frame that begins at each of those whom it reaches, in their order. The slice is the
// links' own.
func (l *links) powersMw(tx *transmission) []float64 {
	r, kind := &l.reach[tx.from], l.faders[tx.from]
	since, out := float64(l.c.now-l.foundAt), l.powers[:0]
	from := kind.Spot(l.courses[tx.from].after(since))
	for i := range r.to {
		if f := r.to[i].fader; f != nil {
			kind.Fetch(f)
		}
	}
	for i, j := range tx.reach {
		h := &r.to[i]
		powerMw := h.meanMw
		if h.fader != nil {
			if to := kind.Spot(l.courses[j].after(since)); int(j) < tx.from {
				powerMw *= kind.Power(h.fader, to, from, l.c.now)
			} else {
				powerMw *= kind.Power(h.fader, from, to, l.c.now)
			}
		}
		out = append(out, powerMw)
	}
	l.powers = out
	return out
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
		return l.discMw(l.apartM2(from, to))
	}
	return l.c.stations[from].txPowerMw * l.pair(from, to).ratio
}

// apartM2 is the square of the distance between two radios.
func (l *links) apartM2(a, b int) float64 {
	x, y := &l.places[a], &l.places[b]
	dx, dy := x.xM-y.xM, x.yM-y.yM
	return dx*dx + dy*dy
}

// discMw is the power in a disc, by the square of the distance.
func (l *links) discMw(apartM2 float64) float64 {
	if apartM2 <= l.disc.RangeM*l.disc.RangeM {
		return discPowerMw
	}
	return discOutsideMw
}

// pair is the link between two radios at the present step.
func (l *links) pair(a, b int) *link {
	p, x, y := l.ends(a, b)
	switch pathStep := l.gain(a, b).pathStep; {
	case pathStep == 0 || pathStep < max(x.moved, y.moved):
		l.workPath(a, b)
		fallthrough
	case p.ratio == 0 || p.shadowed(x, y):
		l.workRatio(a, b)
	}
	return p
}

// ends is the link between two radios and their places, of the one with the lower number first.
func (l *links) ends(a, b int) (p *link, x, y *place) {
	a, b = min(a, b), max(a, b)
	return &l.pairs[a*len(l.places)+b], &l.places[a], &l.places[b]
}

// gain is that of the link between two radios.
func (l *links) gain(a, b int) *gain { return &l.gains[min(a, b)*len(l.places)+max(a, b)] }

// shadowed reports whether an end has come into another square since a link's shadow was worked out.
func (p *link) shadowed(x, y *place) bool { return p.shadowStep < max(x.entered, y.entered) }

// workPath works out a link's gain without shadowing.
func (l *links) workPath(a, b int) {
	p, x, y := l.ends(a, b)
	m, n := &l.c.cfg.Nodes[a], &l.c.cfg.Nodes[b]
	distanceM := math.Hypot(y.xM-x.xM, y.yM-x.yM)
	g := l.gain(a, b)
	g.pathDb = m.AntennaGainDbi + n.AntennaGainDbi - l.props[a].LossDb(distanceM, m.HeightM, n.HeightM)
	g.pathStep, p.untilM = l.step, x.wayM+y.wayM
	if !l.c.ns2() { // which receives up to one power exactly
		p.untilM += nearlyStill * distanceM
	}
}

// workRatio works out a link's gain, and its shadow where an end has come into another square.
func (l *links) workRatio(a, b int) {
	p, x, y := l.ends(a, b)
	g := l.gain(a, b)
	if l.shadow != nil && p.shadowed(x, y) {
		g.shadowDb, p.shadowStep = l.shadow.AtDb(min(a, b), max(a, b), x.cell, y.cell), l.step
	}
	p.ratio = propagation.DbToRatio(g.pathDb + g.shadowDb)
}

// nearlyStill is the part of their distance that two radios may move before their mean power is worked out
// again: 0.03 dB under the fourth-power law.
const nearlyStill = 0.0017

// borderlineDb is how near a power must be to a floor for that not to do.
const borderlineDb = 0.1

// mayReach works out a link that has changed, unless no shadow could make it reach the other's floor.
func (l *links) mayReach(s *station, to int) bool {
	p, x, y := l.ends(s.index, to)
	g := l.gain(s.index, to)
	if g.pathStep == 0 || x.wayM+y.wayM > p.untilM {
		l.workPath(s.index, to)
	}
	if s.txPowerDbm+g.pathDb+l.headroom < l.c.stations[to].floorDbm-borderlineDb {
		p.ratio = 0
		return false
	}
	l.workRatio(s.index, to)
	return true
}

// fadingNow is the power ratio of a link's fading at this very moment.
func (l *links) fadingNow(a, b int) float64 { return l.fadingAt(a, b, l.c.now) }

// fadingAt is the same at a time.
func (l *links) fadingAt(a, b int, at time.Duration) float64 {
	a, b = min(a, b), max(a, b)
	k := l.faders[a]
	return k.Power(l.fader(a, b), k.Spot(l.placeAt(a, at)), k.Spot(l.placeAt(b, at)), at)
}

// fader is the fading of the link between two stations.
func (l *links) fader(a, b int) *propagation.Fader {
	p, _, _ := l.ends(a, b)
	if p.fader == nil {
		p.fader = propagation.NewFader(l.c.cfg.Seed, min(a, b), max(a, b))
	}
	return p.fader
}

// steadyTurns is the part of a wavelength over which fading counts as the same: of the field of
// Rayleigh's fading 0.98 of the correlation is left in between (Clarke).
const steadyTurns = 0.05

// steady is for how long a link's fading stays the same during a frame: 0 is for all of it.
func (l *links) steady(a, b int, from, to time.Duration) time.Duration {
	movedM := 0.0
	for _, i := range [2]int{a, b} {
		x, y := l.placeAt(i, from), l.placeAt(i, to)
		movedM += math.Hypot(y.XM-x.XM, y.YM-x.YM)
	}
	turns := l.faders[a].Turns(movedM, to-from)
	if turns <= steadyTurns {
		return 0
	}
	return max(time.Microsecond, time.Duration(float64(to-from)*steadyTurns/turns))
}

// placeAt is where a radio is at a time.
func (l *links) placeAt(i int, at time.Duration) (p propagation.Place) {
	p.XM, p.YM = l.c.locate(i, at)
	return p
}
