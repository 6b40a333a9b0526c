package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// halfway copies a run and cuts an attempt's records in the middle of a line,
// as they are while they arrive; it is undecided then.
func halfway(t *testing.T) (dir string, whole *archive.Archive) {
	t.Helper()
	whole = synthetic.Run(t, synthetic.Options{Seed: 3, Speeds: []float64{8.3}, Repetitions: 1})
	return halfwayOf(t, whole, 2), whole
}

// halfwayOf does so with a trial of a run, of which no later one has begun.
func halfwayOf(t *testing.T, whole *archive.Archive, trial int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(whole.Dir())); err != nil {
		t.Fatal(err)
	}
	for _, later := range whole.Info().Plan.Trials[trial:] {
		forget(t, filepath.Join(dir, "journal.ndjson"), fmt.Sprintf(`"trial":%d,`, later.Number))
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("trials/%04d-a1", later.Number))); err != nil {
			t.Fatal(err)
		}
	}
	attempt := filepath.Join(dir, fmt.Sprintf("trials/%04d-a1", trial))
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
	for _, path := range []string{filepath.Join(attempt, "MANIFEST.sha256"), filepath.Join(attempt, "verdict.json"),
		filepath.Join(dir, "MANIFEST.sha256")} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	forget(t, filepath.Join(dir, "journal.ndjson"), fmt.Sprintf(`"trial":%d`, trial))
	return dir
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

