//go:build e2e

package journeys

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// drawn is what shoot.cjs says of a dashboard.
type drawn struct {
	Name          string
	Panels, Drawn int
	Empty         []string
	Failed        int
	Wrong         []string
}

// mayBeBare are panels without data after a rehearsal that goes well and has no
// flow of kind delay, on a machine without a battery, over a radio that loses no
// frame for good.
var mayBeBare = map[string]bool{"Battery": true, "Temperature": true, "Frames lost": true, "Hops": true,
	"Routing packets": true, "Delay against speed": true, "Mean share of datagrams lost by speed and section": true,
	"Without a connection": true}

// everyDashboardIsDrawn draws the dashboards with Grafana's libraries over a
// real InfluxDB that holds the run. Half a gigabyte of packages is installed
// for it, so that only the long suites do it. The pictures stay in .tools.
func everyDashboardIsDrawn(t *testing.T, run string, db *testnet.Influxd) {
	t.Helper()
	testnet.Need(t, "npm", "node", "chromium")
	fieldmesh(t, "publish", run, "--influx", db.URL, "--user", testnet.InfluxAdmin, "--password-file", db.PasswordFile)
	from, to := runTimes(t, db)
	home := bundled(t)
	theMapHasEveryNode(t, home)
	pictures, err := filepath.Abs("../../.tools/dashboards")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(run)
	asked, err := json.Marshal(map[string]any{"run": name, "other": name, "from": milliseconds(t, from),
		"to": milliseconds(t, to) + 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := browser.Script(ctx, t, filepath.Join(home, "shoot.cjs"), pictures, string(asked))
	access := base64.StdEncoding.EncodeToString([]byte(testnet.InfluxAdmin + ":" + testnet.InfluxAdminPassword))
	cmd.Env = append(cmd.Env, "INFLUX_URL="+db.URL, "INFLUX_AUTH=Basic "+access)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("draw dashboards: %v\n%s%s", err, out, problem.String())
	}
	seen := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); seen++ {
		var d drawn
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		t.Logf("%s: %d panels, without data %v; %s", d.Name, d.Panels, d.Empty, filepath.Join(pictures, d.Name+".png"))
		if d.Drawn != d.Panels || d.Failed != 0 || len(d.Wrong) != 0 {
			t.Errorf("%s: %d of %d panels drawn, %d with an error: %v", d.Name, d.Drawn, d.Panels, d.Failed, d.Wrong)
		}
		for _, title := range d.Empty {
			if !mayBeBare[title] {
				t.Errorf("%s: panel %q has no data", d.Name, title)
			}
		}
	}
	if committed, err := filepath.Glob("../../dashboards/json/*.json"); err != nil || seen != len(committed) {
		t.Errorf("%d dashboards were drawn, %d are committed (%v)", seen, len(committed), err)
	}
}

// theMapHasEveryNode joins positions with throughputs as the map does: each node is drawn in
// each second, coloured by what the receivers got.
func theMapHasEveryNode(t *testing.T, home string) {
	t.Helper()
	cmd := exec.Command("node", "tracks.cjs")
	cmd.Dir = home
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("join the map's tables: %v\n%s", err, out)
	}
	var rows []struct {
		Node       string
		Time       int64
		Throughput *float64 `json:"throughput_bps"`
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		seen[fmt.Sprint(r.Node, r.Time)] = r.Throughput != nil
	}
	for _, want := range []string{"car1000", "car2000", "car3000", "roadside1000", "roadside2000", "roadside3000"} {
		if !seen[want] || len(rows) != 6 {
			t.Errorf("the map has %d positions, want 6; %s is among those with a throughput: %v", len(rows), want,
				seen[want])
		}
	}
}

// bundled copies what draws the dashboards, installs what it needs, and makes
// its page.
func bundled(t *testing.T) (folder string) {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"json", "render"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join("../../dashboards", part))); err != nil {
			t.Fatal(err)
		}
	}
	folder = filepath.Join(dir, "render")
	for _, args := range [][]string{{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps"},
		{"npm", "run", "bundle"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = folder
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		t.Logf("%v took %v", args, time.Since(began).Round(time.Second))
	}
	return folder
}

func milliseconds(t *testing.T, ns string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(ns, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("a time of InfluxDB: %w", err))
	}
	return n / 1e6
}
