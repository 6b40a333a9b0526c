//go:build e2e

package journeys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/dashboards"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// mayBeEmpty are measurements, and fields of them, of which a rehearsal that
// goes well on a machine like this has no point: no warning, no time-out, no
// person's note, no battery, no datagrams at fixed times, no trial without a
// connection.
var mayBeEmpty = regexp.MustCompile(
	`FROM "(fm_event|fm_tcp_event|fm_note|fm_loss)"|"(battery_percent|temperature_c|alarm|datagrams_lost_percent|connect_censored_ms)"|'(rejected|failed|interrupted)'`)

// unrouted are those of a campaign without a routing protocol.
var unrouted = regexp.MustCompile(`FROM "(fm_route|fm_routing)"`)

// macro is one of Grafana's; a lone $ ends a regular expression.
var macro = regexp.MustCompile(`\$[A-Za-z_{]`)

// dashboardsOf puts the dashboards to every InfluxDB that is to be had, with a
// run's data in it.
func dashboardsOf(t *testing.T, run string) {
	t.Run("every dashboard answers, InfluxDB of the distribution", func(t *testing.T) {
		everyDashboardAnswers(t, run, testnet.NewInfluxd(t))
	})
	t.Run("every dashboard answers, InfluxDB 1.8.3", func(t *testing.T) {
		everyDashboardAnswers(t, run, testnet.NewInfluxdOf(t, testnet.Influxd18(t, "../.."), t.TempDir()))
	})
	t.Run("every dashboard answers, InfluxDB 2", func(t *testing.T) {
		everyDashboardAnswers(t, run, testnet.NewInfluxd2(t))
	})
}

// everyDashboardAnswers publishes a run to a real InfluxDB and puts every
// query of every dashboard to it, as Grafana would.
func everyDashboardAnswers(t *testing.T, run string, db *testnet.Influxd) {
	t.Helper()
	fieldmesh(t, "publish", run, "--influx", db.URL, "--user", testnet.InfluxAdmin, "--password-file", db.PasswordFile)
	from, to := runTimes(t, db)
	all, err := dashboards.All()
	if err != nil {
		t.Fatal(err)
	}
	routed := len(db.Query("fieldmesh", `SELECT "seq" FROM "fm_routing" LIMIT 1`)) > 0
	fill := dashboards.Macros(map[string]string{"run": filepath.Base(run), "other": filepath.Base(run)}, from, to, "1s")
	for _, d := range all {
		for _, q := range slices.Concat(d.Variables, d.Panels, d.Marks) {
			text := fill.Replace(q.Text)
			if macro.MatchString(text) {
				t.Errorf("%s, %s: a macro is left in %s", d.Name, q.Name, text)
			}
			began := time.Now()
			rows := db.Query("fieldmesh", text)
			t.Logf("%s, %s: %d rows in %v", d.Name, q.Name, len(rows), time.Since(began).Round(time.Millisecond))
			if len(rows) == 0 && !mayBeEmpty.MatchString(text) && (routed || !unrouted.MatchString(text)) {
				t.Errorf("%s, %s: nothing comes of %s", d.Name, q.Name, text)
			}
			columnsOf(t, d.Name+", "+q.Name, dashboards.Query{Text: text, Table: q.Table}, rows)
		}
	}
}

// runTimes are the first and the last step of the run's trials.
func runTimes(t *testing.T, db *testnet.Influxd) (from, to string) {
	t.Helper()
	times := db.Query("fieldmesh", `SELECT "state" FROM "fm_trial"`)
	if len(times) < 4 {
		t.Fatalf("the run has %d steps of trials", len(times))
	}
	var at []string
	for _, row := range times {
		at = append(at, fmt.Sprint(row["time"]))
	}
	slices.Sort(at) // nanoseconds since 1970 have as many digits in all of them
	return at[0], at[len(at)-1]
}

var (
	renamed  = regexp.MustCompile(`[^, ]+(?: [*+/] \d+)* AS "([^"]+)"`)
	selected = regexp.MustCompile(`"([^"]+)"`)
	grouped  = regexp.MustCompile(`GROUP BY ([^()]*)$`) // the outermost, where it is by tags only
)

