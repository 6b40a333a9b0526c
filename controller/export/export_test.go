package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// exported is the export of a small synthetic run.
func exported(t *testing.T) (*archive.Archive, string) {
	t.Helper()
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	dir := filepath.Join(t.TempDir(), "export")
	const packets = "the bytes of a capture"
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	path := filepath.Join(a.Dir(), archive.CapturePath(k, "car"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(packets), 0o644)); err !=
		nil {
		t.Fatal(err)
	}
	paths, err := Run(a, dir, Options{Captures: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "captures/0001-a1-car.pcapng")); err != nil ||
		string(got) != packets {
		t.Errorf("the capture: %q, %v", got, err)
	}
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			t.Error(err)
		}
	}
	return a, dir
}

// rowsOf reads a table back: one map a row, without what is null.
func rowsOf(t *testing.T, path string) []map[string]parquet.Value {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := parquet.NewGenericReader[any](f)
	defer r.Close()
	columns := r.Schema().Columns()
	var out []map[string]parquet.Value
	rows := make([]parquet.Row, 100)
	for {
		n, err := r.ReadRows(rows)
		for _, row := range rows[:n] {
			m := map[string]parquet.Value{}
			for _, v := range row {
				if !v.IsNull() {
					m[columns[v.Column()][0]] = v.Clone()
				}
			}
			out = append(out, m)
		}
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTablesHoldEveryRecordAndNothingElse(t *testing.T) {
	a, dir := exported(t)
	stored := map[string][]wire.Record{} // by table
	tables := map[string]string{}
	for _, m := range influx.Schema() {
		tables[m.Kind] = filepath.Join(dir, fileOf(m.Name))
	}
	attempts, err := a.Trials()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range attempts {
		all, err := a.All(at.Trial, at.Attempt)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			stored[tables[r.Kind]] = append(stored[tables[r.Kind]], r)
		}
	}
	if len(stored) < 5 {
		t.Fatalf("the run has records of %d kinds only", len(stored))
	}
	for path, records := range stored {
		rows := rowsOf(t, path)
		if len(rows) != len(records) {
			t.Errorf("%s has %d rows of %d records", filepath.Base(path), len(rows), len(records))
			continue
		}
		for i, r := range records {
			if got := rows[i]; got["node"].String() != r.Node || got["seq"].Uint64() != r.Seq ||
				got["t_boot_ns"].Int64() != r.TBootNs ||
				got["trial"].Int64() != int64(r.Trial) {
				t.Fatalf("%s, row %d: %v of record %+v", filepath.Base(path), i, got, r.Header)
			}
		}
	}
	for i, row := range rowsOf(t, tables["gps"]) {
		g := stored[tables["gps"]][i].Body.(*wire.GPS)
		v, there := row["speed_mps"]
		if there != (g.SpeedMps != nil) || there && v.Double() != *g.SpeedMps {
			t.Fatalf("row %d: speed %v of %+v", i, v, g)
		}
	}
}

func TestWindowTimeIsTheNodesOwn(t *testing.T) {
	a, dir := exported(t)
	opened, err := windows(a, wire.TrialKey{Trial: 1, Attempt: 1})
	if err != nil || len(opened) < 2 {
		t.Fatalf("windows %v, %v", opened, err)
	}
	checked := 0
	for _, row := range rowsOf(t, filepath.Join(dir, fileOf("fm_gps"))) {
		open, ok := opened[row["node"].String()]
		if !ok || row["trial"].Int64() != 1 {
			continue
		}
		checked++
		if got, want := row["t_window_s"].Double(), float64(row["t_boot_ns"].Int64()-open.OpenBootNs)/1e9; got != want {
			t.Fatalf("%v s, want %v", got, want)
		}
	}
	if checked == 0 {
		t.Error("no row of trial 1")
	}
}

// A second by place is one of a window, so that a redacted export has them too: each is where the car's redacted
// track has been.
func TestWhatWasMeasuredByPlaceIsThere(t *testing.T) {
	a, _ := exported(t)
	dir := t.TempDir()
	if _, err := Run(a, dir, Options{Redact: true}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "places.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) < 10 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	column := func(line []string, name string) float64 {
		v, err := strconv.ParseFloat(line[slices.Index(lines[0], name)], 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range rowsOf(t, filepath.Join(dir, fileOf("fm_gps"))) {
		if lon, is := row["lon_deg"]; is {
			low, high = min(low, lon.Double()), max(high, lon.Double())
		}
	}
	for _, line := range lines[1:] {
		if lon := column(line, "lon_deg"); !(low <= lon && lon <= high) || !(column(line, "throughput_bps") > 0) {
			t.Errorf("%v: longitude not within %v to %v, or no throughput", line, low, high)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "places.gpx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(text, new(struct{})); err != nil {
		t.Errorf("places.gpx: %v", err)
	}
	if points := strings.Count(string(text), "<trkpt "); points != len(lines)-1 {
		t.Errorf("places.gpx has %d points, places.csv %d lines of seconds", points, len(lines)-1)
	}
}

func TestTracksAreGPXAndGeoJSON(t *testing.T) {
	_, dir := exported(t)
	raw, err := os.ReadFile(filepath.Join(dir, "tracks.gpx"))
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		XMLName xml.Name `xml:"http://www.topografix.com/GPX/1/1 gpx"`
		Tracks  []struct {
			Name   string `xml:"name"`
			Points []struct {
				Lat   float64 `xml:"lat,attr"`
				Lon   float64 `xml:"lon,attr"`
				Speed float64 `xml:"extensions>speed_mps"`
			} `xml:"trkseg>trkpt"`
		} `xml:"trk"`
	}
	if err := xml.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	var j struct {
		Features []struct {
			Properties properties
			Geometry   lineString
		}
	}
	raw, err = os.ReadFile(filepath.Join(dir, "tracks.geojson"))
	if err == nil {
		err = json.Unmarshal(raw, &j)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Tracks) != 4 || len(j.Features) != 4 { // 2 trials, 2 nodes
		t.Fatalf("%d tracks as GPX, %d as GeoJSON, want 4", len(g.Tracks), len(j.Features))
	}
	for i, track := range g.Tracks {
		f := j.Features[i]
		if len(track.Points) != len(f.Geometry.Coordinates) || len(f.Properties.TimesUTC) != len(track.Points) {
			t.Fatalf("%s: %d points, %d coordinates, %d times", track.Name, len(track.Points),
				len(f.Geometry.Coordinates), len(f.Properties.TimesUTC))
		}
		for k, p := range track.Points {
			at := f.Geometry.Coordinates[k]
			if p.Lon != at[0] || p.Lat != at[1] || f.Properties.SpeedMps[k] == nil ||
				p.Speed != *f.Properties.SpeedMps[k] {
				t.Fatalf("%s, point %d: %+v beside %v", track.Name, k, p, at)
			}
		}
	}
}

// A boot's clock says nothing of another boot: after a boot, or with another spool, a node has another track. A
// record that comes late begins none.
func TestABootHasATrackOfItsOwn(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	var records [][]byte
	fix := func(epoch string, seq uint64, s float64, lat float64) {
		at := int64(s * 1e9)
		line, err := wire.Record{Header: wire.Header{Kind: "gps", Version: wire.SchemaVersion, Node: "car",
			Epoch: epoch, Seq: seq, TBootNs: at, Run: a.Info().Run}, Body: &wire.GPS{Mode: 3, FixBootNs: &at,
			LatDeg: &lat, LonDeg: new(10.0)}}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, line)
	}
	for i := range 4 { // up for 100 s, and as long again after a boot
		fix("0000000000000001", uint64(10+i), 100+float64(i), 50)
	}
	for i := range 3 {
		fix("0000000000000001", uint64(20+i), 100.5+float64(i), 50.5)
	}
	fix("0000000000000002", 1, 110, 51) // a spool of its own, of a part of a run on another machine
	fix("0000000000000002", 3, 112, 51)
	fix("0000000000000002", 2, 111, 51)
	if err := a.Append("car", records); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := eachTrack(lines{a: a}, archive.Attempt{}, func(of track) error {
		text := of.Node
		for _, f := range of.fixes {
			text += fmt.Sprintf(" %g:%g", float64(*f.FixBootNs)/1e9, *f.LatDeg)
		}
		got = append(got, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"car 100:50 101:50 102:50 103:50", "car 100.5:50.5 101.5:50.5 102.5:50.5",
		"car 110:51 111:51 112:51"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheDescriptionNamesEveryFileAndColumn(t *testing.T) {
	_, dir := exported(t)
	raw, err := os.ReadFile(filepath.Join(dir, crateFile))
	if err != nil {
		t.Fatal(err)
	}
	var crate struct {
		Graph []map[string]any `json:"@graph"`
	}
	if err := json.Unmarshal(raw, &crate); err != nil {
		t.Fatal(err)
	}
	described := map[string]any{}
	for _, e := range crate.Graph {
		if e["@type"] == "File" {
			described[e["@id"].(string)] = e["sha256"]
		}
	}
	dictionary, err := os.ReadFile(filepath.Join(dir, "data-dictionary.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || e.IsDir() || rel == crateFile {
			return err
		}
		files++
		if _, sum, err := measure(path); err != nil || described[filepath.ToSlash(rel)] != sum {
			t.Errorf("%s is described with %v, has %s (%v)", rel, described[rel], sum, err)
		}
		if strings.HasSuffix(rel, ".parquet") && rel != "results.parquet" &&
			!strings.Contains(string(dictionary), "\n## "+rel+"\n") {
			t.Errorf("the dictionary lacks %s", rel)
		}
		return nil
	})
	if err != nil || files != len(described) {
		t.Errorf("%d files, %d described: %v", files, len(described), err)
	}
	for _, m := range influx.Schema() {
		for _, c := range m.Columns() {
			if c.Meaning == "" {
				t.Errorf("column %s of %s has no meaning", c.Name, m.Name)
			}
		}
	}
}

// What RO-Crate 1.2 and Process Run Crate 0.5 ask of a crate is in it, and every attempt
// is an action that ended as it was judged.
func TestTheCrateSaysWhatWasRun(t *testing.T) {
	const licence = "https://creativecommons.org/licenses/by/4.0/"
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8, 8.3}, Repetitions: 2,
		Mishap: func(trial wire.Trial, attempt int, c *synthetic.Conditions) {
			if trial.Number == 1 && attempt == 1 {
				c.SpeedOffsetMps = 5
			}
		}})
	for _, o := range []Options{{}, {License: licence}, {License: licence, Redact: true}} {
		dir := t.TempDir()
		if _, err := Run(a, dir, o); err != nil {
			t.Fatal(err)
		}
		byID := map[string]map[string]any{}
		var crate struct {
			Graph []map[string]any `json:"@graph"`
		}
		raw, err := os.ReadFile(filepath.Join(dir, crateFile))
		if err = errors.Join(err, json.Unmarshal(raw, &crate)); err != nil {
			t.Fatal(err)
		}
		for _, e := range crate.Graph {
			byID[e["@id"].(string)] = e
		}
		of := func(e map[string]any, key string) map[string]any {
			one, _ := e[key].(map[string]any)
			id, _ := one["@id"].(string)
			return byID[id]
		}
		root := byID["./"]
		if of(root, "license") == nil || o.License != "" && of(root, "license")["@id"] != licence ||
			!strings.Contains(fmt.Sprint(of(root, "conformsTo")["@type"]), "Profile") {
			t.Errorf("%+v: licence %v, profile %v", o, root["license"], root["conformsTo"])
		}
		failed := 0
		for _, v := range a.Decisions() {
			e := byID[fmt.Sprintf("#trial-%d-attempt-%d", v.Trial, v.Attempt)]
			end, err := time.Parse(time.RFC3339, fmt.Sprint(e["endTime"]))
			if of(e, "instrument")["@type"] != "SoftwareApplication" || err != nil || end.Before(a.Info().CreatedWall.
				Truncate(time.Second)) || !strings.Contains(fmt.Sprint(root["mentions"]), fmt.Sprint(e["@id"])) {
				t.Errorf("%+v: %v", o, e)
			}
			if v.Outcome == wire.Accepted {
				if e["actionStatus"] != "http://schema.org/CompletedActionStatus" || e["error"] != nil {
					t.Errorf("accepted: %v", e)
				}
				continue
			}
			failed++
			reason := v.Reason.String()
			if o.Redact {
				reason = "speed" // the code without the text
			}
			if e["actionStatus"] != "http://schema.org/FailedActionStatus" || e["error"] != reason {
				t.Errorf("%+v, %s: %v", o, v.Outcome, e)
			}
		}
		if failed == 0 {
			t.Error("no attempt failed")
		}
	}
	if _, err := Run(a, t.TempDir(), Options{License: "CC-BY"}); err == nil {
		t.Error("a licence without an address is taken")
	}
}

func TestCapturesCannotBeRedacted(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	if _, err := Run(a, t.TempDir(), Options{Redact: true, Captures: true}); err == nil ||
		!strings.Contains(err.Error(), "export them apart") {
		t.Error(err)
	}
}

//attack:archive whoever is given a redacted export looks for bystanders
//attack:archive whoever is given a redacted export looks for where somebody lives or was
func TestRedactedIsWithoutBystandersAndHomes(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	const stranger = "de:ad:be:ef:00:01"
	path := filepath.Join(a.Dir(), "trials/0001-a1/records/car.ndjson")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, more := range []string{"DE:AD:BE:EF:00:01", stranger} {
		raw = fmt.Appendf(raw, `{"kind":"station","version":1,"node":"car","epoch":"e","seq":%d,"t_boot_ns":1,"run":"r","trial":1,"attempt":1,"peer":%q}`+"\n", 90000+i, more)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if a, err = archive.Read(a.Dir()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "export")
	if _, err := Run(a, dir, Options{Redact: true}); err != nil {
		t.Fatal(err)
	}
	records, err := os.ReadFile(filepath.Join(dir, "records.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToLower(string(records)), stranger) {
		t.Error("a stranger's address is still there")
	}
	peers := map[string]int{}
	for _, row := range rowsOf(t, filepath.Join(dir, fileOf("fm_station"))) {
		peers[row["peer"].String()]++
	}
	named := 0
	for p, n := range peers {
		if strings.HasPrefix(p, "radio-") {
			named += n
		}
	}
	if named != 2 || len(peers) < 2 {
		t.Errorf("peers %v: one stranger, twice, and the run's own are wanted", peers)
	}
	var inside, outside, placed int
	opened, err := windows(a, wire.TrialKey{Trial: 1, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rowsOf(t, filepath.Join(dir, fileOf("fm_gps"))) {
		w, ok := opened[row["node"].String()]
		if !ok || row["trial"].Int64() != 1 {
			continue
		}
		at := row["t_boot_ns"].Int64()
		_, has := row["lat_deg"]
		switch measured := at >= w.OpenBootNs && at <= w.CloseBootNs; {
		case measured && has:
			inside++
		case has:
			placed++
		case !measured:
			outside++ // it says when there was a fix, and how old it is
		}
	}
	if inside < 20 || outside+placed > 0 {
		t.Errorf("positions: %d in the window, %d records outside without, %d with", inside, outside, placed)
	}
}

// The reason of an attempt is dropped but for its code. One that is a text alone has none: no file has anything of it.
//
//attack:archive whoever is given a redacted export looks for what people and programs wrote of an attempt | of its
//attack:and reason only the code is exported
func TestRedactedHasNoTextOfAReason(t *testing.T) {
	const secret = "anna"
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 2})
	reasons := []wire.Reason{
		wire.ParseReason("cannot open /home/" + secret + "/x of DE:AD:BE:EF:00:01"),
		wire.ParseReason("open /home/" + secret + "/x: permission denied"),
		wire.ParseReason("node_failed: on car: /home/" + secret + "/x is gone"),
	}
	for i, reason := range reasons {
		v := wire.Verdict{TrialKey: wire.TrialKey{Trial: i + 1, Attempt: 2}, Outcome: wire.Failed, Reason: reason,
			Final: true}
		if err := a.Decide(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, redact := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "export")
		if _, err := Run(a, dir, Options{Redact: redact}); err != nil {
			t.Fatal(err)
		}
		holding := map[string]bool{}
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			raw, err := os.ReadFile(path)
			if bytes.Contains(raw, []byte(secret)) {
				holding[e.Name()] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if redact && len(holding) > 0 {
			t.Errorf("the redacted export has a reason's text in %v", slices.Sorted(maps.Keys(holding)))
		}
		if !redact && !holding[crateFile] {
			t.Errorf("the export as it is has the reasons' texts in %v only", slices.Sorted(maps.Keys(holding)))
		}
		raw, err := os.ReadFile(filepath.Join(dir, crateFile))
		if err != nil || !bytes.Contains(raw, []byte("node_failed")) {
			t.Errorf("redacted %t: the code of a reason is not in the description (%v)", redact, err)
		}
		if redact && bytes.Contains(raw, []byte(`"error": ""`)) {
			t.Error("a reason without a code is an empty error")
		}
	}
}

// trials.csv says which attempts are results, so that no recipe need know why.
func TestTrialsSayWhatCounts(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 3, Enough: 2,
		Change: func(x *wire.Trial) {
			if x.Number == 1 {
				x.Pass = "calibration"
			}
		},
		Mishap: func(x wire.Trial, attempt int, c *synthetic.Conditions) {
			if x.Number == 2 && attempt == 1 {
				c.InterruptedNode = "car"
			}
		}})
	var b bytes.Buffer
	if err := writeTrials(&b, a, false); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) int { return slices.Index(lines[0], name) }
	counts := 0
	for _, l := range lines[1:] {
		x, v := l[column("block")], l[column("counts")]
		want := "1"
		if x == "3" || l[column("pass")] != "" || l[column("outcome")] != "accepted" {
			want = "0"
		}
		if v != want {
			t.Errorf("counts is %q in %q", v, l)
		}
		if v == "1" {
			counts++
		}
	}
	if counts != 3 || len(lines) != 8 {
		t.Errorf("%d of %d attempts count", counts, len(lines)-1)
	}
}

// results.csv has a row for each accepted attempt, with the numbers of metrics.csv, and
// the data dictionary has each of its columns.
func TestResultsAreOneRowAnAttempt(t *testing.T) {
	a, dir := exported(t)
	lines := csvOf(t, filepath.Join(dir, "results.csv"))
	dictionary, err := os.ReadFile(filepath.Join(dir, "data-dictionary.md"))
	if err != nil {
		t.Fatal(err)
	}
	head := lines[0]
	for _, name := range []string{"timelines.csv", "places.csv", "trials.csv"} {
		_, section, _ := strings.Cut(string(dictionary), "\n## "+name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, column := range csvOf(t, filepath.Join(dir, name))[0] {
			if a.Info().Plan.Trials[0].Factors[column] != "" {
				continue // of the factor's name
			}
			if !strings.Contains(section, "\n| `"+column+"` | ") {
				t.Errorf("the dictionary lacks column %q of %s", column, name)
			}
		}
	}
	for i, name := range head {
		if slices.Contains(head[:i], name) || !strings.Contains(string(dictionary), "\n| `"+name+"` | ") {
			t.Errorf("column %q is there twice, or not in the dictionary", name)
		}
	}
	if accepted := len(a.Decisions()); len(lines) != 1+accepted || accepted == 0 {
		t.Fatalf("%d rows of %d accepted attempts", len(lines)-1, accepted)
	}
	for _, line := range lines[1:] {
		cell := func(name string) string {
			if at := slices.Index(head, name); at >= 0 {
				return line[at]
			}
			return "no column " + name
		}
		trial, err := strconv.Atoi(cell("trial"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := metrics.Of(a, wire.TrialKey{Trial: trial, Attempt: 1})
		if err != nil {
			t.Fatal(err)
		}
		planned, _ := a.Trial(trial)
		_, mbps := metrics.Measured(planned, rows)
		speed := metrics.Value(rows, "", metrics.SpeedMeanMps)
		if mbps == nil || cell("throughput_mbps") != metrics.Number(*mbps) || speed == nil ||
			cell("speed_mean_mps") != metrics.Number(*speed) || cell("sender") != planned.Sender ||
			cell("counts") != "1" {
			t.Errorf("trial %d: %v", trial, line)
		}
		for name, level := range planned.Factors {
			if got := cell("factor_" + name); got != level {
				t.Errorf("trial %d: factor %s is %q, want %q", trial, name, got, level)
			}
		}
	}
}

// A flow's number and one of the whole attempt have columns of their own, whatever
// the flow is called.
func TestADelayHasColumnsOfItsOwn(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1,
		Change: synthetic.AddDelay})
	dir := filepath.Join(t.TempDir(), "export")
	if _, err := Run(a, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	lines := csvOf(t, filepath.Join(dir, "results.csv"))
	want := map[string]string{"delay.delay_round_trip_p50_ms": "6.4", "delay.delay_round_trip_p99_ms": "6.4",
		"delay.datagrams_sent": "500", "delay.datagrams_lost_percent": "2"}
	for i, name := range lines[0] {
		if value, is := want[name]; is && lines[1][i] == value {
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("results.csv lacks %v:\n%v", want, lines)
	}
	if rows := rowsOf(t, filepath.Join(dir, "records", "delay.parquet")); len(rows) != 2*(500+490) {
		t.Errorf("records/delay.parquet has %d rows", len(rows))
	}
}

func TestAFlowsNumbersAreItsOwn(t *testing.T) {
	a, _ := exported(t)
	trial, _ := a.Trial(1)
	verdict := a.Decisions()[0]
	r := &resultsTable{}
	r.add(a, trial, archive.Attempt{TrialKey: verdict.TrialKey, Verdict: &verdict}, []metrics.Row{
		{Flow: "cbr", Name: "delivery_fraction", Value: 0.5}, {Name: "cbr_delivery_fraction", Value: 0.75}})
	if row := r.rows[0]; row["cbr.delivery_fraction"].Float != 0.5 || row["cbr_delivery_fraction"].Float != 0.75 {
		t.Errorf("of the flow %v, of all %v", row["cbr.delivery_fraction"], row["cbr_delivery_fraction"])
	}
}

// results.parquet has the cells of results.csv with their types; what is unknown is
// null.
func TestResultsAreTyped(t *testing.T) {
	_, dir := exported(t)
	lines := csvOf(t, filepath.Join(dir, "results.csv"))
	rows := rowsOf(t, filepath.Join(dir, "results.parquet"))
	if len(rows) != len(lines)-1 || len(rows) == 0 {
		t.Fatalf("%d rows, %d lines", len(rows), len(lines)-1)
	}
	for i, line := range lines[1:] {
		for j, name := range lines[0] {
			v := rows[i][name]
			got := v.String()
			switch {
			case v.IsNull():
				got = ""
			case v.Kind() == parquet.Double:
				got = metrics.Number(v.Double())
			case v.Kind() == parquet.Int64:
				got = strconv.FormatInt(v.Int64(), 10)
			}
			if got != line[j] {
				t.Errorf("row %d, %s: %q, results.csv has %q", i, name, got, line[j])
			}
		}
		if k := rows[i]["throughput_mbps"].Kind(); k != parquet.Double {
			t.Errorf("throughput is a %v", k)
		}
		if k := rows[i]["trial"].Kind(); k != parquet.Int64 {
			t.Errorf("trial is a %v", k)
		}
	}
}

// What results.csv has of an attempt's numbers is read back to the last digit.
func TestResultsAreReadBack(t *testing.T) {
	a, dir := exported(t)
	f, err := os.Open(filepath.Join(dir, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := ReadResults(f)
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, v := range a.Decisions() {
		rows, there := got[v.TrialKey]
		if there != (v.Outcome == wire.Accepted) {
			t.Errorf("trial %d attempt %d is %s; in the table: %v", v.Trial, v.Attempt, v.Outcome, there)
		}
		if !there {
			continue
		}
		accepted++
		want, err := metrics.Of(a, v.TrialKey)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(want) || len(want) == 0 {
			t.Errorf("trial %d attempt %d: %d numbers, want %d", v.Trial, v.Attempt, len(rows), len(want))
		}
		for _, w := range want {
			if v := metrics.Value(rows, w.Flow, w.Name); v == nil || *v != w.Value {
				t.Errorf("trial %d: %s %s is %v, want %v", w.Trial, w.Flow, w.Name, v, w.Value)
			}
		}
	}
	if accepted == 0 {
		t.Error("no attempt was accepted")
	}
	for _, bad := range []string{"", "a,b\n", "trial,attempt,duration_s,x\n1,1,10,word\n",
		"trial,attempt,duration_s\n1,a,10\n"} {
		if _, err := ReadResults(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken for a table of results", bad)
		}
	}
}

// csvOf reads a CSV file, its head included.
func csvOf(t *testing.T, path string) [][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
