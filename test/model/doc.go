// Package model has the protocol between controller and nodes as a model, in TLA+: lease,
// arming, GO, window, end, cuts, and the restarts of both. Protocol.tla says what it
// promises. TLC tries every behaviour of it within bounds (the tests with the tag e2e), and
// Check holds what a run really did against the same promises: the journals of its
// controller and its nodes, made up or read from an archive. It is for tests.
package model

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// protocol is the model.
//
//go:embed Protocol.tla
var protocol string

// none is the state of an attempt in which a node has not taken part.
const none wire.State = "none"

// step is a step of the state of an attempt on a node.
type step struct{ from, to wire.State }

// table reads a set of steps from the model.
func table(name string) (map[step]bool, error) {
	_, rest, found := strings.Cut(protocol, "\n"+name+" == {\n")
	body, _, ended := strings.Cut(rest, "\n}\n")
	if !found || !ended {
		return nil, fmt.Errorf("read the model: it has no set %s", name)
	}
	out := map[step]bool{}
	for line := range strings.Lines(body) {
		m := pair.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("read the model's %s: no step: %q", name, line)
		}
		out[step{wire.State(m[1]), wire.State(m[2])}] = true
	}
	return out, nil
}

var pair = regexp.MustCompile(`^  <<"(\w+)", "(\w+)">>,?\n?$`)
