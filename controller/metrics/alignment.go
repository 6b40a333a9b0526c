package metrics

import (
	"math"

	"fieldmesh.dev/fieldmesh/internal/clockfit"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// alignment puts one node's times on an axis that it shares with a peer: the boot
// clock of a controller that compared both, else the time since the window's
// opening, which GO made one for all.
type alignment struct {
	capture    wire.Capture
	fit        *clockfit.Fit // nil: nobody compared both, or it was long ago
	openBootNs int64         // of the window, for lack of a comparison
	apartNs    float64       // by how much times of two nodes may be wrong then
}

func (at Attempt) align(node, peer string, told wire.Capture, w wire.Window) *alignment {
	out := &alignment{capture: told, openBootNs: w.OpenBootNs, apartNs: verdict.ApartNs(at.trial, w, at.records)}
	if c, ok := at.Clocks(node, peer); ok {
		out.fit = new(c.Fits[node])
	}
	return out
}

// Clocks are two nodes' boot clocks throughout their windows; false when nobody compared
// both, or so long ago that GO says more of the two.
func (at Attempt) Clocks(a, b string) (verdict.Clocks, bool) {
	c, ok := verdict.ClocksOf([]string{a, b}, at.records)
	return c, ok && !c.Stale
}

// together is the uncertainty of the times of two nodes' packets against each other;
// nil when one of them was not compared.
func (k *alignment) together(o *alignment) *float64 {
	if k.fit == nil || o.fit == nil {
		return nil
	}
	return new(k.uncertaintyNs() + o.uncertaintyNs())
}

// uncertaintyNs is by how much a packet's time may be wrong. The wall clock was stepped
// at a moment that nobody knows; by more than 100 ms the attempt would have ended.
func (k *alignment) uncertaintyNs() float64 {
	stepped := math.Abs(float64(k.capture.WallOffsetClose - k.capture.WallOffsetOpen))
	if k.fit == nil {
		return stepped + k.apartNs
	}
	return stepped + k.fit.UncertaintyNs
}

// common converts the wall clock that a packet carries.
func (k *alignment) common(wallNs int64) int64 {
	c := k.capture
	boot := wallNs - c.WallOffsetOpen
	if span := c.CloseBootNs - c.OpenBootNs; span > 0 { // within uncertaintyNs, whenever the wall clock was stepped
		share := min(max(float64(boot-c.OpenBootNs)/float64(span), 0), 1)
		boot -= int64(share * float64(c.WallOffsetClose-c.WallOffsetOpen))
	}
	return k.of(boot)
}

// of converts the node's boot clock.
func (k *alignment) of(bootNs int64) int64 {
	if k.fit == nil {
		return bootNs - k.openBootNs
	}
	return k.fit.Common(bootNs)
}