func stateIn(t *testing.T, dir string) State {
	t.Helper()
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stateOf(a, reachOf(a), new(archive.Tail))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheStateIsWhatTheArchiveHoldsSoFar(t *testing.T) {
	dir, _ := halfway(t)
	s := stateIn(t, dir)
	c := s.Current
	if s.Trials != 2 || s.Done != (Counts{Accepted: 1}) || s.Over {
		t.Errorf("trials %d, done %+v, over %v", s.Trials, s.Done, s.Over)
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

// An attempt whose window has not opened has an empty timeline, which a page
// can go through, and no null.
func TestBeforeTheWindowTheTimelineIsEmpty(t *testing.T) {
	dir, _ := halfway(t)
	for _, node := range []string{"car", "roadside"} {
		path := filepath.Join(dir, "trials/0002-a1/records", node+".ndjson")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := bytes.Cut(raw, []byte("\n"))
		later := time.Now().Add(time.Minute)
		if err := errors.Join(os.WriteFile(path, append(first, '\n'), 0o644), os.Chtimes(path, later, later)); err !=
			nil {
			t.Fatal(err)
		}
	}
	s := stateIn(t, dir)
	text, err := json.Marshal(s)
	if err != nil || s.Current == nil || s.Current.Trial != 2 || !bytes.Contains(text, []byte(`"timeline":[]`)) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestARunWithoutRecordsIsNoError(t *testing.T) {
	dir, _ := halfway(t)
	if err := os.RemoveAll(filepath.Join(dir, "trials")); err != nil {
		t.Fatal(err)
	}
	if s := stateIn(t, dir); s.Current != nil || s.Trials != 2 {
		t.Errorf("%+v", s)
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

// served is a run's board behind a server.
func served(t *testing.T, dir string) (*Board, *httptest.Server) {
	t.Helper()
	b := NewBoard(dir, slog.New(slog.DiscardHandler))
	h, err := handler(t.Context(), b, "", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return b, server
}

func TestEveryViewerSeesChangesAndFailures(t *testing.T) {
	dir, whole := halfway(t)
	b, server := served(t, dir)
	b.look()
	one, two := events(t, server.URL+"/events"), events(t, server.URL+"/events")
	momentsOf := func(next func() (string, string)) int {
		name, data := next()
		var s State
		if err := json.Unmarshal([]byte(data), &s); name != "state" || err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name, st := status(t, next); name != "status" || st.Failure != "" || st.AgeMs == nil {
			t.Fatalf("%s %+v", name, st)
		}
		return len(s.Current.Timeline)
	}
	before := momentsOf(resultsFirst(t, one))
	if momentsOf(resultsFirst(t, two)) != before {
		t.Error("two viewers see different states")
	}
	const car = "trials/0002-a1/records/car.ndjson"
	all, err := os.ReadFile(filepath.Join(whole.Dir(), car))
	later := time.Now().Add(2 * time.Minute) // than halfway's
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, car), all, 0o644), os.Chtimes(filepath.Join(dir, car),
		later, later)); err != nil {
		t.Fatal(err)
	}
	b.look()
	if after := momentsOf(one); after <= before || momentsOf(two) != after {
		t.Errorf("%d moments, then %d", before, after)
	}
	if err := os.Rename(filepath.Join(dir, "run.json"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	b.look()
	if name, st := status(t, one); name != "status" || !strings.Contains(st.Failure, "no run in this folder") ||
		st.AgeMs == nil {
		t.Errorf("%s %+v: the last state is kept, and why it is old is told", name, st)
	}
	if err := os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "run.json")); err != nil {
		t.Fatal(err)
	}
	b.look()
	if name, st := status(t, one); name != "status" || st.Failure != "" {
		t.Errorf("%s %+v: the state is the same, and the failure over", name, st)
	}
}

// resultsFirst are the events of a viewer who has just come, without the results, which come once.
func resultsFirst(t *testing.T, next func() (name, data string)) func() (name, data string) {
	t.Helper()
	seen := false
	return func() (name, data string) {
		name, data = next()
		if !seen && name == "results" {
			seen = true
			return next()
		}
		return name, data
	}
}

// status is the next event, taken for a status.
func status(t *testing.T, next func() (name, data string)) (string, Status) {
	t.Helper()
	name, data := next()
	var s Status
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		t.Fatal(err)
	}
	return name, s
}

// What a viewer is sent stays small, and where every node is now is part of it.
func TestTwoHundredNodesAreThinned(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 5, Speeds: []float64{8.3}, Repetitions: 1, Relays: 198,
		WindowS: func(wire.Trial) float64 { return 4 }})
	b := NewBoard(a.Dir(), slog.New(slog.DiscardHandler))
	b.look()
	v, _ := b.now()
	var s State
	if err := json.Unmarshal(v.state, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Current.Nodes) != 200 || len(v.state) > 200e3 {
		t.Errorf("%d nodes in %d bytes", len(s.Current.Nodes), len(v.state))
	}
	for _, n := range s.Current.Nodes {
		relay := strings.HasPrefix(n.Name, "relay")
		if len(n.Track) == 0 || relay && len(n.Track) > relayPointsMin || !relay && len(n.Track) < 20 {
			t.Errorf("%s: %d points", n.Name, len(n.Track))
		}
	}
}

// Of a long window a viewer is sent no more than of one of two minutes, and all of its throughput.
func TestALongWindowIsToldInCoarserSteps(t *testing.T) {
	const windowS = 300
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := synthetic.Long(dir, synthetic.Options{Seed: 6, Speeds: []float64{2.8}, Repetitions: 1,
		WindowS: func(wire.Trial) float64 { return windowS }}); err != nil {
		t.Fatal(err)
	}
	c := stateIn(t, dir).Current
	last := c.Timeline[len(c.Timeline)-1]
	if n := len(c.Timeline); n > momentsMax || n < momentsMax/2 || last.S < windowS-1 {
		t.Fatalf("%d moments, the last at %g s", n, last.S)
	}
	var mb float64
	for _, m := range c.Timeline {
		if m.Bps != nil {
			mb += *m.Bps * c.StepS / 8e6
		}
	}
	if mb < 19.8 || mb > 20.2 {
		t.Errorf("%.2f MB are told, of 20", mb)
	}
}

func TestATrackKeepsTheNewestPlace(t *testing.T) {
	var records []wire.Record
	for i := range 25 {
		records = append(records, wire.Record{Body: &wire.GPS{}}, wire.Record{Body: &wire.GPS{LatDeg: new(float64(i)),
			LonDeg: new(0.0)}})
		n, _ := nodeNow("x", records, 10)
		got := n.Track
		if len(got) == 0 || len(got) > 10 || got[len(got)-1][0] != float64(i) || i < 10 && len(got) != i+1 {
			t.Errorf("%d places become %v", i+1, got)
		}
	}
}

// What is not held of relays and of the field is nothing that is shown.
func TestWhatIsShownIsHeld(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8}, Repetitions: 1, Relays: 12, Roam: true})
	k := wire.TrialKey{Trial: 2, Attempt: 1}
	trial, _ := a.Trial(k.Trial)
	whole, err := metrics.Load(a, k)
	if err != nil {
		t.Fatal(err)
	}
	held, err := metrics.LoadNew(a, k, &archive.Tail{Wants: shows(trial)})
	if err != nil {
		t.Fatal(err)
	}
	if most, some := len(whole.Records()), len(held.Records()); some == 0 || some >= most {
		t.Errorf("%d of %d records are held", some, most)
	}
	if !reflect.DeepEqual(held.Timeline(), whole.Timeline()) {
		t.Error("the timeline of what is held is another")
	}
	byNode, heldByNode := whole.ByNode(), held.ByNode()
	for _, name := range trial.Nodes() {
		node, marks := nodeNow(name, heldByNode[name], trackPointsMax)
		wantNode, wantMarks := nodeNow(name, byNode[name], trackPointsMax)
		if !reflect.DeepEqual(node, wantNode) || !reflect.DeepEqual(marks, wantMarks) {
			t.Errorf("%s is %+v, %v; want %+v, %v", name, node, marks, wantNode, wantMarks)
		}
	}
}

