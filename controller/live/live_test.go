package live

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/synthetic"
)

// halfway copies a run and cuts an attempt's records in the middle of a line,
// as they are while they arrive; it is undecided then.
func halfway(t *testing.T) (dir string, whole *archive.Archive) {
	t.Helper()
	whole = synthetic.Run(t, synthetic.Options{Seed: 3, Speeds: []float64{8.3}, Repetitions: 1})
	dir = filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(whole.Dir())); err != nil {
		t.Fatal(err)
	}
	attempt := filepath.Join(dir, "trials/0002-a1")
	for _, node := range []string{"car", "roadside"} {
		path := filepath.Join(attempt, "records", node+".ndjson")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw[:len(raw)/2], 0o644); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Minute)
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"MANIFEST.sha256", "verdict.json"} {
		if err := os.Remove(filepath.Join(attempt, name)); err != nil {
			t.Fatal(err)
		}
	}
	forget(t, filepath.Join(dir, "journal.ndjson"), `"trial":2`)
	return dir, whole
}

// forget takes the lines with a text out of a file.
func forget(t *testing.T, path, text string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []byte
	for line := range bytes.Lines(raw) {
		if !bytes.Contains(line, []byte(text)) {
			kept = append(kept, line...)
		}
	}
	if len(kept) == len(raw) {
		t.Fatalf("no line of %s has %s", path, text)
	}
	if err := os.WriteFile(path, kept, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheStateIsWhatTheArchiveHoldsSoFar(t *testing.T) {
	dir, _ := halfway(t)
	s, err := read(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := s.Current
	if s.Trials != 2 || s.Done != (Counts{Accepted: 1}) || len(s.Recent) != 1 || s.Recent[0].Trial != 1 {
		t.Errorf("trials %d, done %+v, recent %+v", s.Trials, s.Done, s.Recent)
	}
	if c == nil || c.Trial != 2 || c.Outcome != "" || len(c.Nodes) != 2 {
		t.Fatalf("current: %+v", c)
	}
	if n := len(c.Timeline); n < 20 || n > 90 {
		t.Errorf("half of a window of 10 s has %d moments", n)
	}
	if last := c.Timeline[len(c.Timeline)-1]; last.Mps == nil && last.Bps == nil {
		t.Errorf("the last moment knows nothing: %+v", last)
	}
	for _, n := range c.Nodes {
		if n.State != "armed" || n.FixAgeMs == nil || len(n.Track) < 10 {
			t.Errorf("node %+v", n)
		}
	}
	if c.TargetMps == nil || *c.TargetMps != 8.3 {
		t.Errorf("target %v", c.TargetMps)
	}
}

func TestARunWithoutRecordsIsNoError(t *testing.T) {
	dir, _ := halfway(t)
	if err := os.RemoveAll(filepath.Join(dir, "trials")); err != nil {
		t.Fatal(err)
	}
	s, err := read(dir, time.Now())
	if err != nil || s.Current != nil || s.Trials != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

// events reads a viewer's events: name and data.
func events(t *testing.T, url string) (next func() (name, data string)) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s, %v", resp.Status, resp.Header)
	}
	in := bufio.NewReaderSize(resp.Body, 1<<20)
	return func() (name, data string) {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream ended: %v", err)
			}
			switch line = strings.TrimSuffix(line, "\n"); {
			case line == "":
				return name, data
			case strings.HasPrefix(line, "event: "):
				name = line[len("event: "):]
			case strings.HasPrefix(line, "data: "):
				data = line[len("data: "):]
			}
		}
	}
}

func TestEveryViewerSeesChangesAndFailures(t *testing.T) {
	dir, whole := halfway(t)
	b := NewBoard(dir, slog.New(slog.DiscardHandler))
	h, err := Handler(t.Context(), b, "")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	b.look(time.Now())
	one, two := events(t, server.URL+"/events"), events(t, server.URL+"/events")
	momentsOf := func(next func() (string, string)) int {
		name, data := next()
		var s State
		if err := json.Unmarshal([]byte(data), &s); name != "state" || err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name, data := next(); name != "failure" || data != `""` {
			t.Fatalf("%s %s", name, data)
		}
		return len(s.Current.Timeline)
	}
	before := momentsOf(one)
	if momentsOf(two) != before {
		t.Error("two viewers see different states")
	}
	all, err := os.ReadFile(filepath.Join(whole.Dir(), "trials/0002-a1/records/car.ndjson"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "trials/0002-a1/records/car.ndjson"), all, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.look(time.Now())
	if after := momentsOf(one); after <= before || momentsOf(two) != after {
		t.Errorf("%d moments, then %d", before, after)
	}
	if err := os.Rename(filepath.Join(dir, "run.json"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	b.look(time.Now())
	if name, _ := one(); name != "state" {
		t.Errorf("%s: the last state is kept", name)
	}
	if name, data := one(); name != "failure" || !strings.Contains(data, "no run in this folder") {
		t.Errorf("%s %s", name, data)
	}
}

func TestOnlyWhoMaySeesThePage(t *testing.T) {
	b := NewBoard(t.TempDir(), slog.New(slog.DiscardHandler))
	for _, tc := range []struct {
		name, token, target, host string
		want                      int
	}{
		{"this machine", "", "/", "127.0.0.1:7480", 200},
		{"this machine by name", "", "/live.js", "localhost:7480", 200},
		{"this machine, IPv6", "", "/", "[::1]:7480", 200},
		{"a name from elsewhere that points here", "", "/", "evil.example:7480", 403},
		{"with the token", "secret", "/?token=secret", "10.0.0.1:7480", 200},
		{"without", "secret", "/", "10.0.0.1:7480", 403},
		{"events without", "secret", "/events", "10.0.0.1:7480", 403},
		{"with another", "secret", "/?token=guess", "127.0.0.1:7480", 403},
		{"out of the folder", "", "/../live.go", "127.0.0.1:7480", 404},
	} {
		h, err := Handler(t.Context(), b, tc.token)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		path, query, _ := strings.Cut(tc.target, "?")
		r.URL.Path, r.URL.RawQuery, r.Host = path, query, tc.host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Code; got != tc.want && !(tc.want == 404 && got >= 300) {
			body, _ := io.ReadAll(w.Body)
			t.Errorf("%s: %d, want %d: %s", tc.name, got, tc.want, body)
		}
		if w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: no policy", tc.name)
		}
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "192.168.1.2:1": false, "x": false,
	} {
		if Loopback(address) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
	if a, b := Token(), Token(); len(a) < 22 || a == b {
		t.Errorf("tokens %q and %q", a, b)
	}
}
