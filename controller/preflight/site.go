package preflight

import (
	"context"
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	place "fieldmesh.dev/fieldmesh/controller/plan/site"
	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	siteKeys = "give course.site_lat_deg and course.site_lon_deg"
	siteCure = siteKeys + ", or the roadside node a receiver, or an app, that " +
		"has a fix; with gate.at_start: false a drive back at the right speed can open a window"
	siteEvery = 250 * time.Millisecond
	// siteErrM is the greatest error, as gpsd estimates it, of a place from which a run's starts are measured: that of
	// a receiver without corrections at an HDOP of 2, for gpsd reckons with 15 m at one of 1 (libgpsd_core.c, UERE).
	siteErrM = 30.0
	// leftCure is for a run of which nothing is left but to collect it.
	leftCure = "where nothing is left to drive, `fieldmesh pull RUN` collects and judges without it; "
)

// Swapped says why no road run finds out where the roadside node of a campaign stands: nodes swap their places, and the
// campaign does not say it. nil: it does, or one node is asked.
func Swapped(c *plan.Campaign) error {
	trials, err := c.Schedule()
	if err != nil || c.NeedsSite() { // which is said by itself
		return err
	}
	_, err = place.Roadside(trials)
	return err
}

// siteOf is where a node's receiver says that it stands.
func siteOf(st wire.NodeStatus) (site wire.Course, known bool) {
	g := st.GPS
	if g == nil || g.Mode < 3 || g.FixAgeMs == nil || *g.FixAgeMs > freshFixMs || g.LatDeg == nil || g.LonDeg == nil ||
		g.HorizErrM != nil && *g.HorizErrM > siteErrM {
		return site, false
	}
	return wire.Course{SiteLatDeg: g.LatDeg, SiteLonDeg: g.LonDeg}, true
}

// siteWords says what a node's receiver has.
func siteWords(st wire.NodeStatus) string {
	if g := st.GPS; g != nil && g.HorizErrM != nil && *g.HorizErrM > siteErrM {
		return fmt.Sprintf("%s, off by up to %.0f m; at most %.0f m will do", gpsWords(st), *g.HorizErrM, siteErrM)
	}
	return gpsWords(st) + ", and a fresh 3-D fix is needed"
}

// Locate writes into a plan where the roadside node stands, by its own receiver, where that is needed and the campaign
// does not say. It asks again until there is a fix or patience is over. It returns what it found in words, "" for a
// plan that needs no place.
func Locate(ctx context.Context, p *wire.RunPlan, fleetFile string, patience time.Duration) (said string, err error) {
	node, err := place.Roadside(p.Trials)
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, siteKeys)
	}
	if node == "" {
		return "", nil
	}
	site, err := locate(ctx, fleetFile, node, patience)
	if err != nil {
		return "", fmt.Errorf("find where the roadside node stands: %w", err)
	}
	for i := range p.Trials {
		if t := &p.Trials[i]; place.Unplaced(*t) {
			t.Course.SiteLatDeg, t.Course.SiteLonDeg = site.SiteLatDeg, site.SiteLonDeg
		}
	}
	return fmt.Sprintf("by its receiver %s stands at %.5f, %.5f: the car's start is measured from there", node,
		*site.SiteLatDeg, *site.SiteLonDeg), nil
}

func locate(ctx context.Context, fleetFile, node string, patience time.Duration) (site wire.Course, err error) {
	fl, err := fleet.Load(fleetFile)
	if err != nil {
		return site, err
	}
	identity, err := fl.Identity()
	if err != nil {
		return site, err
	}
	c, err := fl.Client(identity, node)
	if err != nil {
		return site, err
	}
	defer c.Close()
	for began := time.Now(); ; {
		st, err := c.Status(ctx)
		if err == nil {
			var known bool
			if site, known = siteOf(st); known {
				return site, nil
			}
			err = fmt.Errorf("node %s: %s; %s", node, siteWords(st), siteCure)
		}
		if time.Since(began) > patience || ctx.Err() != nil {
			return site, err
		}
		_ = pause.For(ctx, siteEvery)
	}
}

// site is of nodes in trials whose car must have stood at its start: whether their agents know that, and of the
// roadside node, from whose mark the start is measured, where it stands.
func (j *judge) site() {
	waits, asked := false, false
	for _, t := range j.trials {
		waits = waits || t.Gate.AtStart
		asked = asked || t.Roadside == j.name && place.Unplaced(t)
	}
	if waits && !j.st.AtStart {
		j.unmet("start", "the node's agent opens a window wherever the car is", "install this version's agent there")
	}
	if !asked {
		j.stands()
		return
	}
	if _, known := siteOf(j.st); known {
		j.met("site", "its receiver says where it stands, from which the car's start is measured")
	} else {
		j.unmet("site", "the car's start is measured from where this node stands, which neither the file nor a "+
			"receiver says: "+siteWords(j.st), siteCure)
	}
}

// stands is of a roadside node whose place the plan has: whether it stands there, as far as both errors let that be
// told. A run that is resumed has the place of the day on which it was begun. Of several places one will do, for such
// a node is moved meanwhile; one that is in the car in some trials may be in it now, and one without a receiver is
// believed to stand there.
func (j *judge) stands() {
	fix, known := siteOf(j.st)
	has, offM, lat, lon := false, math.Inf(1), 0.0, 0.0
	for _, t := range j.trials {
		c := t.Course
		switch {
		case t.Car == j.name:
			return
		case t.Roadside != j.name || !t.Gate.AtStart || c.SiteLatDeg == nil || c.SiteLonDeg == nil:
			continue
		}
		if has = true; !known {
			continue
		}
		x, y := earth.Site{LatDeg: *c.SiteLatDeg, LonDeg: *c.SiteLonDeg}.XY(*fix.SiteLatDeg, *fix.SiteLonDeg)
		if m := math.Hypot(x, y); m < offM {
			offM, lat, lon = m, *c.SiteLatDeg, *c.SiteLonDeg
		}
	}
	g, errM := j.st.GPS, siteErrM
	if !has || g == nil || !g.Connected {
		return
	}
	if g.HorizErrM != nil {
		errM = *g.HorizErrM
	}
	stands := fmt.Sprintf("by its receiver it stands %.0f m from the place that the car's start is measured from, "+
		"%.5f, %.5f", offM, lat, lon)
	switch {
	case !known:
		j.unmet("site", "whether it stands where the car's start is measured from is not known: "+siteWords(j.st),
			leftCure+"give the receiver a view of the sky and wait")
	case offM <= errM+wire.AtStartM:
		j.met("site", "%s", stands)
	case offM <= errM+siteErrM:
		j.put("site", Unknown, stands+": the error of the fix by which the place was found may explain it", "look "+
			"whether it stands where it stood when the run was begun, for the car's start would be off as far")
	default:
		j.unmet("site", stands, leftCure+"to drive on, put it where it stood when the run was begun, or begin another "+
			"run; where the campaign says the place, correct course.site_lat_deg and course.site_lon_deg")
	}
}
