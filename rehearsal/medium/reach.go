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
	for _, mode := range c.phy.DataModes() {
		if signal >= propagation.RatioToDb(c.sensitivityMw(to, mode)) {
			best = max(best, c.rate(mode))
		}
	}
	return best
}

// sensitivityMw is the least power at a node of a mode of unicast data for the target error rate.
func (c *Core) sensitivityMw(node, mode int) float64 {
	if c.ns2() {
		return c.receiveMw
	}
	return c.phy.MinSNRs()[mode-c.phy.FirstData] * c.stations[node].noiseMw
}

// ReachM is the distance up to which a node's full frames of a rate are lost
// to noise at most one time in ten at a node like it, without shadowing and
// fading; 0 when there is none within 1000 km or the rate is not the standard's.
func (c *Core) ReachM(from int, rateMbps float64) float64 {
	least := math.Inf(1) // of two widths that have the rate
	for _, mode := range c.phy.DataModes() {
		if c.rate(mode) == rateMbps {
			least = min(least, c.sensitivityMw(from, mode))
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	if c.links.disc != nil {
		return c.links.disc.RangeM
	}
	s, n := c.stations[from], c.cfg.Nodes[from]
	budgetDb := s.txPowerDbm + 2*n.AntennaGainDbi - propagation.RatioToDb(least)
	return propagation.ReachM(c.links.props[from], n.HeightM, budgetDb)
}

// RatesMbps are the rates of unicast data, ascending: where minstrel chooses, those in a part of the channel too.
func (c *Core) RatesMbps() []float64 { return c.phy.AllRatesMbps() }
