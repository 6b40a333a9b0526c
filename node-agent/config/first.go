package config

import (
	_ "embed" // the file
	"strings"
)

// firstFile is the configuration that a new node begins with; the Debian package installs it.
//
//go:embed first.yaml
var firstFile string

// First returns the text of a new node's agent.yaml, with its name and the interface under test.
func First(node, iface string) string {
	return strings.NewReplacer("node: node-1 ", "node: "+node+" ", "interface: wlan0 ", "interface: "+iface+" ").
		Replace(firstFile)
}
