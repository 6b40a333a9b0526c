//go:build e2e

package android

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs.
var programs string

// TestMain runs the tests, or is one of the programs that a phone has.
func TestMain(m *testing.M) {
	var err error
	switch filepath.Base(os.Args[0]) {
	case "su":
		err = su(os.Args[1:])
	case "magiskd":
		err = magiskd()
	case "ksud":
		_, err = lateStart()
	case "phoneapp":
		err = phoneApp(os.Args[1], os.Args[2])
	case "emulate":
		err = emulate(os.Args[1:])
	case "cmd", "dumpsys", "getprop":
		var status int
		if status, err = androidCommand(filepath.Base(os.Args[0]), os.Args[1:]); err == nil {
			os.Exit(status)
		}
	default:
		os.Exit(testnet.WithPrograms(m.Run, &programs))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
