package change

import (
	"fmt"
	"io"
	"os"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// TCPEvents has the kernel's tracepoints tell what some connections of this
// network namespace do about losses. Like a congestion control it hangs on a
// file descriptor of this process, and goes with it.
type TCPEvents struct {
	Flows []TracedFlow `json:"flows"`
}

// TracedFlow names a flow's data connections as this node's sockets show them.
type TracedFlow struct {
	Port       int  `json:"port"`             // of the server
	ClientPort int  `json:"client_port"`      // first of Streams consecutive ones
	Streams    int  `json:"streams"`          // connections
	Server     bool `json:"server,omitempty"` // this node is the server
}

func (TCPEvents) Target() string { return "tracepoints of tcp" }

func (e TCPEvents) String() string {
	n := 0 // counted, not listed: it words a refused number of connections, too
	for _, f := range e.Flows {
		n += f.Streams
	}
	return fmt.Sprintf("tracepoints of %d connections", n)
}

func (e TCPEvents) connections() []tcp.Ports {
	var out []tcp.Ports
	for _, f := range e.Flows {
		for i := range f.Streams {
			p := tcp.Ports{Local: uint16(f.ClientPort + i), Remote: uint16(f.Port)}
			if f.Server {
				p = tcp.Ports{Local: p.Remote, Remote: p.Local}
			}
			out = append(out, p)
		}
	}
	return out
}

func (e TCPEvents) check(Policy) (reason, cure string) {
	if len(e.Flows) == 0 || len(e.Flows) > wire.MaxFlows {
		return fmt.Sprintf("%d flows, 1 to %d can be followed", len(e.Flows), wire.MaxFlows), ""
	}
	for _, f := range e.Flows {
		switch {
		case f.Streams < 1 || f.Streams > wire.MaxStreams:
			return fmt.Sprintf("%d connections of a flow, 1 to %d can be followed", f.Streams, wire.MaxStreams), ""
		case f.Port < 1024 || f.Port > 65535 || f.ClientPort < 1024 || f.ClientPort > 65536-f.Streams:
			return "a port outside 1024 to 65535", ""
		}
	}
	return "", ""
}

// Ring gives the ring buffer of the events of what is followed; on no kernel
// nothing is.
func (k *Kernel) Ring() (*os.File, error) {
	if k != nil {
		if trace, is := k.loaded[TCPEvents{}.Target()].(*tcp.EventTrace); is {
			return trace.Ring()
		}
	}
	return nil, &Refused{Change: "events of TCP", Reason: "no connection is followed"}
}

func (e TCPEvents) prepare(*Kernel, uint64) (*loadedUndo, error) { return unloads(e), nil }

func (e TCPEvents) apply(k *Kernel, u *loadedUndo) error {
	return k.load(u, func() (io.Closer, error) { return tcp.TraceEvents(k.netns.Cookie, e.connections()) })
}
