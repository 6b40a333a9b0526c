//go:build e2e

package journeys

import (
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestSoakDashboards rehearses a campaign with captures and a routing protocol,
// so that every panel has something to show, puts the dashboards to every
// InfluxDB that is to be had, and draws them.
func TestSoakDashboards(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "builds InfluxDB 1.8.3 and installs Grafana's libraries")
	file := velocity(t, "drawn", "[2.8, 8.3, 13.9]", "  duration_s: 10\n",
		"  duration_s: 5\n  capture: {snap_bytes: 128}\n",
		"routing: {protocol: none}", "routing: {protocol: aodv}")
	run := rehearse(t, file).finish(t).Dir()
	dashboardsOf(t, run)
	t.Run("every dashboard is drawn", func(t *testing.T) { everyDashboardIsDrawn(t, run, testnet.NewInfluxd(t)) })
}
