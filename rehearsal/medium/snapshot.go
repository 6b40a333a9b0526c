package medium

import (
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// Caps is what a node's radio can do and is set to.
func (c *Core) Caps(node int) wire.Caps {
	s := c.stations[node]
	return wire.Caps{Driver: "medium", MAC: s.mac.String(), Standard: c.cfg.Standard,
		Channel: s.channel, TxPowerDbm: ptr(s.txPowerDbm), RatesMbps: c.phy.RatesMbps()}
}

// Stations is a node's view of every peer that it has heard or sent to.
func (c *Core) Stations(node int) []wire.Station {
	var out []wire.Station
	s := c.stations[node]
	for i := range s.peers {
		p := &s.peers[i]
		if !p.heard && !p.sent {
			continue
		}
		st := wire.Station{Peer: c.stations[i].mac.String(), TxRetries: ptr(p.retries), TxFailed: ptr(p.failed)}
		if p.heard {
			st.SignalDbm = ptr(round1(propagation.RatioToDb(p.powerMw)))
			st.InactiveMs = ptr(float64(c.now-p.heardAt) / 1e6)
		}
		if p.heardData {
			st.RxBitrateMbps = ptr(c.rate(p.rxMode))
		}
		if p.sent {
			st.TxBitrateMbps = ptr(c.rate(p.txMode))
		}
		out = append(out, st)
	}
	return out
}

// Survey is a node's view of its channel; the times are cumulative from model
// time 0, and busy includes the node's own transmissions.
func (c *Core) Survey(node int) wire.Survey {
	s := c.stations[node]
	return wire.Survey{Channel: s.channel,
		NoiseDbm:   ptr(round1(propagation.RatioToDb(s.noiseMw))),
		ActiveMs:   ptr(float64(c.now) / 1e6),
		BusyMs:     ptr(float64(s.busyUntil(c.now)) / 1e6),
		QueueDrops: ptr(s.count.Lost[QueueFull])}
}

func (s *station) busyUntil(now time.Duration) time.Duration {
	if s.busy {
		return s.busyTime + now - s.busyFrom
	}
	return s.busyTime
}

func ptr[T any](v T) *T { return &v }

// round1 keeps a tenth of a decibel: more is not known of any radio.
func round1(v float64) float64 { return math.Round(v*10) / 10 }
