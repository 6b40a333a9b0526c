package preflight

import (
	"context"
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	siteCure = "give course.site_lat_deg and course.site_lon_deg, or a receiver with a fix to the roadside node; " +
		"with gate.at_start: false a drive back at the right speed can open a window"
	siteEvery = 250 * time.Millisecond
)

// unplaced reports whether the car must have stood at its start, which the campaign says from a roadside node whose
// place it does not say.
func unplaced(t wire.Trial) bool { return t.Gate.AtStart && t.Course.SiteLatDeg == nil }

// siteOf is where a node's receiver says that it stands.
func siteOf(st wire.NodeStatus) (latDeg, lonDeg *float64, known bool) {
	g := st.GPS
	if g == nil || g.Mode < 2 || g.FixAgeMs == nil || *g.FixAgeMs > freshFixMs || g.LatDeg == nil || g.LonDeg == nil {
		return nil, nil, false
	}
	return g.LatDeg, g.LonDeg, true
}

// Locate writes into a plan where the roadside nodes stand, by their own receivers, where that is needed and the
// campaign does not say. It asks again until they have a fix or patience is over.
func Locate(ctx context.Context, p *wire.RunPlan, fleetFile string, patience time.Duration) error {
	found := map[string]wire.Course{}
	for i := range p.Trials {
		t := &p.Trials[i]
		if !unplaced(*t) {
			continue
		}
		site, known := found[t.Roadside]
		if !known {
			var err error
			if site, err = locate(ctx, fleetFile, t.Roadside, patience); err != nil {
				return fmt.Errorf("find where the roadside node stands: %w", err)
			}
			found[t.Roadside] = site
		}
		t.Course.SiteLatDeg, t.Course.SiteLonDeg = site.SiteLatDeg, site.SiteLonDeg
	}
	return nil
}

func locate(ctx context.Context, fleetFile, node string, patience time.Duration) (at wire.Course, err error) {
	fl, err := fleet.Load(fleetFile)
	if err != nil {
		return at, err
	}
	identity, err := fl.Identity()
	if err != nil {
		return at, err
	}
	c, err := fl.Client(identity, node)
	if err != nil {
		return at, err
	}
	defer c.Close()
	for began := time.Now(); ; {
		st, err := c.Status(ctx)
		if err == nil {
			var known bool
			if at.SiteLatDeg, at.SiteLonDeg, known = siteOf(st); known {
				return at, nil
			}
			err = fmt.Errorf("node %s: %s; %s", node, gpsWords(st), siteCure)
		}
		if time.Since(began) > patience || ctx.Err() != nil {
			return at, err
		}
		_ = pause.For(ctx, siteEvery)
	}
}

// site is of the roadside node, from whose mark the car's start is measured.
func (j *judge) site() {
	for _, t := range j.trials {
		if t.Roadside != j.name || !unplaced(t) {
			continue
		}
		if _, _, known := siteOf(j.st); known {
			j.met("site", "its receiver says where it stands, from which the car's start is measured")
		} else {
			j.unmet("site", "the car's start is measured from where this node stands, which neither the file nor a "+
				"receiver says", siteCure)
		}
		return
	}
}
