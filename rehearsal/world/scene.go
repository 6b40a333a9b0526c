package world

import (
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
)

// scene is where every node is at any time of the boot clock. It never
// changes; a change of course is a new scene.
type scene struct {
	site  mobility.Site
	fixed []mobility.State // by node
	mover int              // node that drives, -1 when nobody does
	drive mobility.Drive
}

func (s *scene) at(node int, boot time.Duration) mobility.State {
	if node == s.mover {
		return s.drive.At(boot)
	}
	return s.fixed[node]
}

// standing is the field before its first trial: the nodes in a row.
func standing(c Config, nodes int) *scene {
	s := &scene{site: c.Field.Site(), mover: -1}
	for k := range nodes {
		s.fixed = append(s.fixed, stand(wire.Course{}, c.Field.SpacingM*float64(k)))
	}
	return s
}

// stand is a node beside the road, metres along it.
func stand(c wire.Course, alongM float64) mobility.State {
	sin, cos := math.Sincos(c.HeadingDeg * math.Pi / 180)
	return mobility.State{XM: alongM * sin, YM: alongM * cos, TrackDeg: math.Mod(c.HeadingDeg+360, 360), DistanceM: math.Abs(alongM)}
}

// arrange puts the nodes where a trial wants them: the roadside node (the
// first node, when none is named) at the origin, the car at its start, and
// the others spaced out along the road.
func (f *Field) arrange(t wire.Trial) (*scene, error) {
	s := &scene{site: f.cfg.Field.Site(), mover: -1, fixed: make([]mobility.State, len(f.nodes))}
	if t.Course.SiteLatDeg != nil && t.Course.SiteLonDeg != nil {
		s.site = mobility.Site{LatDeg: *t.Course.SiteLatDeg, LonDeg: *t.Course.SiteLonDeg}
	}
	roadside := 0
	if t.Roadside != "" {
		if roadside = f.find(t.Roadside); roadside < 0 {
			return nil, fmt.Errorf("place trial %d: the field has no node %q", t.Number, t.Roadside)
		}
	}
	if t.Car != "" {
		if s.mover = f.find(t.Car); s.mover < 0 {
			return nil, fmt.Errorf("place trial %d: the field has no node %q", t.Number, t.Car)
		}
		if t.Roadside == "" && s.mover == roadside {
			roadside = (s.mover + 1) % len(f.nodes)
		}
		speed := 0.0
		if t.SpeedMps != nil {
			speed = *t.SpeedMps
		}
		drive, err := mobility.New(t.Course, speed, t.Direction)
		if err != nil {
			return nil, fmt.Errorf("place trial %d: %w", t.Number, err)
		}
		s.drive = drive
	}
	for k, i := 0, 0; i < len(f.nodes); i++ {
		if i == roadside || i == s.mover {
			s.fixed[i] = stand(t.Course, 0)
			continue
		}
		k++
		s.fixed[i] = stand(t.Course, f.cfg.Field.SpacingM*float64(k))
	}
	return s, nil
}

func (f *Field) find(name string) int {
	for i, n := range f.nodes {
		if n.Name == name {
			return i
		}
	}
	return -1
}

// truthEvery is the rate of truth records, that of the agents' samplers.
const truthEvery = 100 * time.Millisecond

// truth is where the car was during [open, close] of the boot clock.
func (s *scene) truth(of string, open, closed time.Duration) []wire.Record {
	if s.mover < 0 {
		return nil
	}
	var out []wire.Record
	for t := open; t <= closed; t += truthEvery {
		at := s.drive.At(t)
		out = append(out, wire.Record{Header: wire.Header{TBootNs: int64(t)}, Body: &wire.Truth{
			Of: of, XM: at.XM, YM: at.YM, SpeedMps: at.SpeedMps, DistanceM: at.DistanceM,
		}})
	}
	return out
}
