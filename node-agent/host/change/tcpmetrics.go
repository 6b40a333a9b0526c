package change

import (
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
)

// TCPMetrics has the kernel forget what it learned of peers in a prefix by earlier
// connections (tcp.Forget). That is not put back: it is a cache, which the kernel
// fills and empties by itself.
type TCPMetrics struct {
	Peers netip.Prefix `json:"peers"`
}

func (m TCPMetrics) Target() string { return m.String() }

func (m TCPMetrics) String() string {
	return "nothing remembered of connections with peers in " + m.Peers.String()
}

func (m TCPMetrics) check(p Policy) (reason, cure string) {
	return p.checkWithin("prefix of peers", m.Peers)
}

func (TCPMetrics) prepare(*Kernel, uint64) (*tcpMetricsUndo, error) { return &tcpMetricsUndo{}, nil }

func (m TCPMetrics) apply(k *Kernel, _ *tcpMetricsUndo) error {
	kept, err := tcp.Forget(m.Peers)
	if len(kept) > 0 {
		k.log.Warn("the kernel goes on remembering round trips to peers, as only the machine's root may have it "+
			"forget them, and this agent runs in a container", "peers", kept)
	}
	return err
}

// tcpMetricsUndo takes nothing back.
type tcpMetricsUndo struct{ placed }

func (*tcpMetricsUndo) revert(*Kernel) (string, error) { return "", nil }
func (*tcpMetricsUndo) void(*Kernel) bool              { return false }
