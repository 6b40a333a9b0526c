// Package gate decides when a trial's window may open.
package gate

import (
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// Every is how often a gate is looked at that waits for no time.
	Every = 50 * time.Millisecond
	// FreshFix is the age beyond which a fix opens no gate: receivers of 1 Hz
	// are the slowest in use, and one lost fix is forgiven.
	FreshFix = 1500 * time.Millisecond
	// AtMarkM is what wire.AtStartM is, of a parked car, whose marks a person has measured, and which must not be taken
	// for another's.
	AtMarkM = 12.0
	// standingMps is below a walk, and above what a receiver that stands tells.
	standingMps = 1.0
	// rollingNs is for how long a parked car may seem to roll, or be without a fix, before it counts as gone; and
	// one that is driven to stand elsewhere, or to drive back, before it has to come to its start again.
	rollingNs = int64(3 * time.Second)
)

// Gate decides when the initiator may open the window. It is fed the newest
// fix and the time, and has no clock of its own.
type Gate struct {
	rule      wire.Gate
	target    *float64
	band      *float64
	direction float64 // sign of travel along the course's heading
	course    wire.Course
	armedNs   int64
	startedNs int64 // when the car first stood at its start; 0 where it must and has not yet
	stoodNs   int64 // when it stood there last
	strayNs   int64 // since when it stands elsewhere or drives back; 0 when it does not
	late      bool  // it has not stood there since it missed its place
	inBandNs  int64 // since when the band has held; 0 when it does not
	site      *point
}

type point struct{ latDeg, lonDeg float64 }

// New is the gate of a trial that was armed at armedNs.
func New(t wire.Trial, armedNs int64) *Gate {
	g := &Gate{rule: t.Gate, target: t.SpeedMps, band: t.Acceptance.SpeedBandMps, course: t.Course, armedNs: armedNs,
		direction: 1}
	if t.Direction == "inbound" {
		g.direction = -1
	}
	if !t.Gate.AtStart {
		g.startedNs, g.stoodNs = armedNs, armedNs
	}
	if t.Course.SiteLatDeg != nil && t.Course.SiteLonDeg != nil {
		g.site = &point{*t.Course.SiteLatDeg, *t.Course.SiteLonDeg}
	}
	return g
}

// RestUntil returns until when a node need not sample much: no window opens before
// the time that the gate waits for. 0: from the beginning it must.
func RestUntil(t wire.Trial, armedNs int64) int64 {
	const restEnds = 2 * time.Second // before the first moment at which a window can open
	if t.Gate.AfterS == nil {
		return 0
	}
	rest := time.Duration(*t.Gate.AfterS*float64(time.Second)) - restEnds
	if rest <= 0 {
		return 0
	}
	return armedNs + rest.Nanoseconds()
}

// Open reports whether the gate is open at nowNs, and if not, what it waits for.
func (g *Gate) Open(nowNs int64, fix wire.GPS) (bool, string) {
	fresh := fix.FixAgeMs != nil && *fix.FixAgeMs <= float64(FreshFix.Milliseconds()) && fix.Mode >= 2
	stands := false
	if g.rule.AtStart {
		stands = g.stands(nowNs, fix, fresh)
		if g.startedNs == 0 || g.parked() && !stands {
			return false, g.startDetail(fix, fresh)
		}
	}
	sinceNs := g.stoodNs // a car that is driven sets off; plan and rehearsal reckon from that
	if g.parked() {
		sinceNs = g.startedNs
	}
	if g.rule.AfterS != nil && float64(nowNs-sinceNs) < *g.rule.AfterS*1e9 {
		return false, g.timeDetail(*g.rule.AfterS-float64(nowNs-sinceNs)/1e9, stands, fix, fresh)
	}
	if g.rule.SpeedBand && !g.bandHeld(nowNs, fix, fresh) {
		if g.missed(fix, fresh) {
			g.startedNs, g.late = 0, true
			return false, g.startDetail(fix, fresh)
		}
		return false, g.bandDetail(fix, fresh)
	}
	if g.rule.PlaceM != nil && !g.passed(fix, fresh) {
		return false, fmt.Sprintf("waiting for the mark at %.0f m", *g.rule.PlaceM)
	}
	return true, "open"
}

