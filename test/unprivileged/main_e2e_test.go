//go:build e2e

package unprivileged

import (
	"os"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }
