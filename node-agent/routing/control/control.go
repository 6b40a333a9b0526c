// Package control is what our routing daemons and those who start or ask them
// agree on: configuration, words and marks. It knows no protocol, so that who
// starts a daemon links none. The agent's privileged half does.
package control

import (
	"log/slog"
	"net/netip"
	"time"
)

// Config says what to run where.
type Config struct {
	Protocol  string // as a plan names it
	Interface string
	Socket    string // unix socket for state and notices
	SocketUID int    // who may read it beside root; 0: nobody
	Feedback  string // radio-feedback socket; empty: none
	// NoLinkFeedback has lost frames break nothing, whether the radio reports them or the kernel's neighbour table.
	NoLinkFeedback bool
	// HostUnreachable is whether a local sender hears of it where no route is found; nil: the protocol's own choice.
	HostUnreachable *bool
	Catch           netip.Prefix   // whose data is caught; zero: the network of the interface's address
	Fresh           bool           // nobody can remember an earlier life of this node
	Strict          bool           // no start where it is not told which routes data uses, and has to be
	Hello           *time.Duration // nil: the protocol's own
	Log             *slog.Logger   `json:"-"`
}

// The daemon's socket takes one line and answers in JSON lines: "state" gets
// its state, "follow" gets notices until either end closes.
const (
	CommandState  = "state"
	CommandFollow = "follow"
)

// SocketMode lets its owner ask the daemon, and root by its group: who has started it, and has given the socket away,
// may be root without CAP_DAC_OVERRIDE, as in the package's unit.
const SocketMode = 0o660

// RouteProtocol marks the daemon's routes in the kernel. It is none of
// rt_protos' and above RTPROT_STATIC, as rtnetlink.h asks of programs.
const RouteProtocol = 109

// Device is what the names of its TUN devices begin with; a number follows.
const Device = "fieldmesh"
