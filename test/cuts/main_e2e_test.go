//go:build e2e

package cuts

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs, open to every user: agents
// start their unprivileged half from there.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

// newSeed is FIELDMESH_SEED, or a random one. It is printed either way.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	seed := binary.LittleEndian.Uint64(b[:]) >> 1
	if text := os.Getenv("FIELDMESH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FIELDMESH_SEED: %v", err)
		}
	}
	t.Logf("seed %d (FIELDMESH_SEED=%[1]d repeats the choice of cuts)", seed)
	return seed
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
