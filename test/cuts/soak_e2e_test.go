//go:build e2e

package cuts

import (
	"os"
	"strconv"
	"testing"
)

// soakCuts is how many cuts the long form makes, half of them in each stage.
const soakCuts = 200

// TestSoakCuts is the long form. FIELDMESH_CUTS asks for another number.
func TestSoakCuts(t *testing.T) {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skipf("%d cuts take about a quarter of an hour: make soak, or set FIELDMESH_SOAK", soakCuts)
	}
	total := soakCuts
	if text := os.Getenv("FIELDMESH_CUTS"); text != "" {
		var err error
		if total, err = strconv.Atoi(text); err != nil {
			t.Fatalf("FIELDMESH_CUTS: %v", err)
		}
	}
	seed := newSeed(t)
	t.Run("rehearsal", func(t *testing.T) { rehearse(t, total-total/2, seed) })
	t.Run("road", func(t *testing.T) { drive(t, total/2, seed) })
}
