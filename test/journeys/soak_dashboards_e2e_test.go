//go:build e2e

package journeys

import (
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestSoakDashboards rehearses a campaign with captures and a routing protocol,
// so that every panel has something to show, puts the dashboards to every
// InfluxDB that is to be had, and draws them.
func TestSoakDashboards(t *testing.T) {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skip("make soak runs it (FIELDMESH_SOAK=1): it builds InfluxDB 1.8.3 and installs Grafana's libraries")
	}
	dir := testnet.Folder(t)
	file := variant(t, "velocity.yaml", "drawn", "levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]",
		"levels: [2.8, 8.3, 13.9]", "repetitions: 2", "repetitions: 1",
		"lateness_share_max: 0.01", "lateness_share_max: 1", "  duration_s: 10\n", "  duration_s: 5\n  capture: "+
			"{snap_bytes: 128}\n",
		"routing: {protocol: none}", "routing: {protocol: aodv}")
	fieldmesh(t, "rehearse", file, "--runs", filepath.Join(dir, "runs"), "--name", "drawn", "--field-dir",
		filepath.Join(dir, "fields"))
	run := filepath.Join(dir, "runs", "drawn")
	dashboardsOf(t, run)
	t.Run("every dashboard is drawn", func(t *testing.T) { everyDashboardIsDrawn(t, run, testnet.NewInfluxd(t)) })
}
