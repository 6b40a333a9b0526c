//go:build e2e

package cuts

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs, open to every user: agents
// start their unprivileged half from there.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

func newSeed(t *testing.T) uint64 {
	t.Helper()
	return testnet.Seed(t, rand.Uint64(), "the choice of cuts")
}

// fieldmesh is a command of the controller's, not started.
func fieldmesh(args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(programs, "fieldmesh"), args...)
}

// must runs a command to its good end and returns what it printed.
func must(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}
