package field

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
)

// staged is the stage of a field whose nodes are a, b and c.
func staged(t *testing.T, m MobilityConfig, files map[string]string) (*stage, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "movement"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "movement", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"a", "b", "c"}
	c, err := Settings{Mobility: &m}.AtTracks(names, dir)
	if err == nil {
		c, err = c.WithDefaults()
	}
	if err != nil {
		return nil, err
	}
	return newStage(c, names, 1, dir)
}

func noCar(repetition int) wire.Trial {
	after := 2.0
	return wire.Trial{Number: 1, Repetition: repetition, Sender: "a", Receiver: "c", DurationS: 10,
		Course: wire.Course{Kind: "none"}, Gate: wire.Gate{AfterS: &after, LeadS: 1, TimeoutS: 30}}
}

// A trial that is still has the places of one that moves, at its beginning.
func TestAStillTrialStays(t *testing.T) {
	for name, m := range map[string]MobilityConfig{
		"scripted": {Model: "chain", SpacingM: 100,
			Moves: []MoveConfig{{Node: "b", AtS: 0, XM: 100, YM: 500, SpeedMps: 10}}},
		"waypoint": {Model: "random_waypoint", Area: &AreaConfig{WidthM: 500, HeightM: 500}, SpeedMinMps: 5,
			SpeedMaxMps: 10},
	} {
		s, err := staged(t, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		still := noCar(1)
		still.Still = true
		stays, err := s.arrange(still)
		if err != nil {
			t.Fatal(err)
		}
		moves, err := s.arrange(noCar(1))
		if err != nil {
			t.Fatal(err)
		}
		stays, moves = stays.departing(0), moves.departing(0)
		begin, later := stays.at(1, 0), stays.at(1, 20*time.Second)
		if was := moves.at(1, 0); begin.XM != was.XM || begin.YM != was.YM || begin.XM != later.XM ||
			begin.YM != later.YM {
			t.Errorf("%s: %+v, later %+v; the moving one begins at %+v", name, begin, later, was)
		}
		if after := moves.at(1, 20*time.Second); after.XM == begin.XM && after.YM == begin.YM {
			t.Errorf("%s: the moving one stays too", name)
		}
	}
}

// Nodes stand until the window is about to open, move, and stand again.
func TestScriptedNodesWaitForTheWindow(t *testing.T) {
	s, err := staged(t, MobilityConfig{Model: "chain", SpacingM: 100,
		Moves: []MoveConfig{{Node: "b", AtS: 1, XM: 100, YM: 500, SpeedMps: 10}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	placed, err := s.arrange(noCar(1))
	if err != nil {
		t.Fatal(err)
	}
	driven := placed.departing(100 * time.Second) // after_s and lead_s: path time 0 is 103 s
	if placed.drove(101e9) || driven.drove(99e9) || !driven.drove(101e9) {
		t.Error("a window that opened while the nodes stood is taken for one of their drive")
	}
	for at, y := range map[float64]float64{0: 0, 102: 0, 104: 0, 105: 10, 114: 100} {
		if got := driven.at(1, time.Duration(at*float64(time.Second))); math.Abs(got.YM-y) > 1e-6 || got.XM != 100 {
			t.Errorf("at %g s: %+v, want y %g", at, got, y)
		}
	}
	settled := driven.braking(110 * time.Second)
	if got := settled.at(1, 200*time.Second); math.Abs(got.YM-60) > 1e-6 || got.SpeedMps != 0 {
		t.Errorf("after the trial: %+v", got)
	}
	if got := settled.at(1, 105*time.Second); math.Abs(got.YM-10) > 1e-6 || got.SpeedMps != 10 {
		t.Errorf("looking back: %+v", got)
	}
	// Distances are told to the receiver, there being no roadside node.
	truth := settled.truth(s.names, "", 105*time.Second, 105*time.Second)
	for _, r := range truth {
		if b := r.Body.(*wire.Truth); b.Of == "b" && math.Abs(b.DistanceM-math.Hypot(100, 10)) > 1e-6 {
			t.Errorf("%+v", b)
		}
	}
}

// Each repetition is a scenario of its own, which all its cells share; nodes
// that are given a position stand there.
func TestRandomWaypointByRepetition(t *testing.T) {
	s, err := staged(t, MobilityConfig{Model: "random_waypoint", Area: &AreaConfig{400, 800}, SpeedMinMps: 1,
		SpeedMaxMps: 20,
		Positions:   map[string]Point{"a": {0, 0}, "c": {400, 800}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var at [3]Point
	for i, repetition := range []int{1, 1, 2} {
		scene, err := s.arrange(noCar(repetition))
		if err != nil {
			t.Fatal(err)
		}
		b := scene.at(1, 0)
		at[i] = Point{b.XM, b.YM}
		if c := scene.departing(0).at(2, time.Minute); c.XM != 400 || c.YM != 800 {
			t.Errorf("the corner moved to %+v", c)
		}
	}
	if at[0] != at[1] || at[0] == at[2] {
		t.Errorf("places %v, want two the same and one other", at)
	}
}

// setdest's nodes set off with the warm-up, so that the window is of P3's time.
func TestSetdestBeginsWithTheWarmup(t *testing.T) {
	s, err := staged(t, MobilityConfig{Model: "setdest", Area: &AreaConfig{1000, 1000}, SpeedMaxMps: 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const warmupS = 100.
	x := noCar(1)
	x.Gate.LeadS += warmupS
	x.Traffic = []wire.Flow{{Kind: "iperf3_udp", StartS: -warmupS}}
	path, err := mobility.Setdest{Area: mobility.Area{WidthM: 1000, HeightM: 1000}, SpeedMaxMps: 20}.Path(1+1<<32, 1,
		2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	scene, err := s.arrange(x)
	if err != nil {
		t.Fatal(err)
	}
	scene = scene.departing(0)
	const opens = (2 + 1 + warmupS) * time.Second // after_s, lead_s
	for _, after := range []time.Duration{0, 7 * time.Second} {
		got, want := scene.at(1, opens+after), path.At(warmupS*time.Second+after)
		if got.XM != want.XM || got.YM != want.YM || got.SpeedMps != want.SpeedMps {
			t.Errorf("%v after the window opened at %+v, want %+v", after, got, want)
		}
	}
	x.Conditions = &wire.Conditions{SpeedMaxMps: new(0.5), WidthM: new(10.0)}
	if scene, err = s.arrange(x); err != nil {
		t.Fatal(err)
	}
	scene = scene.departing(0)
	for at := range 100 {
		if p := scene.at(1, time.Duration(at)*time.Second); p.XM > 10 || p.SpeedMps > 0.5+1e-6 {
			t.Fatalf("after %d s at %+v", at, p)
		}
	}
}

const walkNMEA = "$GPRMC,093000,A,5000.0000,N,00800.0000,E,,,140326\n$GPRMC,093010,A,5000.0540,N,00800.0000,E,,,140326\n"
const walkGPX = `<gpx><trk><trkseg><trkpt lat="50" lon="8.001"><time>2026-03-14T09:30:05Z</time></trkpt>
<trkpt lat="50" lon="8.002"><time>2026-03-14T09:30:15Z</time></trkpt></trkseg></trk></gpx>`

// Recorded tracks are played back on a plane at the first node's start, each
// from its own beginning or by the clock.
func TestTracksAreNodes(t *testing.T) {
	files := map[string]string{"a.nmea": walkNMEA, "b.gpx": walkGPX}
	for align, x := range map[string]float64{"": 71.7 * 1.5, "clock": 71.7} {
		// a thousandth of a degree of longitude at 50° is 71.7 m
		m := MobilityConfig{Model: "tracks", Align: align, Tracks: map[string]string{"a": "movement/a.nmea",
			"b": "movement/b.gpx"}, Positions: map[string]Point{"c": {1, 2}}}
		s, err := staged(t, m, files)
		if err != nil {
			t.Fatal(err)
		}
		scene, err := s.arrange(noCar(1))
		if err != nil {
			t.Fatal(err)
		}
		if scene.site.LatDeg != 50 || scene.site.LonDeg != 8 {
			t.Errorf("site %+v", scene.site)
		}
		scene = scene.departing(-3 * time.Second)
		if a := scene.at(0, 5*time.Second); math.Abs(a.YM-50) > 0.2 || math.Abs(a.SpeedMps-10) > 0.05 {
			t.Errorf("%q: a is at %+v after 5 s", align, a)
		}
		if b := scene.at(1, 5*time.Second); math.Abs(b.XM-x) > 0.2 {
			t.Errorf("%q: b is at %+v after 5 s, want x %g", align, b, x)
		}
	}
}

// A car on its course, and the others where the mobility has them.
func TestCarsDriveAmongNodesOfTheField(t *testing.T) {
	s, err := staged(t, MobilityConfig{Model: "placed", Positions: map[string]Point{"a": {5, 5}, "b": {6, 6},
		"c": {7, 7}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	speed := 10.0
	scene, err := s.arrange(wire.Trial{Car: "a", Roadside: "b", SpeedMps: &speed, Course: wire.Course{Kind: "depart",
		StartM: 20, AccelMps2: 2, BrakeMps2: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := scene.at(0, 0), scene.at(1, 0), scene.at(2, 0); a.YM != 20 || b.XM != 0 || b.YM != 0 || c.XM != 7 ||
		c.YM != 7 {
		t.Errorf("%+v %+v %+v", a, b, c)
	}
}

// Paths begin at a time after the departure. Where it is the car that opens the window, a node that moves
// would be elsewhere in it at each speed.
func TestNodesMoveBesideACarOnlyByTheClock(t *testing.T) {
	m := MobilityConfig{Model: "chain", SpacingM: 100, Moves: []MoveConfig{{Node: "c", XM: 100, YM: 500, SpeedMps: 10}}}
	speed, after := 10.0, 30.0
	trial := func(number int, change func(*wire.Trial)) wire.Trial {
		out := wire.Trial{Number: number, Repetition: 1, Car: "a", Roadside: "b", SpeedMps: &speed, Course: wire.Course{
			Kind: "depart", AccelMps2: 2, BrakeMps2: 2}, Gate: wire.Gate{AfterS: &after, LeadS: 1}}
		change(&out)
		return out
	}
	still := trial(1, func(x *wire.Trial) { x.Still, x.Gate.SpeedBand = true, true })
	timed := trial(2, func(x *wire.Trial) {})
	cfg := Config{Field: Settings{Mobility: &m}, Nodes: []Node{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for name, change := range map[string]func(*wire.Trial){
		"":       func(x *wire.Trial) { x.Course.Kind = "none"; x.Gate.SpeedBand = true },
		"speed":  func(x *wire.Trial) { x.Gate.SpeedBand = true },
		"place":  func(x *wire.Trial) { x.Gate.PlaceM = new(50.0) },
		"c only": func(x *wire.Trial) { x.Roadside, x.Gate.SpeedBand = "c", true },
	} {
		err := CheckScenes(cfg, []wire.Trial{still, timed, trial(3, change)})
		if refused := name == "speed" || name == "place"; (err != nil) != refused ||
			refused && !strings.Contains(err.Error(), `trial 3: node "c" moves beside a car`) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

//attack:file a campaign that names a movement outside its folder | the path has to lie below
func TestImpossibleMobilityIsRefused(t *testing.T) {
	area := &AreaConfig{100, 100}
	for want, m := range map[string]MobilityConfig{
		"none of chain":    {Model: "walk"},
		"columns":          {Model: "grid", SpacingM: 1},
		"no position":      {Model: "placed", Positions: map[string]Point{"a": {}}},
		"steady state":     {Model: "random_waypoint", Area: area, SpeedMaxMps: 3},
		"maximum speed":    {Model: "setdest", Area: area},
		"is not a node":    {Model: "chain", SpacingM: 1, Moves: []MoveConfig{{Node: "z"}}},
		"outside the area": {Model: "chain", SpacingM: 99, Area: area},
		"back from 9 s": {Model: "chain", SpacingM: 9, Moves: []MoveConfig{{Node: "a", AtS: 9, XM: 1, SpeedMps: 1},
			{Node: "a", AtS: 8, SpeedMps: 1}}},
		"moves 1 nodes":     {Model: "ns2", File: "movement/one.tcl"},
		"no such file":      {Model: "bonnmotion", File: "movement/none"},
		"not below":         {Model: "ns2", File: "../one.tcl"},
		"bad.nmea:1: check": {Model: "tracks", Tracks: map[string]string{"a": "movement/bad.nmea"}},
	} {
		_, err := staged(t, m, map[string]string{"one.tcl": "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n",
			"bad.nmea": "$GPRMC,1*00\n"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s, err := staged(t, MobilityConfig{Model: "tracks", Tracks: map[string]string{"a": "movement/a.nmea"}},
		map[string]string{"a.nmea": walkNMEA})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.arrange(noCar(1)); err == nil || !strings.Contains(err.Error(), "does not say where it is") {
		t.Errorf("a node without a place: %v", err)
	}
}

// Truth records stay few, however many nodes move for however long.
func TestTruthOfManyNodesIsBounded(t *testing.T) {
	var names []string
	for i := range 200 {
		names = append(names, strings.Repeat("n", i+1))
	}
	c, err := Settings{Mobility: &MobilityConfig{Model: "random_waypoint", Area: &AreaConfig{1000, 1000},
		SpeedMinMps: 1, SpeedMaxMps: 9}}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStage(c, names, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	scene, err := s.arrange(noCar(1))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(scene.departing(0).truth(names, "", 0, time.Hour)); n < maxTruths/2 || n > maxTruths+2*len(names) {
		t.Errorf("%d records", n)
	}
}

func TestSketchKnowsRolesLinksAndReach(t *testing.T) {
	speed := 10.0
	cfg := Config{Nodes: []Node{{Name: "a", Unit: "u1"}, {Name: "b", Unit: "u2"}},
		Field: Settings{UnitPowerOffsetDb: map[string]float64{"u2": -12}}}
	s, err := NewSketch(cfg, wire.Trial{Number: 3, Car: "a", Roadside: "b", SpeedMps: &speed, DurationS: 10,
		Course: wire.Course{Kind: "depart", StartM: 10, AccelMps2: 2, BrakeMps2: 2, HeadingDeg: 90}}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Nodes[0], s.Nodes[1]
	// Two-ray ground beyond its crossover: 12 dB are a factor of two in distance.
	if a.Role != "car" || b.Role != "roadside" || math.Abs(a.XM-(10+25+50)) > 1e-6 || len(a.Way) == 0 ||
		len(b.Way) != 0 || math.Abs(a.LowReachM/b.LowReachM-2) > 0.01 {
		t.Errorf("%+v %+v", a, b)
	}
	if len(s.Links) != 1 || s.Links[0].RateMbps == 0 || s.LowestMbps != 6 || s.HighestMbps != 54 {
		t.Errorf("%+v", s)
	}
}

// Links are between the nodes of the trial that carry its rate both ways, where
// they are then; a trial with an area of its own is played in it.
func TestLinksAreThoseOfTheMoment(t *testing.T) {
	cfg := Config{Nodes: []Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "idle"}},
		Field: Settings{Radio: "ns2_wavelan", Mobility: &MobilityConfig{Model: "chain", SpacingM: 240,
			Moves: []MoveConfig{{Node: "c", AtS: 0, XM: 1000, YM: 0, SpeedMps: 10}}}}}
	x := noCar(1)
	x.Relays, x.Radio = []string{"b"}, wire.Radio{Standard: "802.11b", RateMbps: new(2.0)}
	for atS, want := range map[int]map[string][]string{
		0: {"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}, // ns-2's radio reaches 250 m
		5: {"a": {"b"}, "b": {"a"}},
	} {
		if got, err := Links(cfg, x, time.Duration(atS)*time.Second); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("after %d s %v, %v", atS, got, err)
		}
	}
	s, err := staged(t, MobilityConfig{Model: "random_waypoint", Area: &AreaConfig{WidthM: 500, HeightM: 500},
		SpeedMinMps: 5, SpeedMaxMps: 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	small := noCar(1)
	small.Conditions = &wire.Conditions{WidthM: new(20.0), HeightM: new(30.0)}
	scene, err := s.arrange(small)
	if err != nil {
		t.Fatal(err)
	}
	for at := range 20 {
		p := scene.departing(0).at(1, time.Duration(at)*time.Second)
		if p.XM > 20 || p.YM > 30 {
			t.Errorf("after %d s at %g, %g", at, p.XM, p.YM)
		}
	}
}