// columnsOf checks that a table has the columns that its query names.
func columnsOf(t *testing.T, what string, q dashboards.Query, rows []map[string]any) {
	t.Helper()
	if len(rows) == 0 {
		return
	}
	if by := grouped.FindStringSubmatch(q.Text); by != nil {
		for _, tag := range selected.FindAllStringSubmatch(by[1], -1) {
			if _, ok := rows[0][tag[1]]; !ok {
				t.Errorf("%s: no tag %q with %v", what, tag[1], rows[0])
			}
		}
	}
	if !q.Table {
		return
	}
	head, _, _ := strings.Cut(q.Text, " FROM ")
	for _, n := range selected.FindAllStringSubmatch(renamed.ReplaceAllString(head, `"$1"`), -1) {
		if _, ok := rows[0][n[1]]; !ok {
			t.Errorf("%s: no column %q in %v", what, n[1], rows[0])
		}
	}
}

// What a panel draws of points that a rehearsal seldom has: sockets before their handshake, whose round-trip time is 0
// and none, and a relay that hears two peers at once.
func TestPanelsDrawWhatWasMeasured(t *testing.T) {
	db := testnet.NewInfluxd(t)
	w, err := influx.Open(influx.Target{URL: db.URL, Database: "fieldmesh", User: testnet.InfluxAdmin}, db.PasswordFile,
		slog.Default())
	if err == nil {
		err = w.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	refused, err := w.Write(t.Context(), []byte(
		`fm_tcp,run=r,trial=1,attempt=1,node=a,flow=bulk,stream=1 rtt_us=0i 1000000001
fm_tcp,run=r,trial=1,attempt=1,node=a,flow=bulk,stream=1 rtt_us=40000i 1000000002
fm_station,run=r,trial=1,attempt=1,node=relay,peer=a signal_dbm=-50,inactive_ms=10i 1000000001
fm_station,run=r,trial=1,attempt=1,node=relay,peer=b signal_dbm=-80,inactive_ms=10i 1000000001
`))
	if err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	all, err := dashboards.All()
	if err != nil {
		t.Fatal(err)
	}
	fill := dashboards.Macros(map[string]string{"run": "r", "other": "r"}, "1000000000", "1999999999", "1s")
	for panel, want := range map[string]string{"live/Round-trip time A": "[40000]", "live/Signal A": "[-50 -80]",
		"compare/Signal, $run A": "[-50 -80]", "compare/Signal, $other A": "[-50 -80]"} {
		name, title, _ := strings.Cut(panel, "/")
		var got []string
		for _, d := range all {
			at := slices.IndexFunc(d.Panels, func(q dashboards.Query) bool { return d.Name == name && q.Name == title })
			if at < 0 {
				continue
			}
			for _, row := range db.Query("fieldmesh", fill.Replace(d.Panels[at].Text)) {
				for _, column := range []string{"last", "mean"} {
					if n, is := row[column].(json.Number); is {
						got = append(got, n.String())
					}
				}
			}
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("%s draws %v, want %s", panel, got, want)
		}
	}
}

// TestTheDashboardsAreWhatTheirSourceMakes runs the generator again.
func TestTheDashboardsAreWhatTheirSourceMakes(t *testing.T) {
	testnet.Need(t, "npm", "node")
	dir := t.TempDir()
	const home = "../../dashboards"
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(home, "src"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		raw, err := os.ReadFile(filepath.Join(home, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"},
		{"node", "src/generate.mjs", "json"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	made, err := os.ReadDir(filepath.Join(dir, "json"))
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadDir(filepath.Join(home, "json"))
	if err != nil || len(made) != len(committed) {
		t.Fatalf("%d dashboards made, %d committed: %v", len(made), len(committed), err)
	}
	for _, e := range made {
		a, err := os.ReadFile(filepath.Join(dir, "json", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(home, "json", e.Name()))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("json/%s is not what src makes (%v): run `npm run generate` in dashboards", e.Name(), err)
		}
	}
}
