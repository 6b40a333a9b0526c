//go:build e2e

package journeys

import (
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The check at a desk as the guide has it: nobody drives, and the agent's own
// simulated track opens each window at its speed.
func TestTheDeskCheckRunsOnASimulatedTrack(t *testing.T) {
	const gpsd = "127.0.0.1:2948" // the desk's own gpsd has the usual port
	d := newDesk(t, "gpsd: "+gpsd+"\n")
	testnet.Start(t, d.nodes["alpha"].Command(t.Context(), filepath.Join(programs, "fieldmesh-agent"), "simulate-gps",
		"--listen", gpsd, "--speeds-mps", "2.8,11.1")).Says(t, "simulated GPS at "+gpsd)
	c := d.start(t, stationary(t, "simulated", "[2.8, 11.1]"))
	if err := c.run.Wait(t, 10*time.Minute); err != nil {
		t.Errorf("fieldmesh run: %v", err)
	}
	t.Logf("fieldmesh run:\n%s", c.run.Said())
	openRun(t, c.runDir()).everyTrialOnce(t)
}
