package cmd

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary be fieldmesh-agent when it is called so.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"fieldmesh-agent": func() { os.Exit(Main(os.Args[1:])) },
	})
}

// TestScript runs the sessions in testdata/script: what a user types and sees.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(name string) (bool, error) {
			return name == "root" && os.Geteuid() == 0, nil
		},
	})
}
