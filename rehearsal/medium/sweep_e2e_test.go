//go:build e2e

package medium

import (
	"math/rand/v2"
	"os"
	"testing"
)

// The random fields of the unit tests, more of them.
func TestManyRandomFields(t *testing.T) { checkRandomFields(t, 60, 1000) }

// The same with fresh seeds, for long; a failure prints its seed.
func TestSoakRandomFields(t *testing.T) {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skip("a soak test: make soak runs it (FIELDMESH_SOAK=1)")
	}
	from := rand.Uint64() >> 16
	t.Logf("seeds from %d", from)
	checkRandomFields(t, from, from+50_000)
}
