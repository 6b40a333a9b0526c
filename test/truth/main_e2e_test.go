//go:build e2e

package truth

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs, open to every user: agents
// start their unprivileged half from there.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

// shortSeed has the short form meet the same faults at the same moments in every
// run; the long form draws a seed.
const shortSeed = 4242

// source draws the faults.
func source(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(testnet.Seed(t, seed, "the choice of faults"), 1))
}

// leastAttempts is how many attempts of the short form must say something.
const leastAttempts = 40

// A round is one rehearsal. In the first, every kind of fault meets an attempt
// once; in the second, those of a routing daemon do.
func TestAcceptedFiguresAreTrue(t *testing.T) {
	random := source(t, shortSeed)
	var all tally
	t.Run("none", func(t *testing.T) { all.add(rehearse(t, "none", 28, draw(random, kinds))) })
	t.Run("aodv", func(t *testing.T) { all.add(rehearse(t, "aodv", 4, draw(random, daemonKinds))) })
	if n := all.judge(t); n < leastAttempts {
		t.Errorf("%d attempts say something, want at least %d", n, leastAttempts)
	}
}

// soakAttempts is how many attempts the long form looks at.
const soakAttempts = 1000

// TestSoakAcceptedFiguresAreTrue is the long form. FIELDMESH_ATTEMPTS asks for
// another number.
func TestSoakAcceptedFiguresAreTrue(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", fmt.Sprintf("%d attempts take about two hours", soakAttempts))
	most := int(testnet.Number(t, "FIELDMESH_ATTEMPTS", soakAttempts))
	random := source(t, rand.Uint64())
	var all tally
	protocols := []string{"none", "aodv", "babeld"}
	for round := 0; len(all.attempts) < most && !t.Failed(); round++ {
		protocol, of := protocols[round%len(protocols)], kinds
		if protocol != "none" {
			of = append(of[:len(of):len(of)], daemonKinds...)
		}
		t.Run(strconv.Itoa(round)+"-"+protocol, func(t *testing.T) {
			all.add(rehearse(t, protocol, 30, draw(random, of)))
		})
	}
	all.judge(t)
}