// WithinS is how long the gate may stay closed. Where the car must come to its start first, its time begins when the
// car has stood there last.
func (g *Gate) WithinS() float64 {
	if g.startedNs == 0 {
		return wire.ReturnS
	}
	return g.rule.TimeoutS
}

// Started reports whether the car has stood at its start, where it must.
func (g *Gate) Started() bool { return g.startedNs != 0 }

// Away reports whether the car of a trial is not at its start, where that is known. A gate that is looked at later
// knows nothing of it: who has set off by then has to come back, or the window could open too far on.
func Away(t wire.Trial, nowNs int64, fix wire.GPS) bool {
	g := New(t, nowNs)
	g.Open(nowNs, fix)
	return g.Away()
}

// Away reports whether the car has yet to stand at its start, where that is known.
func (g *Gate) Away() bool { return !g.Started() && g.site != nil }

// Returns reports whether the car has yet to come to its start, and may take longer, and what the gate waits for.
func (g *Gate) Returns(nowNs int64, fix wire.GPS) (yet bool, detail string) {
	_, detail = g.Open(nowNs, fix)
	return !g.Started() && nowNs <= g.LimitNs(), detail
}

// LimitNs is until when the gate must open: no later than the peers wait for it.
func (g *Gate) LimitNs() int64 {
	limitNs := max(g.armedNs, g.stoodNs) + int64(g.WithinS()*1e9)
	return min(limitNs, g.armedNs+int64((g.rule.ReturnS()+g.rule.TimeoutS)*1e9))
}

// Held reports whether a car that has stood at its start keeps the gate closed by no more than that: its time runs on.
func (g *Gate) Held(nowNs int64) bool {
	return g.rule.AtStart && g.Started() && float64(nowNs-g.stoodNs) <= g.rule.TimeoutS*1e9
}

// ClosedFor returns after which time to look again: at the time that the gate waits
// for, but after most at the latest: a machine may be suspended meanwhile.
func (g *Gate) ClosedFor(nowNs int64, most time.Duration) time.Duration {
	wait, limitNs := int64(0), g.LimitNs()
	if g.rule.AfterS != nil && !g.rule.AtStart {
		wait = g.startedNs + int64(*g.rule.AfterS*1e9) - nowNs
	}
	return min(max(Every, time.Duration(min(wait, limitNs-nowNs))), most)
}

func (g *Gate) parked() bool { return g.course.Kind == "parked" }

// stands reports whether the car stands at its start now. A parked one that has gone begins again.
func (g *Gate) stands(nowNs int64, fix wire.GPS, fresh bool) bool {
	offM, known := g.offStart(fix, fresh)
	still := fix.SpeedMps != nil && *fix.SpeedMps <= standingMps
	if g.parked() {
		still = fix.SpeedMps == nil || still
	}
	if known && still && offM <= g.nearM() && !g.beyond(fix) {
		if g.startedNs == 0 {
			g.startedNs = nowNs
		}
		g.stoodNs, g.strayNs, g.late = nowNs, 0, false
		return true
	}
	switch {
	case !g.parked():
		g.recall(nowNs, fix, known && still && offM > wire.AtStartM, fresh)
	case nowNs-g.stoodNs > rollingNs:
		g.startedNs = 0
	}
	return false
}

// recall has a car come to its start again that halts elsewhere, or drives back. Before the place that its gate waits
// for it may do both.
func (g *Gate) recall(nowNs int64, fix wire.GPS, halts, fresh bool) {
	if !fresh {
		return
	}
	if (g.rule.PlaceM != nil && !g.passed(fix, fresh)) || !halts && !g.turned(fix) {
		g.strayNs = 0
		return
	}
	if g.strayNs == 0 {
		g.strayNs = nowNs
	}
	if nowNs-g.strayNs > rollingNs {
		g.startedNs = 0
	}
}

