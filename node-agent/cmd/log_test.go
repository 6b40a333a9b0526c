package cmd

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
)

// A log that is resumed says what of it the disk has lost, and records it.
func TestAResumedLogSaysWhatIsLost(t *testing.T) {
	dir := t.TempDir()
	keep := func() string {
		t.Helper()
		var out strings.Builder
		c := LogCommand()
		c.SetArgs([]string{"--node", "car", "--dir", dir, "--interface", "lo", "--gpsd", "127.0.0.1:9",
			"--for-s", "1"})
		c.SetOut(&out)
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const lost = "records after 0 and before 2 are lost"
	if out := keep(); strings.Contains(out, "lost") {
		t.Errorf("a new log: %s", out)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	text[20] ^= 1 // in the first line
	if err := os.WriteFile(segments[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := keep(); !strings.Contains(out, lost) {
		t.Errorf("a log whose first line is damaged: %s", out)
	}
	sp, err := spool.Open(dir, "car", spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sp.Close()
	lines, _, err := sp.Read(0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	told, walls := 0, 0
	for _, line := range lines {
		told += strings.Count(string(line), lost)
		walls += strings.Count(string(line), `"kind":"wall_clock"`)
	}
	if told != 1 {
		t.Errorf("%d records report it", told)
	}
	if walls == 0 {
		t.Error("no record tells where the wall clock stands, and so none would of a step")
	}
}

// A database that refuses the log when it begins ends it, for somebody is there to read why. One that was away then and
// refuses it later, on the road, does not.
func TestALogOutlivesADatabaseThatRefusesIt(t *testing.T) {
	for away, want := range map[int64]error{0: influx.ErrAccess, 1: nil} {
		var calls atomic.Int64
		db := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) <= away {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
		}))
		defer db.Close()
		c := LogCommand()
		c.SetArgs([]string{"--node", "car", "--dir", t.TempDir(), "--interface", "lo", "--gpsd", "127.0.0.1:9",
			"--for-s", "3", "--influx", db.URL})
		c.SetOut(&strings.Builder{})
		c.SilenceErrors, c.SilenceUsage = true, true
		if err := c.ExecuteContext(t.Context()); !errors.Is(err, want) || calls.Load() <= away {
			t.Errorf("away for %d of %d calls: %v, want %v", away, calls.Load(), err, want)
		}
	}
}
