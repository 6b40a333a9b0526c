package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/metrics/track"
	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// course is a car's drive past a node that stands 5 m beside the road, and what
// a receiver reports about it.
type course struct {
	fromM, speedMps, brakeMps2 float64 // from brakeS on it brakes
	brakeS                     float64
	hz, phaseS                 float64 // of the receiver's fixes
	lastS                      float64 // the last fix's time is not beyond it
	lateS                      float64 // by which the car's fixes arrive after their moment
	sync                       string  // what chrony keeps the wall clocks by; empty: nothing does
}

const besideM = 5.0

// alongM is where the car is, by the time since the window opened.
func (c course) alongM(s float64) float64 {
	x := c.fromM + c.speedMps*s
	if over := s - c.brakeS; c.brakeMps2 > 0 && over > 0 {
		over = min(over, c.speedMps/c.brakeMps2)
		x = c.fromM + c.speedMps*c.brakeS + c.speedMps*over - c.brakeMps2*over*over/2
		if stood := s - c.brakeS - over; stood <= 0 {
			return x
		}
	}
	return x
}

func (c course) distanceM(s float64) float64 { return math.Hypot(c.alongM(s), besideM) }

// meanM is the true mean over a window at the moments of a timeline.
func (c course) meanM(seconds float64) float64 {
	var all mean
	for i := range Ticks(seconds) {
		all.add(c.distanceM(float64(i) / TickHz))
	}
	return *all.value()
}

// told are the records of the car and the roadside node over a window of seconds.
func (c course) told(seconds float64) []wire.Record {
	const carNs, sideNs = 1000 * second, 50 * second
	const perDegree = earth.MeanRadiusM * math.Pi / 180
	at := func(node string, tNs int64, b wire.Body) wire.Record {
		return wire.Record{Header: wire.Header{Node: node, TBootNs: tNs}, Body: b}
	}
	out := []wire.Record{
		at("car", carNs, &wire.Window{OpenBootNs: carNs, CloseBootNs: carNs + int64(seconds*1e9)}),
		at("road", sideNs, &wire.Window{OpenBootNs: sideNs, CloseBootNs: sideNs + int64(seconds*1e9)}),
	}
	const wallNs = 1_700_000_000 * second // at boot; true time is 3 ms ahead of it
	if c.sync != "" {
		for node, ns := range map[string]int64{"car": carNs, "road": sideNs} {
			out = append(out, at(node, ns, &wire.WallClock{OwnWallOffsetNs: wallNs, Sync: "synchronised",
				SyncSource: c.sync, SyncOffsetNs: new(int64(3_000_000)),
				SyncUncertaintyNs: new(int64(2_000_000))}))
		}
	}
	fix := func(node string, openNs int64, s, late, eastM, northM, speed float64, track *float64) {
		moment := openNs + int64(s*1e9)
		when := moment + int64(late*1e9)
		utc := time.Unix(0, moment+wallNs+3_000_000).UTC().Format(time.RFC3339Nano)
		out = append(out, at(node, when+100_000_000,
			&wire.GPS{Mode: 3, Connected: true, FixBootNs: &when, TimeUTC: utc, SpeedMps: &speed, TrackDeg: track,
				LatDeg: new(50 + northM/perDegree), LonDeg: new(8 + eastM/(perDegree*math.Cos(50*math.Pi/180)))}))
	}
	for s := c.phaseS - 3; s <= c.lastS; s += 1 / c.hz {
		const h = 1e-6
		fix("car", carNs, s, c.lateS, c.alongM(s), 0, (c.alongM(s+h)-c.alongM(s-h))/(2*h), new(90.0))
	}
	for s := c.phaseS - 3.3; s <= seconds+1; s++ {
		fix("road", sideNs, s, 0.2, 0, besideM, 0, nil)
	}
	return out
}

var drive = wire.Trial{Car: "car", Roadside: "road", Sender: "car", Receiver: "road", Initiator: "car", DurationS: 10}