// beyond reports whether the car is past the place that its gate waits for: it has not come to its start.
func (g *Gate) beyond(fix wire.GPS) bool { return g.rule.PlaceM != nil && g.passed(fix, true) }

func (g *Gate) nearM() float64 {
	if g.parked() {
		return AtMarkM
	}
	return wire.AtStartM
}

// offStart is how far the car is from its start in m. Where the car departs from the roadside node to either side, and
// waits for no place, that is how much farther from the node it is than its start: the road's bearing does not matter.
func (g *Gate) offStart(fix wire.GPS, fresh bool) (offM float64, known bool) {
	if !fresh || g.site == nil || fix.LatDeg == nil || fix.LonDeg == nil {
		return 0, false
	}
	alongM, acrossM := g.onRoad(fix)
	startM := g.course.FromM(g.direction < 0)
	if g.eitherSide() {
		return math.Abs(math.Hypot(alongM, acrossM) - math.Hypot(startM, g.course.OffsetM)), true
	}
	return math.Max(math.Abs(alongM-startM), math.Abs(acrossM)-g.course.OffsetM), true
}

// onRoad is a fix in m from the roadside node, along the road's line and across.
func (g *Gate) onRoad(fix wire.GPS) (alongM, acrossM float64) {
	here := point{*fix.LatDeg, *fix.LonDeg}
	return along(*g.site, here, g.course.HeadingDeg), along(*g.site, here, g.course.HeadingDeg+90)
}

// beside reports whether the car has come as far along the road's line as its start lies. What it is off then, it is
// off across: 10 degrees of bearing are 26 m at 150 m.
func (g *Gate) beside(fix wire.GPS) bool {
	alongM, _ := g.onRoad(fix)
	return !g.eitherSide() && math.Abs(alongM-g.course.FromM(g.direction < 0)) <= g.nearM()
}

// eitherSide reports whether the car may depart from the roadside node to either side: the bearing is not known then.
func (g *Gate) eitherSide() bool { return g.course.Kind == "depart" && g.rule.PlaceM == nil }

func (g *Gate) startDetail(fix wire.GPS, fresh bool) string {
	where := "start"
	if g.parked() {
		where = "mark"
	}
	switch offM, known := g.offStart(fix, fresh); {
	case g.site == nil:
		return "the roadside node's place is not known"
	case !known:
		return "waiting for a GPS fix"
	case offM > g.nearM() && g.late:
		return fmt.Sprintf("too late: drive back to the start, %.0f m from here", offM)
	case offM > g.nearM() && g.beside(fix):
		return fmt.Sprintf("%.0f m beside the road's line: is course.heading_deg its true bearing?", offM)
	case offM > g.nearM():
		return fmt.Sprintf("drive to the %s, %.0f m from here", where, offM)
	case g.beyond(fix):
		return "drive back beyond the mark at which the window opens"
	}
	return "stop at the " + where
}

// timeDetail is told for as long as the window must stay closed. That time does not pass for a car that stands at its
// start.
func (g *Gate) timeDetail(leftS float64, stands bool, fix wire.GPS, fresh bool) string {
	if !g.rule.AtStart || g.parked() {
		return "waiting for the time"
	}
	closed := fmt.Sprintf("the window stays closed for %.0f s", math.Ceil(leftS))
	switch {
	case stands:
		return "set off: " + closed + " after that"
	case g.rule.SpeedBand:
		return g.bandDetail(fix, fresh) + "; " + closed
	}
	return closed
}

func (g *Gate) bandHeld(nowNs int64, fix wire.GPS, fresh bool) bool {
	if !g.inBand(fix, fresh) {
		g.inBandNs = 0
		return false
	}
	if g.inBandNs == 0 {
		g.inBandNs = nowNs
	}
	return float64(nowNs-g.inBandNs) >= g.rule.HoldS*1e9
}

