package field

import (
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
)

// scene is where every node is at any time of the boot clock. It never
// changes; a change of course is a new scene.
type scene struct {
	site   earth.Site
	fixed  []mobility.State // by node
	mover  int              // node that drives, -1 when nobody does
	drive  mobility.Drive
	anchor int // node that distances are told to

	paths []*mobility.Path // by node; nil entries, and a nil slice, for nodes that fixed or drive places
	lead  time.Duration    // from the departure to the paths' time 0
	off   *time.Duration   // boot time of the paths' time 0
	halt  *time.Duration   // boot time from which the nodes on paths stand
}

// departing is the scene whose nodes set off at a time. What follows a path
// waits until the window is about to open.
func (s scene) departing(now time.Duration) *scene {
	s.drive = s.drive.Depart(now)
	off := now + s.lead
	s.off, s.halt = &off, nil
	return &s
}

// drove reports whether the nodes had set off, or been told when to, by a moment of the boot clock.
func (s *scene) drove(bootNs int64) bool { return s.off != nil && bootNs > int64(*s.off-s.lead) }

// braking is the scene whose car brakes, and whose other nodes stand, from a time on.
func (s scene) braking(now time.Duration) *scene {
	s.drive = s.drive.Brake(now)
	s.halt = &now
	return &s
}

func (s *scene) at(node int, boot time.Duration) mobility.State {
	if node == s.mover {
		return s.drive.At(boot)
	}
	if s.paths != nil && s.paths[node] != nil {
		return s.onPath(*s.paths[node], boot)
	}
	return s.fixed[node]
}

func (s *scene) onPath(p mobility.Path, boot time.Duration) mobility.State {
	moving := s.off != nil && boot >= *s.off
	var t time.Duration
	if moving {
		if s.halt != nil && boot >= *s.halt {
			boot, moving = max(*s.halt, *s.off), false
		}
		t = boot - *s.off
	}
	state := p.At(t)
	if !moving {
		state.SpeedMps = 0
	}
	return state
}

// moves reports whether a node can be anywhere else than where it is.
func (s *scene) moves(node int) bool {
	if node == s.mover {
		return s.drive.Moves()
	}
	return s.paths != nil && s.paths[node] != nil && s.paths[node].Moves()
}

// stand is a node beside the road, metres along it.
func stand(c wire.Course, alongM float64) mobility.State {
	sin, cos := math.Sincos(c.HeadingDeg * math.Pi / 180)
	return mobility.State{XM: alongM * sin, YM: alongM * cos, TrackDeg: math.Mod(c.HeadingDeg+360, 360),
		DistanceM: math.Abs(alongM)}
}

// stage is what scenes are made from.
type stage struct {
	field Settings
	names []string
	moved *movement // nil: nodes that no course places stand in a row
}

// newStage reads what a field's scenes need; files are below dir.
func newStage(c Settings, names []string, seed uint64, dir string) (*stage, error) {
	m, err := newMovement(c.Mobility, names, seed, dir, c.Site())
	if err != nil {
		return nil, err
	}
	return &stage{field: c, names: names, moved: m}, nil
}

func (s *stage) find(name string) int {
	for i, n := range s.names {
		if n == name {
			return i
		}
	}
	return -1
}

// empty is the field before its first trial.
func (s *stage) empty() (*scene, error) {
	return s.arrange(wire.Trial{Course: wire.Course{Kind: "none"}})
}

