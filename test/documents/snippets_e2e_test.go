//go:build e2e

package documents

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/dashboards"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// mishaps has a trial of each kind that a reader's numbers may trip over: one
// that was repeated for what failed, was rejected and was interrupted, one that
// was given up, one without a connection. What did not count measured much.
func mishaps(t wire.Trial, attempt int, c *synthetic.Conditions) {
	switch {
	case t.Number == 1 && attempt == 1:
		c.GPSGapFromS, c.GPSGapToS, c.MB = 3, 6, 90
	case t.Number == 2 && attempt == 1:
		c.FailedNode, c.MB = "roadside", 91
	case t.Number == 3 && attempt < 5:
		c.InterruptedNode, c.MB = "car", 92
	case t.Number == 4:
		c.SpeedOffsetMps, c.MB = 3, 93 // at every attempt
	case t.Number == 5 && attempt < 3:
		c.NoWindow, c.MB = "roadside", 94
	case t.Number == 6:
		c.NoConnection, c.MB = true, 0
	}
}

// crooked is the archive of such a run, with a calibration pass in it.
func crooked(t *testing.T) *archive.Archive {
	t.Helper()
	a := synthetic.Run(t, synthetic.Options{Seed: 17, Speeds: []float64{2.8, 8.3, 13.9}, Repetitions: 3,
		Mishap: mishaps,
		MB:     func(x wire.Trial, _ *rand.Rand) float64 { return 5 + float64(x.Number)/3 },
		Change: func(x *wire.Trial) {
			if x.Number == 7 {
				x.Pass, x.SpeedMps, x.Course.Kind, x.Course.MarkM = "calibration", nil, "parked", new(50.0)
			}
		}})
	outcomes := map[wire.Outcome]int{}
	for _, v := range a.Decisions() {
		outcomes[v.Outcome]++
	}
	if outcomes["accepted"] != 17 || outcomes["rejected"] != 4 || outcomes["failed"] != 3 || outcomes["interrupted"] !=
		4 {
		t.Fatalf("the run has %v", outcomes)
	}
	return a
}

// reported are what the report takes of an attempt: its MB, Mbit/s and speed.
type reported struct {
	trial              int
	cell               string
	mb, mbps, speedMps float64
}

// results are the report's, of the trials that answer the campaign's question.
func results(t *testing.T, a *archive.Archive) []reported {
	t.Helper()
	attempts, err := a.Trials()
	if err != nil {
		t.Fatal(err)
	}
	var out []reported
	for _, at := range attempts {
		s, err := report.Summarise(a, at)
		if err != nil {
			t.Fatal(err)
		}
		if s.Verdict.Outcome != "accepted" || s.Trial.Pass != "" {
			continue
		}
		cell := fmt.Sprintf("%s %g", s.Section, *s.Trial.SpeedMps)
		out = append(out, reported{trial: at.Trial, cell: cell, mb: *s.MB, mbps: *s.Mbps,
			speedMps: *metrics.Value(s.Rows, "", metrics.SpeedMeanMps)})
	}
	if len(out) != 16 {
		t.Fatalf("the report has %d results", len(out))
	}
	return out
}

// meansOf is the mean of something by cell.
func meansOf(all []reported, of func(reported) float64) map[string]float64 {
	sums, n := map[string]float64{}, map[string]float64{}
	for _, r := range all {
		sums[r.cell] += of(r)
		n[r.cell]++
	}
	for cell := range sums {
		sums[cell] /= n[cell]
	}
	return sums
}

// runPython runs a program of the tests' environment in a folder and decodes what
// it prints last.
func runPython(t *testing.T, dir, program string, into any) {
	t.Helper()
	interpreter, err := filepath.Abs("../../.tools/venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(interpreter, "-c", program)
	c.Dir, c.Env = dir, append(os.Environ(), "MPLBACKEND=Agg")
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, &said, program)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// same compares what a snippet gives by cell with the report's.
func same(t *testing.T, what string, got, want map[string]float64) {
	t.Helper()
	for _, cell := range slices.Sorted(maps.Keys(want)) {
		if v, there := got[cell]; !there || math.Abs(v-want[cell]) > 1e-6*math.Abs(want[cell]) {
			t.Errorf("%s, cell %s: %v, the report has %v", what, cell, v, want[cell])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: cells %v, the report has %v", what, got, want)
	}
}

// What a reader types off the pages gives the report's numbers, of a run in
// which trials were repeated, interrupted and given up.
func TestSnippetsGiveTheReportsNumbers(t *testing.T) {
	testnet.Need(t, "../../.tools/venv/bin/python", "influxd")
	a := crooked(t)
	all := results(t, a)
	dir := t.TempDir()
	if _, err := export.Run(a, filepath.Join(dir, "export"), export.Options{}); err != nil {
		t.Fatal(err)
	}
	want := meansOf(all, func(r reported) float64 { return r.mb })
	db := published(t, a)
	for i, s := range allSnippets(t) {
		if s.page == "duckdb.md" {
			continue // over several runs: TestQuestionsOverAllRunsAreAnswered
		}
		t.Run(fmt.Sprintf("%d %s of %s", i+1, s.language, s.page), func(t *testing.T) {
			var got map[string]float64
			switch s.language {
			case "pandas":
				got = byPandas(t, dir, s.text)
			case "duckdb":
				got = byDuckDB(t, dir, s.text)
			case "influxql":
				got = byInflux(t, db, strings.ReplaceAll(s.text, "RUN", a.Info().Run))
			}
			same(t, s.page, got, want)
		})
	}
	t.Run("the notebook", func(t *testing.T) { theNotebook(t, dir, all) })
	t.Run("the dashboards", func(t *testing.T) { theDashboards(t, db, a.Info().Run, all) })
}

// cells are the rows of an answer by section and target speed, which come first;
// the mean comes last.
func cells(t *testing.T, rows [][]any) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, r := range rows {
		cell := fmt.Sprintf("%v %v", r[0], r[1])
		if _, twice := out[cell]; twice {
			t.Errorf("cell %s comes twice", cell)
		}
		out[cell] = r[len(r)-1].(float64)
	}
	return out
}

// byPandas runs a snippet that leaves its answer, by section and target speed,
// in the variable means.
func byPandas(t *testing.T, dir, text string) map[string]float64 {
	t.Helper()
	var rows [][]any
	runPython(t, dir, text+"\nimport json\nprint(json.dumps([[*k, float(v)] for k, v in means.items()]))\n", &rows)
	return cells(t, rows)
}

// byDuckDB runs a query that gives section, target speed, how many trials, and
// the mean last.
func byDuckDB(t *testing.T, dir, text string) map[string]float64 {
	t.Helper()
	var rows [][]any
	runPython(t, dir, "import duckdb, json\nprint(json.dumps(duckdb.sql("+strconv.Quote(text)+").fetchall()))\n", &rows)
	return cells(t, rows)
}

// published is the run in a real InfluxDB.
func published(t *testing.T, a *archive.Archive) *testnet.Influxd {
	t.Helper()
	db := testnet.NewInfluxd(t)
	c := exec.Command(filepath.Join(programs, "fieldmesh"), "publish", a.Dir(), "--influx", db.URL, "--user",
		testnet.InfluxAdmin, "--password-file", db.PasswordFile)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("publish: %v\n%s", err, out)
	}
	return db
}

