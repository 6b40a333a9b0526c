package medium

import (
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// Strength is the power at one node of what another sends now, on average over
// fading, and its ratio to the receiver's noise. In a disc, where powers do
// not matter, only its sign against ReachM's counts.
func (c *Core) Strength(from, to int) (signalDbm, snrDb float64) {
	c.links.refresh()
	mw := c.links.meanMw(from, to)
	return propagation.RatioToDb(mw), propagation.RatioToDb(mw / c.stations[to].noiseMw)
}

// Hears reports whether a node may notice what another sends now at all.
func (c *Core) Hears(from, to int) bool { return slices.Contains(c.links.hearers(from), int32(to)) }

// BestRateMbps is the highest rate at which a full frame between two nodes is
// lost to noise at most one time in ten, 0 when there is none.
func (c *Core) BestRateMbps(from, to int) float64 {
	if c.stations[from].channel != c.stations[to].channel {
		return 0
	}
	signal, _ := c.Strength(from, to)
	best := 0.0
	for i, least := range c.sensitivitiesMw(to) {
		if signal >= propagation.RatioToDb(least) {
			best = c.phy.Modes[c.phy.FirstData+i].RateMbps
		}
	}
	return best
}

// sensitivitiesMw is the least power at a node of each mode of unicast data for the target error
// rate.
func (c *Core) sensitivitiesMw(node int) []float64 {
	if c.ns2() {
		return slices.Repeat([]float64{c.receiveMw}, len(c.phy.Modes))
	}
	out := c.phy.MinSNRs()
	for i := range out {
		out[i] *= c.stations[node].noiseMw
	}
	return out
}

// ReachM is the distance up to which a node's full frames of a rate are lost
// to noise at most one time in ten at a node like it, without shadowing and
// fading; 0 when there is none within 1000 km or the rate is not the standard's.
func (c *Core) ReachM(from int, rateMbps float64) float64 {
	mode, err := c.phy.ModeIndex(rateMbps)
	if err != nil {
		return 0
	}
	if c.links.disc != nil {
		return c.links.disc.RangeM
	}
	s, n := c.stations[from], c.cfg.Nodes[from]
	budgetDb := s.txPowerDbm + 2*n.AntennaGainDbi - propagation.RatioToDb(c.sensitivitiesMw(from)[mode-c.phy.FirstData])
	near, far := propagation.MinDistanceM, 1e6
	if c.links.props[from].LossDb(near, n.HeightM, n.HeightM) > budgetDb {
		return 0
	}
	for far-near > 1e-3 {
		mid := math.Sqrt(near * far) // the scale is one of ratios
		if c.links.props[from].LossDb(mid, n.HeightM, n.HeightM) <= budgetDb {
			near = mid
		} else {
			far = mid
		}
	}
	return near
}

// RatesMbps are the standard's rates, ascending.
func (c *Core) RatesMbps() []float64 { return c.phy.RatesMbps() }
