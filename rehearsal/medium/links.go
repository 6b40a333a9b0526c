package medium

import (
	"fmt"
	"math"
	"time"
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
	moved  int64 // step at which it was last found elsewhere
}

// link is what two radios make of each other's power, on average over fading.
// The channel is reciprocal: the way back is the same.
type link struct {
	ratio float64
	step  int64 // at which it was worked out; 0 is never
	fader *fader
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
	props    []Propagation // by station
	waveM    []float64     // wavelength, by station
	disc     *Disc         // nil for the other models
	shadow   *shadowField
	headroom float64 // ratio that shadowing and fading may add to the mean
}

// reach is the stations that may notice a radio's transmissions, ascending.
type reach struct {
	list    []int32
	step    int64
	limitM2 float64 // square of the distance beyond which nobody can
}

func newLinks(c *Core) (*links, error) {
	n := len(c.cfg.Nodes)
	l := &links{c: c, places: make([]place, n), pairs: make([]link, n*n), reach: make([]reach, n), headroom: 1}
	for _, node := range c.cfg.Nodes {
		channel := node.Channel
		if channel == 0 {
			channel = c.cfg.Channel
		}
		freq, err := frequencyHz(c.cfg.Standard, channel)
		if err != nil {
			return nil, fmt.Errorf("%w (node %q)", err, node.Name)
		}
		prop, err := newPropagation(c.cfg.Propagation, freq)
		if c.ns2() {
			prop, err = TwoRayGround{ns2FrequencyHz}, nil
		}
		if err != nil {
			return nil, err
		}
		l.props, l.waveM = append(l.props, prop), append(l.waveM, speedOfLightMps/freq)
		if d, is := prop.(Disc); is {
			l.disc = &d
		}
	}
	if s := c.cfg.Shadowing; s.SigmaDb > 0 {
		l.shadow = newShadowField(c.cfg.Seed, s)
		l.headroom *= dbToRatio(shadowHeadroom * s.SigmaDb)
	}
	if c.cfg.Fading.Model != "" {
		l.headroom *= fadingHeadroom
	}
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
	own := &l.places[from]
	for j := range l.places {
		dx, dy := l.places[j].xM-own.xM, l.places[j].yM-own.yM
		if j == from || dx*dx+dy*dy > r.limitM2 || l.c.stations[j].channel != l.c.stations[from].channel {
			continue
		}
		if l.disc != nil || l.meanMw(from, j) >= l.c.stations[j].floorMw/l.headroom {
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
	budgetDb := s.txPowerDbm + l.c.cfg.Nodes[from].AntennaGainDbi + gain + ratioToDb(l.headroom) - ratioToDb(floor)
	near, far := minDistanceM, 1e6 // a million metres are beyond any horizon
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
	if math.Hypot(a.xM-b.xM, a.yM-b.yM) <= l.disc.RangeM {
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
	from, to := &l.places[a], &l.places[b]
	if p.step != 0 && p.step >= from.moved && p.step >= to.moved {
		return p
	}
	p.step = l.step
	m, n := &l.c.cfg.Nodes[a], &l.c.cfg.Nodes[b]
	gainDb := m.AntennaGainDbi + n.AntennaGainDbi
	gainDb -= l.props[a].LossDb(math.Hypot(to.xM-from.xM, to.yM-from.yM), m.HeightM, n.HeightM)
	if l.shadow != nil {
		gainDb += l.shadow.atDb(a, b, *from, *to)
	}
	p.ratio = dbToRatio(gainDb)
	return p
}

// fadingNow is the power ratio of a link's fading at this very moment.
func (l *links) fadingNow(a, b int) float64 {
	if a > b {
		a, b = b, a
	}
	p := l.pair(a, b)
	if p.fader == nil {
		p.fader = newFader(l.c.cfg.Seed, a, b, l.c.cfg.Fading, l.waveM[a])
	}
	x1, y1 := l.c.locate(a, l.c.now)
	x2, y2 := l.c.locate(b, l.c.now)
	return p.fader.power(x2-x1, y2-y1)
}
