package places_test

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/metrics/places"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

var options = synthetic.Options{Seed: 3, Speeds: []float64{5.6, 11.1}, Repetitions: 1, Change: synthetic.AddDelay}

func logOf(t *testing.T, a *archive.Archive) places.Log {
	t.Helper()
	log, err := places.Of(a)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// mean is that of a number of the seconds of an attempt, and in how many it is known.
func mean(log places.Log, k wire.TrialKey, number func(places.Second) *float64) (mean float64, n int) {
	for _, s := range log.Seconds {
		if v := number(s); s.TrialKey == k && v != nil {
			mean, n = mean+*v, n+1
		}
	}
	return mean / float64(n), n
}

// The seconds of a window add up to what its attempt is known to have measured.
func TestALogIsWhatTheAttemptsMeasured(t *testing.T) {
	a := synthetic.Run(t, options)
	log := logOf(t, a)
	attempts, err := a.Trials()
	if err != nil || len(attempts) != 4 || len(log.Seconds) != 40 {
		t.Fatalf("%d attempts with %d seconds, %v", len(attempts), len(log.Seconds), err)
	}
	for _, at := range attempts {
		rows, err := metrics.Of(a, at.TrialKey)
		if err != nil {
			t.Fatal(err)
		}
		_, mbps, err := metrics.Result(a, at.TrialKey)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			number func(places.Second) *float64
			want   float64
			within float64
		}{
			"throughput": {func(s places.Second) *float64 { return s.ThroughputBps }, *mbps * 1e6, *mbps * 1e4},
			"speed": {func(s places.Second) *float64 { return s.SpeedMps },
				*metrics.Value(rows, "", metrics.SpeedMeanMps), 0.1},
			"distance": {func(s places.Second) *float64 { return s.DistanceM },
				*metrics.Value(rows, "", "truth_distance_mean_m"), 2},
			"signal": {func(s places.Second) *float64 { return s.SignalDbm },
				*metrics.Value(rows, "", metrics.SignalMeanDbm), 0.5},
			"lost": {places.Second.LostPercent, *metrics.Value(rows, "delay", metrics.DatagramsLostPercent), 1e-9},
		} {
			if got, n := mean(log, at.TrialKey, c.number); n != 10 || math.Abs(got-c.want) > c.within {
				t.Errorf("trial %d: %s is %g in %d seconds, and %g of the attempt", at.Trial, name, got, n, c.want)
			}
		}
		sent := 0
		for _, s := range log.Seconds {
			if s.TrialKey == at.TrialKey {
				sent += s.Sent
			}
		}
		if want := metrics.Value(rows, "delay", metrics.DatagramsSent); float64(sent) != *want {
			t.Errorf("trial %d: %d datagrams, and %g of the attempt", at.Trial, sent, *want)
		}
	}
	seconds, farthest := 0, 0.0
	for _, s := range log.ByDistance() {
		seconds += s.Seconds
		for _, of := range log.Seconds {
			if *of.DistanceM >= s.FromM && *of.DistanceM < s.ToM {
				farthest = max(farthest, *of.DistanceM)
			}
		}
		if s.ThroughputBps == nil || s.LostPercent() == nil || *s.LostPercent() > 4 {
			t.Errorf("%+v", s)
		}
	}
	if n := len(log.ByDistance()); seconds != 40 || n < 4 || n > 15 || *log.FarthestM() != farthest {
		t.Errorf("%d seconds in %d stretches to %g m, of which something came at %v", seconds, n, farthest,
			log.FarthestM())
	}
}

// Without a fix there is neither place nor distance nor speed, and all else stays.
func TestWhatIsNotKnownIsAbsent(t *testing.T) {
	o := options
	o.Mishap = func(_ wire.Trial, attempt int, c *synthetic.Conditions) {
		if attempt == 1 {
			c.GPSGapFromS, c.GPSGapToS = 2, 8
		}
	}
	log := logOf(t, synthetic.Run(t, o))
	k := wire.TrialKey{Trial: 1, Attempt: 1} // rejected
	i := slices.IndexFunc(log.Seconds, func(s places.Second) bool { return s.TrialKey == k && s.S == 5 })
	if i < 0 {
		t.Fatal("the second is not there")
	}
	if s := log.Seconds[i]; s.LatDeg != nil || s.DistanceM != nil || s.SpeedMps != nil || s.TimeUTC != "" ||
		s.ThroughputBps == nil || s.Sent == 0 {
		t.Errorf("%+v", s)
	}
}

