package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// resultsIn are the results of a run once all that counts is measured.
func resultsIn(t *testing.T, a *archive.Archive) Results {
	t.Helper()
	m := Measured{}
	for {
		m.some(a, a.Decisions(), func(k wire.TrialKey, err error) { t.Errorf("%+v: %v", k, err) })
		if r := resultsOf(a, a.Decisions(), m); r.Unread == 0 {
			return r
		}
	}
}

// A level has every attempt that counts, as results.csv has it, in the order of speed; those that were rejected are
// listed with their reason, and are no result.
func TestResultsBySpeedAreTheMetrics(t *testing.T) {
	speeds := []float64{11.1, 2.8, 8.3}
	a := synthetic.Run(t, synthetic.Options{Seed: 21, Speeds: speeds, Repetitions: 2,
		Mishap: func(trial wire.Trial, attempt int, c *synthetic.Conditions) {
			c.GateTimeout = trial.Number == 3 && attempt == 1
		}})
	r := resultsIn(t, a)
	if r.By != BySpeed || len(r.Levels) != 3 || r.Decided != 13 || len(r.Attempts) != 13 {
		t.Fatalf("%+v", r)
	}
	want := map[string][]float64{}
	for _, v := range a.Decisions() {
		if v.Outcome != wire.Accepted {
			continue
		}
		trial, _ := a.Trial(v.Trial)
		rows, err := metrics.Of(a, v.TrialKey)
		if err != nil {
			t.Fatal(err)
		}
		_, mbps := metrics.Measured(trial, rows)
		name := levelOf(trial, r.By)
		want[name] = append(want[name], *mbps)
	}
	for i, name := range []string{"2.8", "8.3", "11.1"} {
		l, sum, gets := r.Levels[i], 0.0, 0
		for _, v := range want[name] {
			sum += v
		}
		for _, p := range l.Points {
			if p.CarGets {
				gets++
			}
		}
		if l.Name != name || l.N != 4 || len(l.Points) != 4 || math.Abs(l.Mbps-sum/4) > 1e-9 || gets != 2 {
			t.Errorf("%+v, want the mean of %v, two of them received by the car", l, want[name])
		}
		t.Logf("%s m/s: mean %.3f Mbit/s of %d", l.Name, l.Mbps, l.N)
	}
	for _, d := range r.Attempts {
		if (d.Outcome == wire.Accepted) != (d.Mbps != nil) ||
			(d.Outcome == wire.Rejected) != (d.Reason.Code == "gate_timeout") {
			t.Errorf("%+v", d)
		}
	}
	if newest := a.Decisions()[12].TrialKey; r.Attempts[0].Trial != newest.Trial {
		t.Errorf("the first of the list is trial %d, the newest is %d", r.Attempts[0].Trial, newest.Trial)
	}
}

// Without a speed, results are told by a factor that has levels; with none of either they are one level.
func TestResultsWithoutASpeed(t *testing.T) {
	for _, tc := range []struct {
		by     string
		change func(trial *wire.Trial)
		levels []string
	}{
		{"section", func(trial *wire.Trial) { trial.SpeedMps = nil }, []string{"A", "B"}},
		{"", func(trial *wire.Trial) { trial.SpeedMps, trial.Factors = nil, nil }, []string{"all"}},
	} {
		a := synthetic.Run(t, synthetic.Options{Seed: 22, Speeds: []float64{8.3}, Repetitions: 1, Change: tc.change,
			MB: func(wire.Trial, *rand.Rand) float64 { return 5 }})
		r := resultsIn(t, a)
		if r.By != tc.by || len(r.Levels) != len(tc.levels) {
			t.Errorf("by %q: %+v", tc.by, r)
			continue
		}
		for i, name := range tc.levels {
			if r.Levels[i].Name != name || r.Levels[i].N == 0 {
				t.Errorf("level %q: %+v", name, r.Levels[i])
			}
		}
	}
}

func TestLevelsAreInTheOrderOfTheirSize(t *testing.T) {
	for _, tc := range [][2]string{{"2.8", "11.1"}, {"11.1", "aodv"}, {"aodv", "olsr"}} {
		if inOrder(tc[0], tc[1]) >= 0 || inOrder(tc[1], tc[0]) <= 0 {
			t.Errorf("%q is not before %q", tc[0], tc[1])
		}
	}
}