// arrange puts the nodes where a trial wants them: the roadside node (the
// first node, when none is named) at the origin, the car at its start, and
// the others where the field's mobility has them or, without one, spaced out
// along the road. Without a car that a course drives, the mobility places all.
func (s *stage) arrange(t wire.Trial) (*scene, error) {
	out := &scene{site: s.field.Site(), mover: -1, fixed: make([]mobility.State, len(s.names)),
		lead: time.Duration((orZero(t.Gate.AfterS) + t.Gate.LeadS) * float64(time.Second))}
	if t.Course.SiteLatDeg != nil && t.Course.SiteLonDeg != nil {
		out.site = earth.Site{LatDeg: *t.Course.SiteLatDeg, LonDeg: *t.Course.SiteLonDeg}
	}
	roadside, car, err := s.ends(t)
	if err != nil {
		return nil, err
	}
	onCourse := car >= 0 && (t.Course.Kind != "none" || s.moved == nil)
	if onCourse {
		speed := orZero(t.SpeedMps)
		if out.mover, out.drive, err = driven(car, t, speed); err != nil {
			return nil, err
		}
	}
	out.anchor = roadside
	if i := s.find(t.Receiver); i >= 0 && !onCourse && t.Roadside == "" {
		out.anchor = i
	}
	if s.moved == nil {
		s.row(out, t.Course, roadside)
		return out, nil
	}
	paths, err := s.moved.paths(t)
	if err != nil {
		return nil, fmt.Errorf("place trial %d: %w", t.Number, err)
	}
	if s.moved.cfg.Drawn() {
		out.lead -= time.Duration(t.WarmupS() * float64(time.Second))
	}
	out.paths = make([]*mobility.Path, len(s.names))
	for i := range paths {
		if onCourse && (i == roadside || i == out.mover) {
			out.fixed[i] = stand(t.Course, 0)
			continue
		}
		if onCourse && paths[i].Moves() && waitsForCar(t) {
			return nil, fmt.Errorf("place trial %d: node %q moves beside a car whose speed or place the gate waits "+
				"for, so that where the node is in the window would depend on the car: give trial.gate after_s "+
				"without speed_band and place_m, or have field.mobility let the node stand", t.Number, s.names[i])
		}
		out.paths[i] = &paths[i]
	}
	return out, nil
}

// waitsForCar reports whether it is the car that opens the window, and no time after the departure.
func waitsForCar(t wire.Trial) bool { return t.Gate.SpeedBand || t.Gate.PlaceM != nil }

func driven(car int, t wire.Trial, speed float64) (int, mobility.Drive, error) {
	d, err := mobility.New(t.Course, speed, t.Direction)
	if err != nil {
		return -1, d, fmt.Errorf("place trial %d: %w", t.Number, err)
	}
	return car, d, nil
}

// ends are the indices of the roadside node and of the car, which is -1 when
// there is none.
func (s *stage) ends(t wire.Trial) (roadside, car int, err error) {
	if car = -1; t.Car != "" {
		if car = s.find(t.Car); car < 0 {
			return 0, 0, fmt.Errorf("place trial %d: the field has no node %q", t.Number, t.Car)
		}
	}
	if t.Roadside != "" {
		if roadside = s.find(t.Roadside); roadside < 0 {
			return 0, 0, fmt.Errorf("place trial %d: the field has no node %q", t.Number, t.Roadside)
		}
	}
	if t.Roadside == "" && car == roadside {
		roadside = (car + 1) % len(s.names)
	}
	return roadside, car, nil
}

// row stands the nodes that no course places along the road.
func (s *stage) row(out *scene, c wire.Course, roadside int) {
	k := 0
	for i := range s.names {
		if i == roadside || i == out.mover {
			out.fixed[i] = stand(c, 0)
			continue
		}
		k++
		out.fixed[i] = stand(c, s.field.SpacingM*float64(k))
	}
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

const (
	// truthEvery is the rate of the car's truth records, that of the agents' samplers.
	truthEvery = 100 * time.Millisecond
	// othersEvery is that of other nodes that move; those that stand are told
	// at the window's edges.
	othersEvery = 500 * time.Millisecond
	// maxTruths bounds the records of one trial: with more the others' come
	// more seldom.
	maxTruths = 20_000
)

// truth is where the nodes were during [open, close] of the boot clock: the
// car first.
func (s *scene) truth(names []string, car string, open, closed time.Duration) []wire.Record {
	moving := 0
	for i := range names {
		if s.moves(i) {
			moving++
		}
	}
	every := max(othersEvery, (closed-open)*time.Duration(moving)/maxTruths)
	var out []wire.Record
	add := func(i int, t time.Duration) {
		at, to := s.at(i, t), s.at(s.anchor, t)
		distance := at.DistanceM // along a course it is measured from the mark
		if i != s.mover {
			distance = math.Hypot(at.XM-to.XM, at.YM-to.YM)
		}
		out = append(out, wire.Record{Header: wire.Header{TBootNs: int64(t)}, Body: &wire.Truth{
			Of: names[i], XM: at.XM, YM: at.YM, SpeedMps: at.SpeedMps, DistanceM: distance,
		}})
	}
	// through reports a node from edge to edge: both are told whatever the step.
	through := func(i int, every time.Duration) {
		for t := open; t < closed; t += every {
			add(i, t)
		}
		add(i, closed)
	}
	for i, name := range names {
		if name == car {
			through(i, truthEvery)
		}
	}
	for i, name := range names {
		switch {
		case name == car:
		case s.moves(i):
			through(i, every)
		default:
			add(i, open)
			add(i, closed)
		}
	}
	return out
}