func (g *Gate) inBand(fix wire.GPS, fresh bool) bool {
	return fresh && fix.SpeedMps != nil && g.target != nil && g.band != nil &&
		math.Abs(*fix.SpeedMps-*g.target) <= *g.band && !g.turned(fix)
}

// turned reports whether the car drives against its direction of travel. Where the road's bearing is not known, that is
// towards the roadside node: on the line that it drives along, the node, or a start that lies behind it, is farther
// ahead than the car's start may be off.
func (g *Gate) turned(fix wire.GPS) bool {
	if !g.rule.AtStart || fix.TrackDeg == nil || fix.SpeedMps == nil || *fix.SpeedMps <= standingMps {
		return false
	}
	if !g.eitherSide() {
		return math.Cos((*fix.TrackDeg-g.course.HeadingDeg)*math.Pi/180)*g.direction < 0
	}
	if g.site == nil || fix.LatDeg == nil || fix.LonDeg == nil {
		return false
	}
	return along(*g.site, point{*fix.LatDeg, *fix.LonDeg}, *fix.TrackDeg) < min(g.course.StartM, 0)-wire.AtStartM
}

func (g *Gate) bandDetail(fix wire.GPS, fresh bool) string {
	switch {
	case !fresh || fix.SpeedMps == nil:
		return "waiting for a GPS fix"
	case g.target == nil:
		return "no target speed"
	case g.turned(fix) && g.eitherSide(): // it is on its way back
		return g.startDetail(fix, fresh)
	case g.turned(fix):
		return "turn round: the trial is driven the other way"
	case g.inBand(fix, fresh):
		return fmt.Sprintf("hold: %.1f of %.1f m/s", *fix.SpeedMps, *g.target)
	case *fix.SpeedMps < *g.target:
		return fmt.Sprintf("faster: %.1f of %.1f m/s", *fix.SpeedMps, *g.target)
	}
	return fmt.Sprintf("slower: %.1f of %.1f m/s", *fix.SpeedMps, *g.target)
}

// missed reports whether the car has come to its segment without its speed, by more than its place may be off: the
// window would be of another stretch than those of other speeds. A gate that waits for a time has no stretch.
func (g *Gate) missed(fix wire.GPS, fresh bool) bool {
	if !g.rule.AtStart || g.course.Kind != "segment" || g.rule.PlaceM == nil || g.rule.AfterS != nil {
		return false
	}
	pastM, known := g.past(fix, fresh)
	return known && fix.SpeedMps != nil && g.inBandNs == 0 && pastM > wire.AtStartM
}

// passed reports whether the car has crossed the mark in its direction of travel.
func (g *Gate) passed(fix wire.GPS, fresh bool) bool {
	pastM, known := g.past(fix, fresh)
	return known && pastM >= 0
}

// past is how far beyond the mark the car is, in its direction of travel.
func (g *Gate) past(fix wire.GPS, fresh bool) (m float64, known bool) {
	if !fresh || g.site == nil || fix.LatDeg == nil || fix.LonDeg == nil {
		return 0, false
	}
	alongM := along(*g.site, point{*fix.LatDeg, *fix.LonDeg}, g.course.HeadingDeg)
	return (alongM - *g.rule.PlaceM) * g.direction, true
}

// along is the distance in metres from site to p in the direction of a true
// bearing, on a sphere of the Earth's mean radius; over
// the kilometres of a course the flat approximation errs by under 0.1 %.
func along(site, p point, bearingDeg float64) float64 {
	rad := math.Pi / 180
	north := (p.latDeg - site.latDeg) * rad * earth.MeanRadiusM
	east := earth.EastDeg(site.lonDeg, p.lonDeg) * rad * earth.MeanRadiusM * math.Cos(site.latDeg*rad)
	b := bearingDeg * rad
	return north*math.Cos(b) + east*math.Sin(b)
}