// Where fixes lie on either side of the window's edges, the distances there and
// between are those of the true course, to within a metre, at 1 Hz too.
func TestDistancesAtTheEdgesAreTheTrueOnes(t *testing.T) {
	const seed = 17
	random := rand.New(rand.NewPCG(seed, seed))
	worst := 0.0
	for _, hz := range []float64{1, 10} {
		for _, speed := range []float64{2.8, 5.6, 8.3, 11.1, 13.9, 16.7, 27.8} {
			for range 20 {
				seconds := 3 + 9*random.Float64()
				c := course{fromM: 200*random.Float64() - 60, speedMps: speed, hz: hz, phaseS: random.Float64() / hz,
					lastS: seconds + 1/hz}
				rows := Attempt{trial: drive, records: c.told(seconds)}.Rows()
				for name, want := range map[string]float64{DistanceOpenM: c.distanceM(0),
					DistanceCloseM: c.distanceM(seconds), DistanceMeanM: c.meanM(seconds)} {
					got := Value(rows, "", name)
					if got == nil || math.Abs(*got-want) > 1 {
						t.Fatalf("seed %d: %g m/s, %g Hz, %.2f s: %s is %v, truly %.2f", seed, speed, hz, seconds, name,
							show(got), want)
					}
					worst = max(worst, math.Abs(*got-want))
				}
			}
		}
	}
	t.Logf("worst error %.3f m", worst)
}

// An archive whose last fix is from before the close has its position there
// extrapolated: nearer to the truth than the last fix, and by no more off than
// it says, also when the car brakes after that fix.
func TestWhatIsExtrapolatedTellsHowFarItCanBeOff(t *testing.T) {
	const seed = 18
	random := rand.New(rand.NewPCG(seed, seed))
	for _, brake := range []float64{0, 3.5} {
		for _, speed := range []float64{2.8, 8.3, 16.7, 27.8} {
			for range 20 {
				seconds, age := 10.0, 0.05+1.3*random.Float64()
				c := course{fromM: 50, speedMps: speed, brakeMps2: brake, brakeS: seconds - age, hz: 1,
					lastS: seconds - age}
				c.phaseS = math.Mod(seconds-age, 1)
				rows := Attempt{trial: drive, records: c.told(seconds)}.Rows()
				got, off := Value(rows, "", DistanceCloseM), Value(rows, "", DistanceCloseUncertaintyM)
				if got == nil || off == nil || math.Abs(*got-c.distanceM(seconds)) > *off+0.01 {
					t.Fatalf("seed %d: %g m/s, braking %g, a fix of %.2f s ago: %v ± %v, truly %.2f", seed, speed,
						brake, age, show(got), show(off), c.distanceM(seconds))
				}
				if held := c.distanceM(seconds) - c.distanceM(seconds-age); brake == 0 &&
					math.Abs(*got-c.distanceM(seconds)) > 0.01*held+0.01 {
					t.Errorf("%g m/s steadily, a fix of %.2f s ago: %.2f, truly %.2f", speed, age, *got,
						c.distanceM(seconds))
				}
			}
		}
	}
}

// Between fixes a car may brake, and its fixes come late: the distance is off by no
// more than it says, and says no more than what can be.
func TestBetweenFixesADistanceTellsHowFarItCanBeOff(t *testing.T) {
	const seed = 19
	// What a car goes that stands by its fix, and brakes still.
	const slowM = track.StandsMps * track.StandsMps / (2 * 3.9)
	random := rand.New(rand.NewPCG(seed, seed))
	worst := 0.0
	for _, hz := range []float64{0.4, 1, 10} {
		for _, speed := range []float64{2.8, 8.3, 16.7, 27.8} {
			for _, late := range []float64{0, 0.1, 0.5} {
				for range 20 {
					const seconds = 10.0
					c := course{fromM: 50, speedMps: speed, brakeMps2: 3.9, brakeS: seconds - 2*random.Float64(),
						hz: hz, phaseS: random.Float64() / hz, lastS: seconds + 2/hz, lateS: late}
					rows := Attempt{trial: drive, records: c.told(seconds)}.Rows()
					got, off := Value(rows, "", DistanceCloseM), Value(rows, "", DistanceCloseUncertaintyM)
					if got == nil || off == nil {
						t.Fatalf("seed %d: %g m/s, %g Hz: %v ± %v", seed, speed, hz, show(got), show(off))
					}
					bound := (speed+track.SpeedErrMps)*0.5 + 4*0.5*0.5/2 + 4/(8*hz*hz)
					if truly := c.distanceM(seconds); math.Abs(*got-truly) > *off+slowM || *off > bound+0.01 {
						t.Fatalf("seed %d: %g m/s, %g Hz, %g s late: %.2f ± %.2f, truly %.2f; ± %.2f at most", seed,
							speed, hz, late, *got, *off, truly, bound)
					} else if *off > 0 {
						worst = max(worst, math.Abs(*got-truly) / *off)
					}
				}
			}
		}
	}
	if worst < 0.5 {
		t.Errorf("no distance is off by more than %.2f of what it says", worst)
	}
}