// What an attempt measured is computed once: a page that goes on for hours reads no old records again.
func TestNothingIsMeasuredTwice(t *testing.T) {
	dir, _ := halfway(t)
	b := NewBoard(dir, slog.New(slog.DiscardHandler))
	b.look()
	results := func() Results { return resultsOn(t, b) }
	if r := results(); r.Unread != 0 || len(r.Levels) != 1 || r.Levels[0].N != 1 {
		t.Fatalf("%+v", r)
	}
	before := results().Levels[0].Mbps
	if err := os.RemoveAll(filepath.Join(dir, "trials/0001-a1")); err != nil {
		t.Fatal(err)
	}
	b.shown = nil // as after a failure
	b.look()
	if after := results().Levels[0]; after.N != 1 || after.Mbps != before {
		t.Errorf("measured again: %+v, before %g", after, before)
	}
}

// A node's records that come late, or an attempt that could not be read once, change what was
// measured, on the page of results and where the attempt is looked at.
func TestWhatIsReadAgainIsMeasuredAgain(t *testing.T) {
	const attempt = "trials/0001-a1"
	for name, change := range map[string]struct {
		spoil, mend func(t *testing.T, dir, path string, whole []byte)
	}{
		"half of the receiver's records came late": {
			func(t *testing.T, _, path string, whole []byte) { // another attempt is under way
				half := len(whole)/2 + bytes.IndexByte(whole[len(whole)/2:], '\n') + 1
				put(t, path, whole[:half])
			},
			func(t *testing.T, dir, path string, whole []byte) {
				half, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(dir, "late", filepath.Base(attempt), filepath.Base(path)), whole[len(half):])
			}},
		"it could not be read": {
			func(t *testing.T, _, path string, whole []byte) {
				put(t, path, append([]byte("no record\n"), whole...))
			},
			func(t *testing.T, _, path string, whole []byte) { put(t, path, whole) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir, whole := halfway(t)
			trial, _ := whole.Trial(1)
			path := filepath.Join(dir, attempt, "records", trial.Receiver+".ndjson")
			all, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			change.spoil(t, dir, path, all)
			var log bytes.Buffer
			b, s := NewBoard(dir, slog.New(slog.NewTextHandler(&log, nil))), newShelf()
			k := wire.TrialKey{Trial: 1, Attempt: 1}
			for range 3 {
				b.look()
			}
			before, _ := s.attempt(t.Context(), dir, k)
			if r := resultsOn(t, b); len(r.Levels) != 0 || strings.Count(log.String(), "not known") > 1 {
				t.Fatalf("%+v\n%s", r, log.String())
			}
			change.mend(t, dir, path, all)
			b.look()
			if r := resultsOn(t, b); len(r.Levels) != 1 || r.Levels[0].N != 1 {
				t.Errorf("%+v", r)
			}
			if after, err := s.attempt(t.Context(), dir, k); err != nil || bytes.Equal(before, after) {
				t.Errorf("the attempt is shown as before: %.200s, %v", after, err)
			}
		})
	}
}