// byInflux puts a query for a mean by the tags section and speed to a real
// InfluxDB.
func byInflux(t *testing.T, db *testnet.Influxd, text string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, r := range db.Query("fieldmesh", text) {
		out[fmt.Sprintf("%v %v", r["section"], r["speed"])] = float(t, r["mean"])
	}
	return out
}

func float(t *testing.T, v any) float64 {
	t.Helper()
	n, is := v.(json.Number)
	if !is {
		t.Fatalf("%v is not a number", v)
	}
	f, err := n.Float64()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// theNotebook runs the code of the field guides' notebook, and compares every
// trial that it reports.
func theNotebook(t *testing.T, dir string, all []reported) {
	raw, err := os.ReadFile("../../field-guides/throughput.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	var notebook struct {
		Cells []struct {
			CellType string `json:"cell_type"`
			Source   []string
		}
	}
	if err := json.Unmarshal(raw, &notebook); err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	for _, c := range notebook.Cells {
		if c.CellType == "code" {
			program.WriteString(strings.Join(c.Source, "") + "\n")
		}
	}
	program.WriteString("import json\nprint(json.dumps([[int(k[0]), float(r.speed_mps), float(r.bulk)] for k, r in " +
		"result.iterrows()]))\n")
	var rows [][]float64
	runPython(t, dir, program.String(), &rows)
	if len(rows) != len(all) {
		t.Errorf("the notebook reports %d trials, the report of %d", len(rows), len(all))
	}
	for i, r := range all[:min(len(rows), len(all))] {
		if got := rows[i]; int(got[0]) != r.trial || math.Abs(got[1]-r.speedMps) > 1e-6 || math.Abs(got[2]-r.mbps) >
			1e-6*r.mbps {
			t.Errorf("the notebook has trial, m/s, Mbit/s %v; the report %d, %v, %v", got, r.trial, r.speedMps, r.mbps)
		}
	}
}

// theDashboards puts their questions for means to the database.
func theDashboards(t *testing.T, db *testnet.Influxd, run string, all []reported) {
	boards, err := dashboards.All()
	if err != nil {
		t.Fatal(err)
	}
	fill := dashboards.Macros(map[string]string{"run": run, "other": run}, "'2000-01-01T00:00:00Z'",
		"'2100-01-01T00:00:00Z'", "1s")
	asked := 0
	for _, d := range boards {
		for _, q := range d.Panels {
			if !strings.Contains(q.Text, `mean("throughput_bps")`) {
				continue
			}
			asked++
			bySection, bySpeed := strings.Contains(q.Text, `"section" GROUP BY`) ||
				strings.Contains(q.Text, `, "section"`), strings.Contains(q.Text, `"speed"`)
			key := func(section, speed string) string {
				out := ""
				if bySection {
					out += section
				}
				if bySpeed {
					out += " " + speed
				}
				return out
			}
			var regrouped []reported
			for _, r := range all {
				section, speed, _ := strings.Cut(r.cell, " ")
				r.cell = key(section, speed)
				regrouped = append(regrouped, r)
			}
			got := map[string]float64{}
			for _, r := range db.Query("fieldmesh", fill.Replace(q.Text)) {
				got[key(fmt.Sprint(r["section"]), fmt.Sprint(r["speed"]))] = float(t, r["throughput_bps"]) / 1e6
			}
			same(t, d.Name+", "+q.Name, got, meansOf(regrouped, func(r reported) float64 { return r.mbps }))
		}
	}
	if asked < 4 {
		t.Errorf("the dashboards ask for %d means", asked)
	}
}