// Where something other than the receiver keeps the wall clock, the receiver's own
// time says when a fix was, however late it came.
func TestAFixCountsAtItsOwnMomentWhereThatIsKnown(t *testing.T) {
	of := func(sync string, change func(*wire.WallClock), late float64) (distance, off float64) {
		c := course{fromM: 50, speedMps: 16.7, hz: 1, phaseS: 0.3, lastS: 12, lateS: late, sync: sync}
		records := c.told(10)
		for _, r := range records {
			if b, ok := r.Body.(*wire.WallClock); ok && r.Node == "car" {
				change(b)
			}
		}
		rows := Attempt{trial: drive, records: records}.Rows()
		return *Value(rows, "", DistanceCloseM) - c.distanceM(10), *Value(rows, "", DistanceCloseUncertaintyM)
	}
	same := func(*wire.WallClock) {}
	for _, source := range []string{"192.0.2.1", "PPS0"} {
		// 5 ms at 17.2 m/s, and half of 4 m/s² times 0.7 s times 0.3 s
		if err, off := of(source, same, 0.5); math.Abs(err) > 0.1 ||
			math.Abs(off-(17.2*0.005+4*0.005*0.005/2+2*0.7*0.3)) > 1e-3 {
			t.Errorf("by %s: off by %.2f m, ± %.2f", source, err, off)
		}
	}
	for name, c := range map[string]struct {
		source string
		change func(*wire.WallClock)
		late   float64
	}{
		"nothing keeps it":         {"", same, 0.4},
		"the receiver's sentences": {"NMEA", same, 0.4},
		"unsynchronised":           {"PPS0", func(b *wire.WallClock) { b.Sync = "unsynchronised" }, 0.4},
		"stepped":                  {"PPS0", func(b *wire.WallClock) { b.SteppedNs = new(int64(2e9)) }, 0.4},
		"too uncertain": {"192.0.2.1",
			func(b *wire.WallClock) { b.SyncUncertaintyNs = new(int64(2e8)) }, 0.4},
		"a receiver without leap s":  {"PPS0", func(b *wire.WallClock) { b.OwnWallOffsetNs += 18e9 }, 0.4},
		"a fix from what is to come": {"PPS0", func(b *wire.WallClock) { b.OwnWallOffsetNs -= 1e9 }, 0.4},
	} {
		if err, off := of(c.source, c.change, c.late); math.Abs(err+16.7*0.4) > 0.1 || off < 16.7*0.5 {
			t.Errorf("%s: off by %.2f m, ± %.2f; a fix counts at its arrival", name, err, off)
		}
	}
	// All come too late by the wall clock: it is ahead of true time, or the receiver is slow.
	for name, c := range map[string]struct{ aheadS, lateS float64 }{
		"a server that is ahead": {1, 0.4}, "a slow receiver": {0, 0.7}, "both": {0.3, 0.7}} {
		err, off := of("192.0.2.1", func(b *wire.WallClock) { b.OwnWallOffsetNs += int64(c.aheadS * 1e9) }, c.lateS)
		// what they are late by and 5 ms, at 17.2 m/s and 4 m/s², and what lies between fixes
		s := c.aheadS + c.lateS + 0.005
		want := 17.2*s + 4*s*s/2
		if math.Abs(err+16.7*c.lateS) > 0.1 || off < want-1e-6 || off > want+4./8 {
			t.Errorf("%s: off by %.2f m, ± %.2f; want by %.2f, ± %.2f at least", name, err, off, 16.7*c.lateS, want)
		}
	}
}

// A node that stands is where its fixes say, whenever they came.
func TestTheDistanceOfTwoThatStandIsCertain(t *testing.T) {
	c := course{fromM: 50, hz: 1, lastS: 12, lateS: 0.3}
	rows := Attempt{trial: drive, records: c.told(10)}.Rows()
	want(t, rows, "", DistanceOpenUncertaintyM, 0)
	want(t, rows, "", DistanceCloseUncertaintyM, 0)
	want(t, rows, "", "distance_mean_uncertainty_m", 0)
}

