package testnet

import (
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Late reports whether an attempt was not accepted because the machine was late or
// stood still, as one that others use is now and then: a node or an iperf3 did not run
// for a while, sockets were read or a client was started late, or the nodes' clocks
// were compared slowly. GO that nobody answered is not among them: a lost link does that.
func Late(r wire.Reason) bool {
	switch r.Code {
	case wire.ReasonStalled, wire.ReasonLateness:
		return true
	case wire.ReasonEdge:
		return strings.Contains(r.Text, " ms late, limit ") ||
			strings.Contains(r.Text, "nobody knows which of them are the window's") // the later, the more of them
	case wire.ReasonGenerator: // not one that somebody has stopped or ended
		return strings.Contains(r.Text, " ms within the window")
	case wire.ReasonClock:
		return strings.Contains(r.Text, "clock_error_ms_max is ")
	}
	return false
}
