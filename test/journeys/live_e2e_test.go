//go:build e2e

package journeys

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// Two viewers look at a rehearsal in Chromium; testdata/live.cjs says what they
// must see. FIELDMESH_PICTURES names a folder that gets pictures of it.
func TestTheLivePageFollowsARehearsal(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3", "node", "chromium")
	dir := testnet.Folder(t)
	file := variant(t, "velocity.yaml", "watched", "levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: [8.3]",
		"repetitions: 2", "repetitions: 12", "duration_s: 10", "duration_s: 6",
		// The browser takes what the emulated radio needs; that is judged elsewhere.
		"lateness_share_max: 0.01", "lateness_share_max: 1")
	runs := filepath.Join(dir, "runs")
	run := begin(t, "fieldmesh", "rehearse", file, "--runs", runs, "--name", "watched", "--field-dir",
		filepath.Join(dir, "fields"))
	testnet.Await(t, time.Minute, "the run has an archive", func() bool {
		if run.over() {
			t.Fatalf("the rehearsal ended: %s", run.said())
		}
		_, err := os.Stat(filepath.Join(runs, "watched", "run.json"))
		return err == nil
	})
	pictures := os.Getenv("FIELDMESH_PICTURES")
	if pictures == "" {
		pictures = dir
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	watched := browser.Script(ctx, t, "testdata/live.cjs", filepath.Join(programs, "fieldmesh"), runs, "watched",
		freeAddress(t, "127.0.0.1"), freeAddress(t, "0.0.0.0"), pictures)
	if out, err := watched.CombinedOutput(); err != nil {
		t.Errorf("what the viewers see: %v\n%s", err, out)
	}
	// There are more trials than the viewers wait for: what is left is not needed.
	if run.over() {
		t.Errorf("the rehearsal was over before the viewers were:\n%s", run.said())
	}
	run.stop(t, time.Minute)
}

// freeAddress is a port that nobody listens on now.
func freeAddress(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}