// Too old a fix tells no place, and one fix of a moving node without a track tells
// it for its own moment only.
func TestAPlaceThatNobodyKnowsIsAbsent(t *testing.T) {
	for name, k := range map[string]track.Track{
		"old":       {S: []float64{7, 8}, Lat: []float64{50, 50}, Lon: []float64{8, 8}, V: []track.Velocity{{}, {}}},
		"one":       {S: []float64{9.5}, Lat: []float64{50}, Lon: []float64{8}, V: []track.Velocity{{}}},
		"far fixes": {S: []float64{5, 9.5}, Lat: []float64{50, 50}, Lon: []float64{8, 8}, V: []track.Velocity{{}, {}}},
		"nothing":   {},
	} {
		if p, ok := k.Place(10); ok {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A mean over a part of the window would be that of another way.
func TestAMeanDistanceIsOfTheWholeWindow(t *testing.T) {
	c := course{fromM: 10, speedMps: 10, hz: 1, lastS: 11}
	records := c.told(10)
	if rows := (Attempt{trial: drive, records: records}).Rows(); Value(rows, "", DistanceMeanM) == nil {
		t.Fatal("no mean of a whole track")
	}
	gap := records[:0:0]
	for _, r := range records {
		if g, ok := r.Body.(*wire.GPS); ok && r.Node == "road" && *g.FixBootNs > 53*second && *g.FixBootNs < 57*second {
			continue
		}
		gap = append(gap, r)
	}
	rows := Attempt{trial: drive, records: gap}.Rows()
	if v := Value(rows, "", DistanceMeanM); v != nil {
		t.Errorf("the roadside's place was not known for 4 s, and the mean is %g", *v)
	}
	if Value(rows, "", DistanceCloseM) == nil || Value(rows, "", DistanceOpenM) == nil {
		t.Error("the edges lie between fixes, and are absent")
	}
}

// The field's distance at an edge is that at the edge, not that of a sample
// somewhere within the window, and absent where the samples end before.
func TestTheFieldsDistanceIsThatAtTheEdge(t *testing.T) {
	truth := func(s, m float64) wire.Record {
		return told("field", s, &wire.Truth{Of: "a", SpeedMps: 10, DistanceM: m})
	}
	between := measured(wire.Trial{Car: "a"}, truth(-0.5, 95), truth(0.5, 105), truth(9.5, 195), truth(10.5, 205))
	within := measured(wire.Trial{Car: "a"}, truth(0.5, 105), truth(7, 170))
	exact := measured(wire.Trial{Car: "a"}, truth(0.002, 100), truth(10, 200))
	for name, c := range map[string]struct {
		at          Attempt
		open, close *float64
	}{"between": {between, new(100.0), new(200.0)}, "within": {within, nil, nil},
		"exact": {exact, new(100.0), new(200.0)}} {
		rows := c.at.Rows()
		for metric, want := range map[string]*float64{"truth_distance_open_m": c.open,
			"truth_distance_close_m": c.close} {
			got := Value(rows, "", metric)
			if (got == nil) != (want == nil) || got != nil && math.Abs(*got-*want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", name, metric, got, want)
			}
		}
	}
}

// A roadside node without a receiver stands where the campaign says, unless it is in the car in other trials.
func TestARoadsideNodeWithoutFixesStandsWhereTheCampaignSays(t *testing.T) {
	c := course{fromM: 20, speedMps: 10, hz: 5, lastS: 11}
	told := c.told(10)
	without := slices.DeleteFunc(slices.Clone(told), func(r wire.Record) bool {
		_, is := r.Body.(*wire.GPS)
		return is && r.Node == "road"
	})
	sited := drive
	const perDegree = earth.MeanRadiusM * math.Pi / 180
	sited.Course.SiteLatDeg, sited.Course.SiteLonDeg = new(50+besideM/perDegree), new(8.0)
	rows := Attempt{trial: sited, records: without}.Rows()
	for name, want := range map[string]float64{DistanceOpenM: c.distanceM(0), DistanceCloseM: c.distanceM(10),
		DistanceMeanM: c.meanM(10)} {
		if got := Value(rows, "", name); got == nil || math.Abs(*got-want) > 1 {
			t.Errorf("%s is %v, truly %.2f", name, show(got), want)
		}
	}
	if off := Value(rows, "", DistanceOpenUncertaintyM); off == nil || *off < siteOffM {
		t.Errorf("the distance may be off by %v", show(off))
	}
	if v := Value(rows, "", "relative_speed_mean_mps"); v == nil || math.Abs(*v-10) > 1 {
		t.Errorf("relative speed %v", show(v))
	}
	back := sited
	back.Car, back.Roadside = "road", "car"
	swapped := Attempt{trial: sited, plan: wire.RunPlan{Trials: []wire.Trial{sited, back}}, records: without}.Rows()
	if v := Value(swapped, "", DistanceMeanM); v != nil {
		t.Errorf("a node that is in the car in other trials: %v", show(v))
	}
	sited.Course.SiteLatDeg = new(51.0) // its own fixes count more
	if v := Value(Attempt{trial: sited, records: told}.Rows(), "", DistanceMeanM); v == nil || *v > 1000 {
		t.Errorf("with fixes: %v", show(v))
	}
}
