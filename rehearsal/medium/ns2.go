package medium

import (
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// The radio RadioNS2WaveLAN is ns-2's radio, which most simulations of TCP over ad hoc
// networks had: Lucent's 914 MHz WaveLAN card over flat ground, antennas 1.5 m high.
//
// It is two thresholds and an order of arrival, and no noise (ns-2.35,
// WirelessPhy::sendUp and Mac802_11::recv). What arrives below the carrier sense
// threshold does not exist; what arrives below the receive threshold keeps the
// receiver and cannot be read. The frame that comes first keeps the receiver to its
// end. One that begins meanwhile is not noticed if it is weaker by the capture
// ratio, and so does no harm; else both are lost. A frame that comes second is thus
// lost however strong it is.

// What ns-2.35 sets by default (tcl/lib/ns-default.tcl: Phy/WirelessPhy, Antenna/OmniAntenna).
// CPThresh_ is captureRatio.
const (
	// NS2AntennaHeightM is Z_ over the ground; Gt_ and Gr_ are 1.
	NS2AntennaHeightM = 1.5

	ns2ReceiveMw      = 3.652e-7 // RXThresh_, 3.652e-10 W: 250 m
	ns2CarrierSenseMw = 1.559e-8 // CSThresh_, 1.559e-11 W: 550 m
	ns2FrequencyHz    = 914e6    // freq_
)

// ns2LeastReceiveMw is RXThresh_ for a range: what arrives over it at the usual power
// from an antenna like the own, as ns-2's program indep-utils/propagation/threshold.cc
// works it out. 0 m: RXThresh_'s default.
func ns2LeastReceiveMw(rangeM float64) float64 {
	if rangeM == 0 {
		return ns2ReceiveMw
	}
	loss := propagation.TwoRayGround{FrequencyHz: ns2FrequencyHz}.LossDb(rangeM, NS2AntennaHeightM, NS2AntennaHeightM)
	return propagation.DbToRatio(phy.NS2TxPowerDbm - loss)
}

// hold is what resolve is for ns-2's receiver. Of frames that begin within the
// detection time the first is drawn: in ns-2 it is by how far their senders are from
// here and from whom these heard last, in metres of light's way.
func (c *Core) hold(r *station, opened time.Duration) {
	held := r.receives
	if held == nil {
		began := 0
		for _, tx := range c.recent(opened) {
			if tx.at[r.index].meanMw == 0 {
				continue
			}
			if began++; began == 1 || r.rng.IntN(began) == 0 {
				held = tx
			}
		}
		r.lock(held, 0)
		if a := &held.at[r.index]; a.deaf || a.powerMw < c.receiveMw {
			c.spoil(r)
		}
	}
	last := held
	for _, tx := range c.recent(opened) {
		a := &tx.at[r.index]
		if a.meanMw == 0 || tx == held {
			continue
		}
		if held.at[r.index].powerMw >= captureRatio*a.powerMw {
			r.ns2SetNAV(tx.end + c.phy.EIFS)
			continue
		}
		c.spoil(r)
		if tx.end > last.end || tx.end == last.end && a.powerMw > last.at[r.index].powerMw {
			last = tx
		}
	}
	r.receives = last // the longest frame of a collision keeps the receiver
}

// spoil loses the frame that holds a receiver of ns-2's, and leaves it held.
func (c *Core) spoil(r *station) {
	a := &r.receives.at[r.index]
	a.lose(c.missUnlessLocked(r.receiver, r.receives, a))
	r.rx.logOK = math.Inf(-1)
}
