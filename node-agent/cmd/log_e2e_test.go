//go:build e2e

package cmd_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// What a log with no controller records is on disk, and every point of it in
// the database: one that was dated wrong or doubled would change the count.
func TestLogIntoInfluxDB(t *testing.T) {
	d := testnet.NewInfluxd(t)
	program := filepath.Join(t.TempDir(), "fieldmesh-agent")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/fieldmesh-agent").CombinedOutput(); err !=
		nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	dir := filepath.Join(t.TempDir(), "log")
	out, err := exec.Command(program, "log", "--node", "car", "--dir", dir, "--interface", "lo", "--gpsd",
		"127.0.0.1:9", "--for-s", "3",
		"--influx", d.URL, "--database", "field", "--user", testnet.InfluxAdmin, "--password-file",
		d.PasswordFile).CombinedOutput()
	if err != nil {
		t.Fatalf("log: %v\n%s", err, out)
	}
	counters := 0
	sp, err := spool.Open(dir, "car", spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sp.Close()
	lines, _, err := sp.Read(0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		var r wire.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.Body.(*wire.Interface); ok {
			counters++
		}
		if g, ok := r.Body.(*wire.GPS); ok && (g.Connected || g.SpeedMps != nil) {
			t.Errorf("gpsd is not there, and the record says %+v", g)
		}
	}
	if counters < 10 {
		t.Fatalf("%d samples of the interface in 3 s at 10 Hz:\n%s", counters, out)
	}
	rows := d.Query("field", `SELECT count("rx_bytes") FROM "fm_interface" WHERE time > now() - 1m AND time < now() + 1m`)
	if len(rows) != 1 || rows[0]["count"] != json.Number(strconv.Itoa(counters)) {
		t.Errorf("the spool has %d samples, the database answers %v", counters, rows)
	}
}
