package change

import (
	"io"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
)

// HeldRTO holds the retransmission timers of this network namespace's
// connections with peers in a prefix (tcp.HoldRTO). It hangs on a file
// descriptor too.
type HeldRTO struct {
	Peers     netip.Prefix `json:"peers"`
	Reference bool         `json:"reference,omitempty"` // as the reference TCP wants it, which must be loaded
}

func (HeldRTO) Target() string { return "held rto" }

func (h HeldRTO) String() string {
	if h.Reference {
		return "reference timer for peers in " + h.Peers.String()
	}
	return "fixed rto for peers in " + h.Peers.String()
}

func (h HeldRTO) check(p Policy) (reason, cure string) {
	return p.checkPeers(h.Peers)
}

func (h HeldRTO) prepare(k *Kernel, _ uint64) (*loadedUndo, error) {
	if h.Reference && k.reference() == nil {
		return nil, &Refused{Reason: "the reference TCP is not loaded"}
	}
	return unloads(h), nil
}

func (h HeldRTO) apply(k *Kernel, u *loadedUndo) error {
	return k.load(u, func() (io.Closer, error) {
		t := tcp.Timer{Of: tcp.Of{Cookie: k.netns.Cookie, Peers: h.Peers}}
		if h.Reference {
			t.Reference = k.reference()
		}
		return tcp.HoldRTO(t)
	})
}
