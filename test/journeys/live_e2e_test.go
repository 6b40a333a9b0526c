//go:build e2e

package journeys

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// Two viewers look at a rehearsal in Chromium; testdata/live.cjs says what they
// must see. FIELDMESH_PICTURES names a folder that gets pictures of it.
func TestTheLivePageFollowsARehearsal(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3", "node", "chromium")
	file := variant(t, "velocity.yaml", "watched", allSpeeds, "levels: [8.3]",
		"repetitions: 2", "repetitions: 12", "duration_s: 10", "duration_s: 6",
		// The browser takes what the emulated radio needs; that is judged elsewhere.
		"lateness_share_max: 0.01", "lateness_share_max: 1", patient[0], patient[1])
	run := rehearse(t, file)
	run.await(t, filepath.Join(run.runDir(), "run.json"))
	pictures := os.Getenv("FIELDMESH_PICTURES")
	if pictures == "" {
		pictures = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	watched := browser.Script(ctx, t, "testdata/live.cjs", filepath.Join(programs, "fieldmesh"), run.runs, run.name,
		freeAddress(t, "127.0.0.1"), freeAddress(t, "0.0.0.0"), pictures)
	if out, err := watched.CombinedOutput(); err != nil {
		t.Errorf("what the viewers see: %v\n%s", err, out)
	}
	// There are more trials than the viewers wait for: what is left is not needed.
	if run.Over() {
		t.Error("the rehearsal was over before the viewers were")
	}
	run.Stop(t, os.Interrupt)
	for _, want := range []string{"run watched in " + run.runDir() + ": 24 trials, ", " min left",
		"watch: fieldmesh live " + run.runDir(),
		"`fieldmesh rehearse --resume " + run.runDir() + "` continues the run"} {
		if !strings.Contains(run.Said(), want) {
			t.Errorf("the rehearsal does not say %q", want)
		}
	}
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