//attack:network a page from elsewhere that reads the live page by a name that points to this machine | the name that
//attack:and is asked for has to be this machine's
//attack:network somebody who opens the live page without its token, or with a guess | a random token, compared in
//attack:and constant time
//attack:network a path that leads out of the live page's folder | only what the page has is served
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
		{"an attempt without", "secret", "/attempt?trial=1&attempt=1", "10.0.0.1:7480", 403},
		{"streets without", "secret", "/streets?west=1&south=1&east=2&north=2", "10.0.0.1:7480", 403},
		{"streets with it", "secret", "/streets?west=1&south=1&east=2&north=2&token=secret", "10.0.0.1:7480", 204},
		{"streets by a name from elsewhere", "", "/streets?west=1&south=1&east=2&north=2", "evil.example:7480", 403},
		{"a picture without", "secret", "/picture?zoom=0&x=0&y=0", "10.0.0.1:7480", 403},
		{"the page by its file's name, without", "secret", "/index.html", "10.0.0.1:7480", 403},
		{"out of the folder", "", "/../live.go", "127.0.0.1:7480", 404},
	} {
		h, err := handler(t.Context(), b, tc.token, func(string) {})
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

//attack:network connections without the live page's token, by the thousand, until there is no room for a viewer | who
//attack:and is refused loses the connection, and one more than 256 takes the place of the oldest, never of a viewer
func TestWhoHasNoTokenKeepsNoViewerOut(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, NewBoard(t.TempDir(), slog.New(slog.DiscardHandler)), "secret") }()
	defer func() { stop(); <-served }()
	connect := func() (net.Conn, *bufio.Reader) {
		t.Helper()
		conn, err := net.DialTimeout("tcp4", l.Addr().String(), 5*time.Second)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(30 * time.Second))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn, bufio.NewReader(conn)
	}
	ask := func(conn net.Conn, in *bufio.Reader, target string) (status int, closes bool) {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: roadside\r\n\r\n", target)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return 0, true
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode, answer.Close
	}
	viewer, in := connect()
	if status, closes := ask(viewer, in, "/?token=secret"); status != 200 || closes {
		t.Errorf("a viewer is answered %d, and the connection ends: %t", status, closes)
	}
	refused, from := connect()
	if status, closes := ask(refused, from, "/"); status != 403 || !closes {
		t.Errorf("without the token: %d, and the connection ends: %t", status, closes)
	}
	var first net.Conn
	var said *bufio.Reader
	for i := range strangersMax + 10 {
		conn, in := connect()
		if status, _ := ask(conn, in, "/live.css"); status != 200 {
			t.Fatalf("stranger %d is answered %d", i, status)
		}
		if i == 0 {
			first, said = conn, in
		}
	}
	if status, _ := ask(first, said, "/live.css"); status != 0 {
		t.Errorf("the oldest of %d strangers is answered %d", strangersMax+10, status)
	}
	if status, _ := ask(viewer, in, "/?token=secret"); status != 200 {
		t.Errorf("beside strangers the viewer is answered %d", status)
	}
	another, in := connect()
	if status, _ := ask(another, in, "/?token=secret"); status != 200 {
		t.Errorf("beside strangers another viewer is answered %d", status)
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false,
		"192.168.1.2:1": false, "x": false,
	} {
		if Loopback(address) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
}

// A page that is open on another machine goes on when the run, or another run beside it, is served again.
func TestTheTokenStaysBesideTheRuns(t *testing.T) {
	runs, others := t.TempDir(), t.TempDir()
	file := filepath.Join(runs, ".keys", "live.token")
	token := func(runs string) string {
		t.Helper()
		token, err := Token(":1", runs)
		if err != nil || !tokens.MatchString(token) {
			t.Fatalf("token %q, error %v", token, err)
		}
		return token
	}
	first := token(runs)
	if again := token(runs); again != first {
		t.Errorf("%q, and then %q", first, again)
	}
	if other := token(others); other == first {
		t.Error("two folders of runs have the same")
	}
	if is, err := os.Stat(file); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("it is kept as %v, %v", is, err)
	}
	if err := os.WriteFile(file, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := token(runs); after == first || after == "short" {
		t.Errorf("of a damaged file: %q", after)
	}
	if token, err := Token(":1", file); err == nil || !tokens.MatchString(token) {
		t.Errorf("where none can be kept: %q, %v", token, err)
	}
}

// The page's own code is small, and all that a browser loads: why there is no charting library is
// docs/decisions/024-pages-without-libraries.md, which says how much it is.
func TestThePageIsSmall(t *testing.T) {
	files, err := page.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, f := range files {
		text, err := page.ReadFile("page/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if total += len(text); strings.Contains(string(text), "innerHTML") {
			t.Errorf("%s sets markup", f.Name())
		}
	}
	if t.Logf("%d bytes", total); total > 48<<10 {
		t.Errorf("the page has %d bytes", total)
	}
}
