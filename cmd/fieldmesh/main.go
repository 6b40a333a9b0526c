// Command fieldmesh is the controller: it plans, runs, rehearses, archives and
// reports.
package main

import (
	"os"

	"fieldmesh.dev/fieldmesh/controller/cmd"
	"fieldmesh.dev/fieldmesh/internal/android"
)

func main() {
	android.Adapt()
	os.Exit(cmd.Main(os.Args[1:]))
}
