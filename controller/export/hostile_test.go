package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/influx"
	"fieldmesh.dev/fieldmesh/controller/report"
	line "fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// hostile begins a formula in a spreadsheet and has what ends a text, a tag, a
// cell, a line or a code span in every format that we write.
func hostile(name string) string {
	return "=cmd|' /C calc'!A0,\"" + name + "\"]]></name></title><script>alert(1)</script>&amp; a=1\\,\n` | éé |"
}

// hostileRun is a run from elsewhere in which no name is as a campaign file
// could have it. What the archive's files are called stays.
func hostileRun(t *testing.T) *archive.Archive {
	t.Helper()
	names := []string{"synthetic-2", "velocity", "car", "roadside", "bulk", "laptop-1", "laptop-2", "reno", "wlan0",
		"A"}
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	own := func(node string, b wire.Body) wire.Record {
		return wire.Record{Header: wire.Header{Node: node, Epoch: "own", Seq: 1, TBootNs: synthetic.OpenBootNs["car"],
			Run: "synthetic-2", Trial: 1, Attempt: 1}, Body: b}
	}
	// A mark, and the comparison of clocks that dates the car's records.
	appendRecord(t, a, own("car", &wire.Event{Level: "warning", Text: hostile("mark")}))
	appendRecord(t, a, own("controller", &wire.Clock{Peer: "car", OwnWallOffsetNs: new(int64(1_790_000_000e9)),
		Exchanges: 8}))
	var pairs []string
	for _, n := range names {
		as, err := json.Marshal(hostile(n))
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, fmt.Sprintf("%q", n), string(as))
	}
	renamed := strings.NewReplacer(pairs...)
	err := filepath.WalkDir(a.Dir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "json") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(renamed.Replace(string(raw))), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err = archive.Read(a.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if a.Info().Run != hostile("synthetic-2") {
		t.Fatalf("the run is %q", a.Info().Run)
	}
	return a
}

