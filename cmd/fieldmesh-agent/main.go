// Command fieldmesh-agent is what runs on a node.
package main

import (
	"os"

	"fieldmesh.dev/fieldmesh/node-agent/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
