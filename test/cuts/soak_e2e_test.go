//go:build e2e

package cuts

import (
	"fmt"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// soakCuts is how many cuts the long form makes, half of them in each stage.
const soakCuts = 200

// TestSoakCuts is the long form. FIELDMESH_CUTS asks for another number.
func TestSoakCuts(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", fmt.Sprintf("%d cuts take about a quarter of an hour", soakCuts))
	total := int(testnet.Number(t, "FIELDMESH_CUTS", soakCuts))
	seed := newSeed(t)
	t.Run("rehearsal", func(t *testing.T) { rehearse(t, total-total/2, seed) })
	t.Run("road", func(t *testing.T) { drive(t, total/2, seed) })
}
