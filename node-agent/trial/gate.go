package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// errGateTimeout says that the gate did not open in time. The attempt is rejected
// for it: a covariate was never right.
const errGateTimeout = coded(wire.ReasonGateTimeout)

const (
	gateEvery = 50 * time.Millisecond
	// freshFix is the age beyond which a fix opens no gate: receivers of 1 Hz
	// are the slowest in use, and one lost fix is forgiven.
	freshFix = 1500 * time.Millisecond
)

// gate decides when the initiator may open the window. It is fed the newest
// fix and the time, and has no clock of its own.
type gate struct {
	rule      wire.Gate
	target    *float64
	band      *float64
	direction float64 // sign of travel along the course's heading
	course    wire.Course
	armedNs   int64
	inBandNs  int64 // since when the band has held; 0 when it does not
	site      *point
}

type point struct{ latDeg, lonDeg float64 }

func newGate(t wire.Trial, armedNs int64) *gate {
	g := &gate{rule: t.Gate, target: t.SpeedMps, band: t.Acceptance.SpeedBandMps, course: t.Course, armedNs: armedNs,
		direction: 1}
	if t.Direction == "inbound" {
		g.direction = -1
	}
	if t.Course.SiteLatDeg != nil && t.Course.SiteLonDeg != nil {
		g.site = &point{*t.Course.SiteLatDeg, *t.Course.SiteLonDeg}
	}
	return g
}

// open reports whether the gate is open at nowNs, and if not, what it waits for.
func (g *gate) open(nowNs int64, fix wire.GPS) (bool, string) {
	fresh := fix.FixAgeMs != nil && *fix.FixAgeMs <= float64(freshFix.Milliseconds()) && fix.Mode >= 2
	if g.rule.AfterS != nil && float64(nowNs-g.armedNs) < *g.rule.AfterS*1e9 {
		return false, "waiting for the time"
	}
	if g.rule.SpeedBand && !g.bandHeld(nowNs, fix, fresh) {
		return false, g.bandDetail(fix, fresh)
	}
	if g.rule.PlaceM != nil && !g.passed(fix, fresh) {
		return false, fmt.Sprintf("waiting for the mark at %.0f m", *g.rule.PlaceM)
	}
	return true, "open"
}

// closedFor returns after which time to look again: at the time that the gate waits
// for, but soon enough for a machine that is suspended meanwhile.
func (g *gate) closedFor(nowNs, limitNs int64) time.Duration {
	wait := int64(0)
	if g.rule.AfterS != nil {
		wait = g.armedNs + int64(*g.rule.AfterS*1e9) - nowNs
	}
	return min(max(gateEvery, time.Duration(min(wait, limitNs-nowNs))), restInterval)
}

func (g *gate) bandHeld(nowNs int64, fix wire.GPS, fresh bool) bool {
	in := fresh && fix.SpeedMps != nil && g.target != nil && g.band != nil &&
		math.Abs(*fix.SpeedMps-*g.target) <= *g.band
	if !in {
		g.inBandNs = 0
		return false
	}
	if g.inBandNs == 0 {
		g.inBandNs = nowNs
	}
	return float64(nowNs-g.inBandNs) >= g.rule.HoldS*1e9
}

func (g *gate) bandDetail(fix wire.GPS, fresh bool) string {
	switch {
	case !fresh || fix.SpeedMps == nil:
		return "waiting for a GPS fix"
	case g.target == nil:
		return "no target speed"
	case g.inBandNs != 0:
		return fmt.Sprintf("hold: %.1f of %.1f m/s", *fix.SpeedMps, *g.target)
	case *fix.SpeedMps < *g.target:
		return fmt.Sprintf("faster: %.1f of %.1f m/s", *fix.SpeedMps, *g.target)
	}
	return fmt.Sprintf("slower: %.1f of %.1f m/s", *fix.SpeedMps, *g.target)
}

// passed reports whether the car has crossed the mark in its direction of travel.
func (g *gate) passed(fix wire.GPS, fresh bool) bool {
	if !fresh || g.site == nil || fix.LatDeg == nil || fix.LonDeg == nil {
		return false
	}
	return (along(*g.site, point{*fix.LatDeg, *fix.LonDeg}, g.course.HeadingDeg)-*g.rule.PlaceM)*g.direction >= 0
}

// along is the distance in metres from site to p in the direction of a true
// bearing, on a sphere of the Earth's mean radius; over
// the kilometres of a course the flat approximation errs by under 0.1 %.
func along(site, p point, bearingDeg float64) float64 {
	rad := math.Pi / 180
	north := (p.latDeg - site.latDeg) * rad * earth.MeanRadiusM
	east := (p.lonDeg - site.lonDeg) * rad * earth.MeanRadiusM * math.Cos(site.latDeg*rad)
	b := bearingDeg * rad
	return north*math.Cos(b) + east*math.Sin(b)
}

// initiate waits for the gate and then sends GO until every peer has answered.
func (a *attempt) initiate() {
	e := a.engine
	g := newGate(a.trial, e.deps.Clock.BootNs())
	limit := e.deps.Clock.BootNs() + int64(a.trial.Gate.TimeoutS*1e9)
	peers, err := a.peers()
	if err == nil {
		err = a.readyPeers(peers, limit)
	}
	if err != nil {
		a.giveUp(err)
		return
	}
	for {
		fix, _ := e.deps.GPS.Last()
		now := e.deps.Clock.BootNs()
		open, detail := g.open(now, fix)
		if open {
			break
		}
		a.setDetail(detail)
		if now > limit {
			a.cancel(faultf(wire.ReasonGateTimeout, "the gate did not open within %.0f s: %s",
				a.trial.Gate.TimeoutS, detail))
			return
		}
		if pause.For(a.ctx, g.closedFor(now, limit)) != nil {
			return
		}
	}
	if err := a.sendGo(peers); err != nil {
		a.giveUp(err)
	}
}

// giveUp ends the attempt for a reason, unless it has been ended already.
func (a *attempt) giveUp(err error) {
	if !errors.Is(err, context.Canceled) {
		a.cancel(err)
	}
}

func (a *attempt) setDetail(detail string) {
	e := a.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.detail != detail && (a.state == wire.StateArmed || a.state == wire.StateLoaded) {
		a.detail = detail
		e.bump()
	}
}
