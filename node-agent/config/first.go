package config

import (
	_ "embed" // the file
	"fmt"
	"path/filepath"
	"strings"
)

// firstFile is the configuration that a new node begins with; the Debian package installs it.
//
//go:embed first.yaml
var firstFile string

// WithoutRoot returns what the configuration of a node without root has besides, which keeps its folders in dir.
func WithoutRoot(dir string) string {
	return fmt.Sprintf("\nprivileges: none      # it runs as whoever starts it, and changes nothing\nstate_dir: %q\n"+
		"keys_dir: %q\n", filepath.Join(dir, "state"), filepath.Join(dir, "keys"))
}

// First returns the text of a new node's agent.yaml, with its name and the interface under test.
func First(node, iface string) string {
	return strings.NewReplacer("node: node-1 ", "node: "+node+" ", "interface: wlan0 ", "interface: "+iface+" ").
		Replace(firstFile)
}
