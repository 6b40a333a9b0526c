//go:build e2e

package bench

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/influx"
	"fieldmesh.dev/fieldmesh/dashboards"
	line "fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// wholeRun are the dashboards that are looked at with a campaign in range, and
// the width of a point that Grafana asks for there; the others show one trial.
var wholeRun = map[string]string{"campaign": "1m", "compare": "1m"}

// askedTimes is how often a query is put, for the median: influxd sorts what it has
// got behind the first ones.
const askedTimes = 3

// TestBenchQueriesOfAThousandTrials puts every query of every dashboard to the
// distribution's InfluxDB with a campaign of 1,000 trials in it.
func TestBenchQueriesOfAThousandTrials(t *testing.T) {
	begin(t)
	const repetitions = 84 // by six speeds and two sections: 1,008 trials
	db := testnet.NewInfluxd(t)
	dir := filepath.Join(testnet.Folder(t), "thousand")
	buildArchive(t, dir, synthetic.Options{Seed: 17, Repetitions: repetitions})
	w := &line.Writer{Target: line.Target{URL: db.URL, Database: "fieldmesh", User: testnet.InfluxAdmin,
		Password: testnet.InfluxAdminPassword}, Patience: time.Minute}
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	summary, err := influx.Publish(t.Context(), dir, w)
	if err != nil || summary.RefusedN > 0 {
		t.Fatalf("publish: %v, %+v", err, summary)
	}
	t.Logf("%d points", summary.Points)
	run := fmt.Sprint(db.Query("fieldmesh", `SHOW TAG VALUES WITH KEY = "run"`)[0]["value"])
	all, err := dashboards.All()
	if err != nil {
		t.Fatal(err)
	}
	slowest := map[bool]time.Duration{}
	name := map[bool]string{}
	for _, d := range all {
		step, whole := wholeRun[d.Name]
		from, to := timesOf(t, db, whole)
		chosen := map[string]string{"run": run, "other": run}
		if !whole {
			step, chosen["trial"] = "1s", strconv.Itoa(12*repetitions) // the last
		}
		fill := dashboards.Macros(chosen, from, to, step)
		for _, q := range slices.Concat(d.Variables, d.Panels, d.Marks) {
			var rows []map[string]any
			var tookS []float64
			for range askedTimes {
				begun := time.Now()
				rows = db.Query("fieldmesh", fill.Replace(q.Text))
				tookS = append(tookS, time.Since(begun).Seconds())
			}
			took := time.Duration(median(tookS) * float64(time.Second))
			t.Logf("%s, %s: %d rows in %v", d.Name, q.Name, len(rows), took.Round(time.Millisecond))
			if took > slowest[whole] {
				slowest[whole], name[whole] = took, d.Name+", "+q.Name
			}
		}
	}
	const note = "Every variable's, panel's and annotation's query, median of three, through HTTP, to Debian's " +
		"influxd with %d points of %d trials in it. For one trial that trial is chosen, as from a row of Campaign; " +
		"with all of them the slowest takes seconds."
	for _, whole := range []bool{false, true} {
		limit, what := 200*time.Millisecond, "queries of one trial"
		if whole {
			limit, what = 2*time.Second, "queries of 1,000 trials"
		}
		report(row{goal: what, measured: fmt.Sprintf("%v", slowest[whole].Round(time.Millisecond)),
			reference: "slowest: " + name[whole],
			figure:    fmt.Sprintf("%v", slowest[whole].Round(time.Millisecond)), limit: "≤ " + limit.String(),
			met: slowest[whole] <= limit},
			note, summary.Points, 12*repetitions)
	}
}

// timesOf is the range of the run's steps: of all of them, or of the last trial.
func timesOf(t *testing.T, db *testnet.Influxd, whole bool) (from, to string) {
	t.Helper()
	of := func(order string) int64 {
		rows := db.Query("fieldmesh", `SELECT "state" FROM "fm_trial" ORDER BY time `+order+` LIMIT 1`)
		ns, err := strconv.ParseInt(fmt.Sprint(rows[0]["time"]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
	begun, ended := of("ASC"), of("DESC")
	if !whole {
		begun = ended - (30 * time.Second).Nanoseconds()
	}
	return strconv.FormatInt(begun, 10), strconv.FormatInt(ended, 10)
}
