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
	"testing"

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

// unfinished is a run whose only attempt was ended after five seconds. In the last, no answer came.
func unfinished(t *testing.T) *archive.Archive {
	t.Helper()
	info := synthetic.Info(options)
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), info)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	told := synthetic.Attempt(info.Plan, info.Plan.Trials[0], 1, synthetic.Conditions{MB: 20}, map[string]*uint64{})
	delete(told, archive.FieldNode)
	for node, all := range told {
		over := synthetic.OpenBootNs[node] + 5e9
		all = slices.DeleteFunc(all, func(r wire.Record) bool {
			d, is := r.Body.(*wire.Delay)
			return r.TBootNs > over || is && d.ReceivedBootNs != nil && r.TBootNs > over-1e9 ||
				is && d.ReceivedBootNs == nil && r.TBootNs > over-wire.DelayGrace.Nanoseconds()
		})
		if err := synthetic.Store(a, node, all); err != nil {
			t.Fatal(err)
		}
	}
	return a
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
		log.Seconds[i].ThroughputBps, log.Seconds[i].Lost = new(0.0), log.Seconds[i].Sent
	}
	if got := log.FarthestM(); got == nil || *got != *log.Seconds[0].DistanceM {
		t.Errorf("something came %v m away; want %g", got, *log.Seconds[0].DistanceM)
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