// What the time of one look does not suffice for, the next ones measure, with no news in between: attempts of which
// more records have come, and none of them is kept waiting by one that cannot be read.
func TestALookGoesOnWithWhatTheLastOneLeft(t *testing.T) {
	defer func(was time.Duration) { measureFor = was }(measureFor)
	measureFor = time.Minute
	a := synthetic.Run(t, synthetic.Options{Seed: 25, Speeds: []float64{8.3}, Repetitions: 2})
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(a.Dir())); err != nil {
		t.Fatal(err)
	}
	last := map[int][]byte{} // of the receivers' records, which come late
	for n := 1; n <= 3; n++ {
		trial, _ := a.Trial(n)
		path := filepath.Join(dir, fmt.Sprintf("trials/%04d-a1/records", n), trial.Receiver+".ndjson")
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		half := len(all)/2 + bytes.IndexByte(all[len(all)/2:], '\n') + 1
		if last[n] = all[half:]; n == 3 {
			half, all = len(all), append([]byte("no record\n"), all...)
		}
		put(t, path, all[:half])
	}
	b := NewBoard(dir, slog.New(slog.DiscardHandler))
	b.look()
	if r := resultsOn(t, b); len(r.Levels) != 1 || r.Levels[0].N != 1 || r.Unread != 0 {
		t.Fatalf("%+v", r)
	}
	measureFor = 0
	for n := 1; n <= 2; n++ {
		trial, _ := a.Trial(n)
		put(t, filepath.Join(dir, fmt.Sprintf("late/%04d-a1", n), trial.Receiver+".ndjson"), last[n])
	}
	for look, want := range []struct{ n, unread int }{{2, 1}, {3, 0}, {3, 0}} {
		b.look()
		if r := resultsOn(t, b); r.Levels[0].N != want.n || r.Unread != want.unread {
			t.Errorf("after look %d %d are measured and %d are not yet, want %+v", look+1, r.Levels[0].N, r.Unread,
				want)
		}
	}
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func resultsOn(t *testing.T, b *Board) (r Results) {
	t.Helper()
	v, _ := b.now()
	if err := json.Unmarshal(v.results, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A person's word over a verdict is told, though the number of decisions stays.
func TestAPersonsWordChangesTheResults(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 23, Speeds: []float64{8.3}, Repetitions: 1})
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(a.Dir())); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "MANIFEST.sha256")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	b := NewBoard(dir, slog.New(slog.DiscardHandler))
	b.look()
	open, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	v := open.Decisions()[0]
	v.Outcome, v.Word = wire.Rejected, &wire.Word{Decision: "reject", By: "ana"}
	if err := errors.Join(open.Decide(v), open.Close()); err != nil {
		t.Fatal(err)
	}
	b.look()
	seen, _ := b.now()
	var r Results
	if err := json.Unmarshal(seen.results, &r); err != nil || len(r.Levels) != 1 || r.Levels[0].N != 1 ||
		r.Attempts[1].Outcome != wire.Rejected || r.Attempts[1].Mbps != nil {
		t.Errorf("%s, %v", seen.results, err)
	}
}

// A judged attempt can be looked at while another is under way; what nobody judged cannot.
func TestAJudgedAttemptIsShown(t *testing.T) {
	dir, _ := halfway(t)
	_, server := served(t, dir)
	for query, want := range map[string]int{"trial=1&attempt=1": 200, "trial=2&attempt=1": 404,
		"trial=1&attempt=2": 404, "trial=99&attempt=1": 404, "trial=one&attempt=1": 400, "": 400} {
		for range 2 { // read, and kept
			r, err := http.Get(server.URL + "/attempt?" + query)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r.Body)
			if err := errors.Join(err, r.Body.Close()); err != nil || r.StatusCode != want {
				t.Fatalf("%q: %d, want %d: %s, %v", query, r.StatusCode, want, text, err)
			}
			var c Current
			if want != 200 {
				continue
			}
			if err := json.Unmarshal(text, &c); err != nil || c.Trial != 1 || c.Phase != PhaseJudged ||
				c.Outcome != wire.Accepted || len(c.Timeline) != 101 || len(c.Nodes) != 2 ||
				len(c.Nodes[0].Track) < 40 {
				t.Errorf("%.300s, %v", text, err)
			}
		}
	}
	if s := stateIn(t, dir); s.Current.Trial != 2 {
		t.Errorf("now is trial %d", s.Current.Trial)
	}
}

// However many are looked at, few are kept.
func TestFewLookedAtAttemptsAreKept(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 24, Speeds: []float64{2.8, 8.3, 11.1}, Repetitions: 2,
		WindowS: func(wire.Trial) float64 { return 2 }})
	s := newShelf()
	for _, v := range a.Decisions() {
		if _, err := s.attempt(t.Context(), a.Dir(), v.TrialKey); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.kept) != keptMax || s.kept[keptMax-1].verdict.Trial != 12 {
		t.Errorf("%d are kept, the last is trial %d", len(s.kept), s.kept[len(s.kept)-1].verdict.Trial)
	}
}
