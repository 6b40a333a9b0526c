//go:build e2e

package field

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// crowd is a field of n nodes without agents in a grid.
func crowd(t testing.TB, n int) Config {
	t.Helper()
	testnet.Need(t, "ip", "gpsd")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	c := Config{Dir: dir, AgentCommand: []string{"/bin/sleep", "600"}, Seed: 1, Run: "crowd",
		Field: Settings{Propagation: "disc", RangeM: 250, Mobility: &MobilityConfig{Model: "grid", Columns: 20,
			SpacingM: 200}}}
	for i := range n {
		c.Nodes = append(c.Nodes, Node{Name: fmt.Sprintf("n%03d", i), Bare: true,
			MeshAddress: fmt.Sprintf("10.77.1.%d/16", i+1)})
	}
	return c
}

// TestBenchFieldOfManyNodes prints what namespaces, TAP devices and medium of
// 50 and 200 nodes cost.
func TestBenchFieldOfManyNodes(t *testing.T) {
	if os.Getenv("FIELDMESH_BENCH") == "" {
		t.Skip("a bench: FIELDMESH_BENCH is not set")
	}
	for _, n := range []int{50, 200} {
		memory, began := testnet.ResidentMB(t), time.Now()
		f, err := Create(t.Context(), crowd(t, n))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Place(t.Context(), wire.Trial{Course: wire.Course{Kind: "none"}}, 1); err != nil {
			t.Error(err)
		}
		setUp := time.Since(began)
		before := testnet.CPUTime(t)
		time.Sleep(5 * time.Second)
		idle := float64(testnet.CPUTime(t)-before) / float64(5*time.Second)
		t.Logf("%d nodes: set-up %.2f s (goal for 200: ≤ 3 s), memory +%.0f MB, idle %.2f %% of a core (goal ≈ 0)",
			n, setUp.Seconds(), testnet.ResidentMB(t)-memory, 100*idle)
		began = time.Now()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("%d nodes: destroyed in %.2f s", n, time.Since(began).Seconds())
	}
}
