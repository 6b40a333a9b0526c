package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

var morning = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// seen is what is known of when an attempt was, in minutes since the morning; −1
// is not known.
type seen struct {
	gps, decided float64
	spools       string // letters, one a node
	unit         string
	lasts        float64 // minutes of its window, which its first and last GPS time are apart
}

func sessionsOf(all []seen) string {
	at := func(minutes float64) time.Time {
		if minutes < 0 {
			return time.Time{}
		}
		return morning.Add(time.Duration(minutes * float64(time.Minute)))
	}
	d := &Run{}
	for i, s := range all {
		k := wire.TrialKey{Trial: i + 1, Attempt: 1}
		a := Attempt{TrialKey: k, Unit: s.unit, began: at(s.gps), ended: at(s.gps), decided: at(s.decided)}
		a.ended, a.Trial.DurationS = a.ended.Add(time.Duration(s.lasts*float64(time.Minute))), 60*s.lasts
		if s.gps < 0 {
			a.ended = time.Time{}
		}
		for j, epoch := range s.spools {
			a.spools = append(a.spools, spool{fmt.Sprint("node ", j), string(epoch)})
		}
		d.Attempts = append(d.Attempts, a)
	}
	d.sessions()
	var out []string
	for _, a := range d.Attempts {
		out = append(out, a.Session)
	}
	return strings.Join(out, " ")
}

const day = 24 * 60

func TestSessionsFollowEachOtherInTime(t *testing.T) {
	for name, c := range map[string]struct {
		attempts []seen
		want     string
	}{
		"a night between": {[]seen{{gps: 0, decided: 1}, {gps: 2, decided: 3},
			{gps: day, decided: day + 1}}, "1 1 2"},
		"no GPS time on the evening's last": {[]seen{{gps: 0, decided: 1}, {gps: -1, decided: 3},
			{gps: day, decided: day + 1}}, "1 1 2"},
		"no GPS time on the morning's first": {[]seen{{gps: 0, decided: 1}, {gps: -1, decided: day},
			{gps: day + 2, decided: day + 3}}, "1 2 2"},
		"no GPS time at all": {[]seen{{gps: -1, decided: 0}, {gps: -1, decided: 20},
			{gps: -1, decided: day}}, "1 1 2"},
		"no time at all": {[]seen{{gps: -1, decided: -1}, {gps: -1, decided: -1}}, "1 1"},
		"no time of one": {[]seen{{gps: 0, decided: 1}, {gps: -1, decided: -1},
			{gps: 20, decided: 21}, {gps: 40, decided: 41}}, "1 1 1 1"},
		"a retry days later": {[]seen{{gps: 0, decided: 1}, {gps: 3 * day, decided: 3*day + 1},
			{gps: 4, decided: 5}, {gps: 8, decided: 9}}, "1 2 1 1"},
		"a controller's clock that is hours off": {[]seen{{gps: 0, decided: 301}, {gps: -1, decided: 305},
			{gps: 8, decided: 309}}, "1 1 1"},
		"driven alone and fetched in the evening": {
			[]seen{{gps: 0, decided: 600}, {gps: -1, decided: 600.1}, {gps: 20, decided: 600.2}}, "1 1 1"},
		"an agent that was set up again": {[]seen{{gps: 0, spools: "ab"}, {gps: 2, spools: "cb"},
			{gps: 4, spools: "cd"}}, "1 1 1"},
		"all nodes set up again": {[]seen{{gps: 0, spools: "ab"}, {gps: 2, spools: "ab"}, {gps: 4, spools: "cd"}},
			"1 1 2"},
		"windows of 27 minutes, 4 between them": {[]seen{{gps: 0, decided: 28, lasts: 27},
			{gps: 31, decided: 59, lasts: 27}}, "1 1"},
		"such windows without GPS time": {[]seen{{gps: -1, decided: 28, lasts: 27},
			{gps: -1, decided: 59, lasts: 27}}, "1 1"},
		"such a window without GPS time after one with it": {[]seen{{gps: 0, decided: 28, lasts: 27},
			{gps: -1, decided: 59, lasts: 27}}, "1 1"},
		"a pause after such a window": {[]seen{{gps: 0, decided: 28, lasts: 27},
			{gps: 58, decided: 86, lasts: 27}}, "1 2"},
		"another unit": {[]seen{{gps: 0, unit: "x"}, {gps: 2, unit: "y"}, {gps: 1, unit: "x"}}, "1 2 1"},
	} {
		if got := sessionsOf(c.attempts); got != c.want {
			t.Errorf("%s: sessions %s, want %s", name, got, c.want)
		}
	}
}

// Shards that drifted apart by more than a pause, and fields side by side, are
// each a session, and not one a trial.
func TestWhatIsDrivenSideBySideIsInSessionsApart(t *testing.T) {
	var drifted, alternating []seen
	for i := range 12 {
		shard := i % 3
		spools, unit := []string{"ab", "cd", "ef"}[shard], []string{"x", "y", "z"}[shard]
		drifted = append(drifted, seen{gps: float64(i*9 + shard*45), spools: spools})
		alternating = append(alternating, seen{gps: float64(i), spools: spools, unit: unit})
	}
	for name, c := range map[string]struct {
		attempts []seen
		want     string
	}{
		"shards that drifted apart": {drifted, "1 2 3 1 2 3 1 2 3 1 2 3"},
		"a unit in each field":      {alternating, "1 2 3 1 2 3 1 2 3 1 2 3"},
	} {
		if got := sessionsOf(c.attempts); got != c.want {
			t.Errorf("%s: sessions %s, want %s", name, got, c.want)
		}
	}
}

// A run over two days of which nobody recorded a GPS time is two sessions, by
// the journal: the synthetic records have none.
func TestSessionsByTheJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	a, err := synthetic.Build(dir, synthetic.Options{Seed: 4, Speeds: []float64{2.8, 5.6}, Repetitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	decidedOn(t, filepath.Join(dir, "journal.ndjson"), func(v wire.Verdict) time.Time {
		return morning.Add(time.Duration(v.Trial)*time.Minute + time.Duration(v.Trial/5)*24*time.Hour)
	})
	read, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Gather(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range d.Attempts {
		want := []string{"1", "2"}[at.Trial.Number/5]
		if at.Session != want || !at.Accepted() || len(at.spools) != 2 {
			t.Errorf("trial %d is of session %s, want %s (%+v, spools %v)", at.Trial.Number, at.Session, want,
				at.Verdict, at.spools)
		}
	}
}

// decidedOn has a journal's verdicts be of other times.
func decidedOn(t *testing.T, path string, when func(wire.Verdict) time.Time) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for line := range bytes.Lines(raw) {
		var e archive.JournalEntry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Verdict != nil {
			e.Wall = when(*e.Verdict)
		}
		if err := encoder.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
