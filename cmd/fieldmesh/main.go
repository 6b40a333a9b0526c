// Command fieldmesh is the controller: it plans, runs, rehearses, archives and
// reports.
package main

import (
	"os"

	"fieldmesh.dev/fieldmesh/controller/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
