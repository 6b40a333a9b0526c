package testnet

import (
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Late reports whether an attempt failed because the machine was late or stood
// still, as one that others use is now and then.
func Late(r wire.Reason) bool {
	return r.Code == wire.ReasonStalled || r.Code == wire.ReasonEdge && (strings.Contains(r.Text, " ms late, limit ") ||
		Burst(r))
}

// Burst reports whether an attempt failed because too much came between a node's
// samples around an edge: the later it was, the more.
func Burst(r wire.Reason) bool {
	return r.Code == wire.ReasonEdge && strings.Contains(r.Text, "nobody knows which of them are the window's")
}
