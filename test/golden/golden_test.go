package golden

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var update = flag.Bool("update", false, "write the metrics of today beside the archives")

// archives are the runs in testdata. Each is a zip with the metrics.csv of its
// day, and has a .csv beside it with today's.
var archives = []struct {
	name     string // of the files
	accepted int
	// redefined are the metrics whose values have changed since, each with the reason.
	redefined map[string]string
}{
	{
		// Rehearsed at commit a9955cc, the last before edge records: two nodes, one in
		// a car, AODV, a TCP flow and a UDP load beside it, captures at both ends.
		name: "first", accepted: 4,
		redefined: map[string]string{
			"clock_error_ms":            "a comparison of clocks grows less sure with its age",
			"tx_retries":                "counted between the samples nearest to the edges, or absent",
			"truth_packet_loss_percent": "given where records of losses have the payload: of data packets only",
			"tx_failed":                 "counted between the samples nearest to the edges, or absent",
		},
	},
}

// sameResult compares an attempt's result by itself with that among all its numbers.
func sameResult(t *testing.T, a *archive.Archive, v wire.Verdict) {
	t.Helper()
	rows, err := metrics.Of(a, v.TrialKey)
	if err != nil {
		t.Fatal(err)
	}
	trial, _ := a.Trial(v.Trial)
	_, want := metrics.Measured(trial, rows)
	if _, got, err := metrics.Result(a, v.TrialKey); err != nil || got == nil || want == nil || *got != *want {
		t.Errorf("trial %d: %v Mbit/s by itself, %v among all: %v", v.Trial, got, want, err)
	}
}

// gone are metrics that an old archive gives no longer: they are counted where
// the application stands, and its captures began behind the routing daemon.
const gone = "one_way_delay_ round_trip_ packets_ packet_loss_percent delivery_fraction goodput_ratio " +
	"cbr_ connect_time_ms handshake_ms"

func TestRunsOfEarlierCommitsAreReadable(t *testing.T) {
	for _, a := range archives {
		t.Run(a.name, func(t *testing.T) {
			dir := unpack(t, filepath.Join("testdata", a.name+".zip"))
			then := table(t, filepath.Join(dir, "metrics.csv"))
			for _, args := range [][]string{{"verify"}, {"metrics"}, {"report"}, {"export"}} {
				typed(t, append(args, dir)...)
			}
			read, err := archive.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			accepted := 0
			for _, v := range read.Decisions() {
				if v.Outcome != "accepted" {
					continue
				}
				accepted++
				sameResult(t, read, v)
			}
			if accepted != a.accepted {
				t.Errorf("%d attempts are accepted, want %d", accepted, a.accepted)
			}
			now := filepath.Join("testdata", a.name+".csv")
			computed := metricsOf(t, dir)
			if *update {
				if err := os.WriteFile(now, computed, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(now); err != nil || !bytes.Equal(computed, want) {
				t.Errorf("the metrics are not those of %s (%v); if they should change, say why and run with -update",
					now, err)
			}
			compare(t, then, table(t, filepath.Join(dir, "metrics.csv")), a.redefined)
		})
	}
}

// compare holds today's values to those of the archive's day.
func compare(t *testing.T, then, now map[string]string, redefined map[string]string) {
	t.Helper()
	used, kept := map[string]bool{}, 0
	for key, was := range then {
		name := key[strings.LastIndexByte(key, ' ')+1:]
		is, there := now[key]
		switch _, known := redefined[name]; {
		case is == was:
			kept++
		case known:
			used[name] = true
		case !there && slices.ContainsFunc(strings.Fields(gone), func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		}):
		default:
			t.Errorf("%s was %s and is %q", key, was, is)
		}
	}
	for name := range redefined {
		if !used[name] {
			t.Errorf("%s is said to be redefined, and has its old values", name)
		}
	}
	if kept < len(then)/3 {
		t.Errorf("only %d of %d values are as they were", kept, len(then))
	}
}

// metricsOf is the run's table without the definitions, whose words may change.
func metricsOf(t *testing.T, dir string) []byte {
	t.Helper()
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := metrics.Table(a)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		rows[i].Definition = ""
	}
	var out bytes.Buffer
	if err := metrics.WriteCSV(&out, rows); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// table reads a metrics.csv: "trial attempt flow name" to value and unit.
func table(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s: %v, %d rows", path, err, len(rows))
	}
	column := func(name string) int { return slices.Index(rows[0], name) }
	out := map[string]string{}
	for _, row := range rows[1:] {
		key := strings.Join([]string{row[column("trial")], row[column("attempt")], row[column("flow")],
			row[column("name")]}, " ")
		out[key] = row[column("value")] + " " + row[column("unit")]
	}
	return out
}

// typed runs a command of fieldmesh.
func typed(t *testing.T, args ...string) {
	t.Helper()
	root := cmd.Root()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		t.Fatalf("fieldmesh %v: %v\n%s", args, err, &out)
	}
}

// unpack makes the run's folder.
func unpack(t *testing.T, path string) string {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, r); err != nil {
		t.Fatal(err)
	}
	return dir
}