func appendRecord(t *testing.T, a *archive.Archive, r wire.Record) {
	t.Helper()
	lines, err := synthetic.Lines([]wire.Record{r})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(a.Dir(), "trials/0001-a1/records", r.Node+".ndjson"),
		os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(append(lines[0], '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

//attack:archive a name that a spreadsheet would take for a formula | such cells begin with an apostrophe
//attack:archive a name that ends an element or a text of GPX, GeoJSON or the crate | it is escaped
func TestNamesFromOutsideAreEscapedInEveryFile(t *testing.T) {
	a := hostileRun(t)
	dir := filepath.Join(t.TempDir(), "export")
	if _, err := Run(a, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for _, name := range []string{"metrics.csv", "trials.csv", "results.csv", "timelines.csv"} {
		noFormula(t, name, read(name))
	}
	wellFormed(t, read("tracks.gpx"))
	for _, name := range []string{"tracks.geojson", crateFile} {
		var v map[string]any
		if err := json.Unmarshal(read(name), &v); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if v["name"] != nil && v["name"] != hostile("synthetic-2") {
			t.Errorf("%s: the run's name is %q", name, v["name"])
		}
	}
	for l := range bytes.Lines(read("records.ndjson")) {
		if !json.Valid(l) {
			t.Fatalf("no JSON: %s", l)
		}
	}
	nodes := map[string]bool{}
	for _, row := range rowsOf(t, filepath.Join(dir, fileOf("fm_gps"))) {
		nodes[row["node"].String()] = true
	}
	if len(nodes) != 2 || !nodes[hostile("car")] {
		t.Errorf("nodes in the table: %v", nodes)
	}
	if bytes.Contains(read("data-dictionary.md"), []byte("<script>")) {
		t.Error("the dictionary has a script")
	}
}

func noFormula(t *testing.T, name string, raw []byte) {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil || len(rows) < 3 {
		t.Fatalf("%s: %d rows, %v", name, len(rows), err)
	}
	found := false
	for _, row := range rows {
		for _, c := range row {
			found = found || c == "'"+hostile("synthetic-2")
			if strings.HasPrefix(c, "=") || strings.HasPrefix(c, "@") {
				t.Fatalf("%s: a cell is a formula: %q", name, c)
			}
		}
	}
	if !found {
		t.Errorf("%s: the run's name is not whole", name)
	}
}

func wellFormed(t *testing.T, raw []byte) {
	t.Helper()
	d, texts := xml.NewDecoder(bytes.NewReader(raw)), ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Local == "script" {
				t.Error("a name became an element")
			}
		case xml.CharData:
			texts += string(e)
		}
	}
	if !strings.Contains(texts, hostile("synthetic-2")) || !strings.Contains(texts, hostile("car")) {
		t.Errorf("names are not whole in %.300s", texts)
	}
}

//attack:archive a name that a browser would take for a script | it is escaped
func TestNamesFromOutsideAreEscapedInTheReport(t *testing.T) {
	var html bytes.Buffer
	if _, err := report.Write(hostileRun(t), &html); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(html.Bytes(), []byte("<script>alert")) {
		t.Error("a name became a script")
	}
	if !bytes.Contains(html.Bytes(), []byte("&lt;script&gt;alert")) {
		t.Error("the names are not there")
	}
}

// kept is a server that keeps what it is sent.
type kept struct {
	mu    sync.Mutex
	lines []byte
}

func (k *kept) Write(_ context.Context, lines []byte) ([]line.Refusal, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines = append(k.lines, lines...)
	return nil, nil
}

func (k *kept) Forget(context.Context, string, map[string]string, time.Time) error { return nil }

//attack:archive a description of a former export without an end, or that grows when it is decoded | it has 128 MiB at
//attack:and most, and is read piece by piece
func TestHostileDescriptionsAreNotRead(t *testing.T) {
	a, dir := exported(t)
	path := filepath.Join(dir, crateFile)
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(a, dir, Options{}); err == nil || !strings.Contains(err.Error(), path+": it has 1099511627776") {
		t.Errorf("of a file without an end: %v", err)
	}
	for text, want := range map[string]string{strings.Repeat("[", 100_000): "{ is not there",
		`{"@graph":` + strings.Repeat("[", 100_000): "exceeded max depth", `{"@graph":[{`: "unexpected EOF"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := described(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %.20s…: %v, want %q", text, err, want)
		}
	}
	if err := os.WriteFile(path, []byte(`{"@graph":[{}`+strings.Repeat(",{}", 4_000_000)+"]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	names, err := described(dir)
	runtime.ReadMemStats(&after)
	if most := uint64(64); err != nil || len(names) > 0 || after.HeapSys-before.HeapSys > most<<20 {
		t.Errorf("of four million entities: %d files, %v; the heap grew from %d to %d MiB, by more than %d", len(names),
			err, before.HeapSys>>20, after.HeapSys>>20, most)
	}
}

//attack:archive a name that adds points or tags to the database's | it is escaped as line protocol has it
func TestNamesFromOutsideAreEscapedInLineProtocol(t *testing.T) {
	a := hostileRun(t)
	var k kept
	s, err := influx.Publish(t.Context(), a.Dir(), &k)
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`^fm_[a-z0-9_]+$`)
	d, points, runs := lineprotocol.NewDecoderWithBytes(k.lines), 0, map[string]bool{}
	for d.Next() {
		points++
		name, err := d.Measurement()
		if err != nil || !ours.Match(name) {
			t.Fatalf("measurement %q: %v", name, err)
		}
		for {
			key, value, err := d.NextTag()
			if err != nil {
				t.Fatal(err)
			}
			if key == nil {
				break
			}
			if string(key) == "run" {
				runs[string(value)] = true
			}
		}
		for {
			key, _, err := d.NextField()
			if err != nil {
				t.Fatal(err)
			}
			if key == nil {
				break
			}
		}
	}
	// A tag can hold no line break.
	if want := strings.ReplaceAll(hostile("synthetic-2"), "\n", " "); s.Points < 1000 || points < int(s.Points) ||
		len(runs) != 1 || !runs[want] {
		t.Errorf("%d points of %+v, runs %v", points, s, runs)
	}
}