// oneAttempt is a run of one attempt, of each node of which the records that keep returns are stored.
func oneAttempt(t *testing.T, o synthetic.Options,
	keep func(node string, all []wire.Record) []wire.Record) *archive.Archive {
	t.Helper()
	info := synthetic.Info(o)
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), info)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	told := synthetic.Attempt(info.Plan, info.Plan.Trials[0], 1, synthetic.Conditions{MB: 20}, map[string]*uint64{})
	delete(told, archive.FieldNode)
	for node, all := range told {
		if err := synthetic.Store(a, node, keep(node, all)); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// changed is a log of one attempt whose records were changed before they were stored.
func changed(t *testing.T, o synthetic.Options, change func(node string, r *wire.Record)) places.Log {
	t.Helper()
	return logOf(t, oneAttempt(t, o, func(node string, all []wire.Record) []wire.Record {
		for i := range all {
			change(node, &all[i])
		}
		return all
	}))
}

// One fix that nobody could have reached is none: neither the way nor the distances go by it, of
// whichever node it is, in the middle and at the end.
func TestAStrayFixIsNoPlace(t *testing.T) {
	trial := synthetic.Info(options).Plan.Trials[0]
	for node, of := range map[string]string{"the car": trial.Car, "the roadside": trial.Roadside} {
		var fixes []int64
		inWindow := func(at string, r *wire.Record) *wire.GPS { // those before and after it are taken away
			g, is := r.Body.(*wire.GPS)
			if !is || at != of || g.FixBootNs == nil {
				return nil
			}
			if ns := *g.FixBootNs - synthetic.OpenBootNs[at]; ns < 0 || ns > 10e9 {
				g.FixBootNs = nil
				return nil
			}
			return g
		}
		whole := changed(t, options, func(at string, r *wire.Record) {
			if g := inWindow(at, r); g != nil {
				fixes = append(fixes, *g.FixBootNs)
			}
		})
		slices.Sort(fixes)
		for where, stray := range map[string]int64{"first": fixes[0], "middle": fixes[len(fixes)/2],
			"last": fixes[len(fixes)-1]} {
			log := changed(t, options, func(at string, r *wire.Record) {
				if g := inWindow(at, r); g != nil && *g.FixBootNs == stray {
					g.LatDeg = new(*g.LatDeg + 0.5) // 55 km
				}
			})
			if got, want := *log.FarthestM(), *whole.FarthestM(); math.Abs(got-want) > 5 {
				t.Errorf("%s, %s: something came %g m away; want %g", node, where, got, want)
			}
			if got, want := len(log.ByDistance()), len(whole.ByDistance()); got != want {
				t.Errorf("%s, %s: %d stretches, %d without it", node, where, got, want)
			}
			for i, s := range log.Seconds {
				if s.LatDeg != nil && math.Abs(*s.LatDeg-*whole.Seconds[i].LatDeg) > 1e-3 {
					t.Errorf("%s, %s: second %d is at %g", node, where, s.S, *s.LatDeg)
				}
			}
		}
	}
}

func TestStretchesAreFew(t *testing.T) {
	for _, m := range []float64{0, 149, 150, 74_999, 75_000, 20e6} {
		log := places.Log{}
		for i := range 100 {
			log.Seconds = append(log.Seconds, places.Second{DistanceM: new(m * float64(i) / 99)})
		}
		if n := len(log.ByDistance()); n < 1 || n > 15 {
			t.Errorf("%d stretches to %g m", n, m)
		}
	}
}

// A datagram that the kernel kept for two seconds shows a link when its answer comes, not when it was due.
func TestAnAnswerIsHeardWhenItComes(t *testing.T) {
	const heldFrom, heldTo = 3e9, 5e9
	log := changed(t, options, func(node string, r *wire.Record) {
		switch b := r.Body.(type) {
		case *wire.Delay:
			open := synthetic.OpenBootNs[node]
			if b.DueBootNs == nil || *b.DueBootNs < open+heldFrom || b.ReceivedBootNs == nil {
				return
			}
			if b.ReceivedBootNs = nil; *b.DueBootNs < open+heldTo {
				b.ReceivedBootNs = new(int64(open + heldTo + 1e8))
			}
		case *wire.TCPSample:
			b.BytesReceived = 0
		}
	})
	for _, s := range log.Seconds {
		if (s.S == 3 || s.S == 4) && (s.Lost == s.Sent || s.Answers > 0) || s.S == 5 && (s.Answers < 90 ||
			s.Lost != s.Sent) {
			t.Errorf("second %d: %d sent, %d lost, %d answers", s.S, s.Sent, s.Lost, s.Answers)
		}
	}
	if got, want := log.FarthestM(), log.Seconds[5].DistanceM; got == nil || *got != *want {
		t.Errorf("something came %v m away; want %g", got, *want)
	}
}

// Datagrams of kind cbr have no answers: they do not count, be they sent or not.
func TestOnlyDatagramsOfKindDelayCount(t *testing.T) {
	o := options
	o.Change = func(trial *wire.Trial) {
		synthetic.AddDelay(trial)
		flow := trial.Traffic[len(trial.Traffic)-1]
		flow.Name, flow.Kind, flow.Port = "steady", wire.KindCBR, 5004
		trial.Traffic = append(trial.Traffic, flow)
	}
	whole, turned := changed(t, o, func(string, *wire.Record) {}), 0
	log := changed(t, o, func(_ string, r *wire.Record) {
		if d, is := r.Body.(*wire.Delay); is && d.Side == wire.DelaySender && d.Datagram%3 == 0 {
			d.Flow, d.ReceivedBootNs = "steady", nil
			if turned++; d.Datagram%2 == 0 {
				d.HandedBootNs = nil
			}
		}
	})
	sent := func(l places.Log) (n int) {
		for _, s := range l.Seconds {
			n += s.Sent
		}
		return n
	}
	if turned == 0 || sent(log) != sent(whole)-turned {
		t.Errorf("%d datagrams of %d, of which %d were of kind cbr", sent(log), sent(whole), turned)
	}
}

// A second that was known in part weighs as much as it was known: five at -60 dBm, and half of one at -90.
func TestAStretchIsTheMeanOfItsMoments(t *testing.T) {
	log := changed(t, options, func(node string, r *wire.Record) {
		switch b := r.Body.(type) {
		case *wire.GPS: // nobody moves
			if b.LatDeg != nil {
				b.LatDeg, b.LonDeg = new(50.0), new(8.0)
			}
		case *wire.Station:
			switch at := r.TBootNs - synthetic.OpenBootNs[node]; {
			case at < 5e9:
				b.SignalDbm = new(-60.0)
			case at < 5.2e9:
				b.SignalDbm = new(-90.0)
			default:
				b.SignalDbm = nil
			}
		}
	})
	all := log.ByDistance()
	if len(all) != 1 || all[0].SignalDbm == nil || *all[0].SignalDbm > -61 || *all[0].SignalDbm < -63.5 {
		t.Errorf("%+v", all)
	}
}

// A second's place and time are of one fix, that nearest to its middle.
func TestPlaceAndTimeAreOfOneMoment(t *testing.T) {
	lat := map[string]float64{}
	log := changed(t, options, func(node string, r *wire.Record) {
		if g, is := r.Body.(*wire.GPS); is && g.FixBootNs != nil && node == "car" {
			ns := *g.FixBootNs - synthetic.OpenBootNs[node]
			g.TimeUTC = time.Unix(1_800_000_000, ns).UTC().Format(time.RFC3339Nano)
			lat[g.TimeUTC] = *g.LatDeg
		}
	})
	for _, s := range log.Seconds {
		at, err := time.Parse(time.RFC3339Nano, s.TimeUTC)
		if err != nil {
			t.Fatal(err)
		}
		within := at.Sub(time.Unix(1_800_000_000, 0)).Seconds() - float64(s.S)
		if *s.LatDeg != lat[s.TimeUTC] || within < 0.4 || within > 0.6 {
			t.Errorf("second %d is at %g, and the fix of %s at %g", s.S, *s.LatDeg, s.TimeUTC, lat[s.TimeUTC])
		}
	}
}

// unfinished is a run whose only attempt was ended after five seconds. In the last, no answer came.
func unfinished(t *testing.T) *archive.Archive {
	t.Helper()
	return oneAttempt(t, options, func(node string, all []wire.Record) []wire.Record {
		over := synthetic.OpenBootNs[node] + 5e9
		return slices.DeleteFunc(all, func(r wire.Record) bool {
			d, is := r.Body.(*wire.Delay)
			return r.TBootNs > over || is && d.ReceivedBootNs != nil && r.TBootNs > over-1e9 ||
				is && d.ReceivedBootNs == nil && r.TBootNs > over-wire.DelayGrace.Nanoseconds()
		})
	})
}

// What was logged up to its end is there, and of the datagrams those whose fate is known.
func TestAnUnfinishedAttemptIsLogged(t *testing.T) {
	log := logOf(t, unfinished(t))
	n := len(log.Seconds)
	if n < 5 || n > 7 || log.Seconds[4].ThroughputBps == nil || log.Seconds[4].DistanceM == nil {
		t.Fatalf("%d seconds: %+v", n, log.Seconds)
	}
	for i, s := range log.Seconds {
		known := i < 2
		if (s.Sent == 50) != known || known && s.Lost != 1 || s.Sent == 0 != (s.LostPercent() == nil) {
			t.Errorf("second %d: %+v", i, s)
		}
	}
	if log.ByDistance() == nil || log.FarthestM() == nil {
		t.Errorf("%+v, %v", log.ByDistance(), log.FarthestM())
	}
	for i := 1; i < n; i++ { // and nothing came but in the first
		log.Seconds[i].ThroughputBps, log.Seconds[i].Answers = new(0.0), 0
	}
	if got := log.FarthestM(); got == nil || *got != *log.Seconds[0].DistanceM {
		t.Errorf("something came %v m away; want %g", got, *log.Seconds[0].DistanceM)
	}
}

// A log has every attempt: the table says how each ended, and whether it is a result.
func TestALogSaysWhatBecameOfEachAttempt(t *testing.T) {
	o := options
	o.Repetitions, o.Enough = 2, 1
	o.Mishap = func(x wire.Trial, attempt int, c *synthetic.Conditions) {
		if x.Number == 1 && attempt == 1 {
			c.SpeedOffsetMps = -4
		}
	}
	var table bytes.Buffer
	if err := logOf(t, synthetic.Run(t, o)).WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, line := range lines[1:] {
		at := func(column string) string { return line[slices.Index(lines[0], column)] }
		got[at("trial")+"."+at("attempt")] = at("outcome") + " " + at("counts")
	}
	for attempt, want := range map[string]string{"1.1": "rejected 0", "1.2": "accepted 1", "4.1": "accepted 1",
		"5.1": "accepted 0"} { // 5 is of the block after that which was enough
		if got[attempt] != want {
			t.Errorf("attempt %s: %q, want %q", attempt, got[attempt], want)
		}
	}
	table.Reset()
	if err := logOf(t, unfinished(t)).WriteCSV(&table); err != nil || !strings.HasSuffix(table.String(), ",,\n") {
		t.Errorf("of what is not judged nothing is said: %v, %s", err, table.String())
	}
}

func TestALogAsFiles(t *testing.T) {
	log := logOf(t, unfinished(t))
	log.Seconds[1].SignalDbm = nil
	var table, tracks bytes.Buffer
	if err := errors.Join(log.WriteCSV(&table), log.WriteGPX(&tracks)); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(lines) != len(log.Seconds)+1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	at := func(line int, column string) string { return lines[line][slices.Index(lines[0], column)] }
	if lost, err := strconv.ParseFloat(at(1, "datagrams_lost_percent"), 64); err != nil || lost != 2 ||
		at(2, "signal_dbm") != "" || at(1, "signal_dbm") == "" || at(1, "distance_m") == "" {
		t.Errorf("%v", lines[:3])
	}
	var gpx struct {
		Points []struct {
			Lat       float64  `xml:"lat,attr"`
			SpeedMps  *float64 `xml:"extensions>speed_mps"`
			SignalDbm *float64 `xml:"extensions>signal_dbm"`
			Bps       *float64 `xml:"extensions>throughput_bps"`
			Lost      *float64 `xml:"extensions>datagrams_lost_percent"`
		} `xml:"trk>trkseg>trkpt"`
	}
	if err := xml.Unmarshal(tracks.Bytes(), &gpx); err != nil || len(gpx.Points) < 5 {
		t.Fatalf("%s: %v", tracks.Bytes(), err)
	}
	if p := gpx.Points[1]; p.Lat != *log.Seconds[1].LatDeg || *p.SpeedMps != *log.Seconds[1].SpeedMps ||
		p.SignalDbm != nil || *p.Bps != *log.Seconds[1].ThroughputBps || *p.Lost != 2 {
		t.Errorf("%+v", p)
	}
}
