package change

import (
	"fmt"
	"io"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// WindowClamp bounds the windows of this network namespace's connections with
// peers in a prefix (tcp.ClampWindow). It hangs on a file descriptor too.
type WindowClamp struct {
	Peers    netip.Prefix `json:"peers"`
	Segments int          `json:"segments"`
}

func (WindowClamp) Target() string { return "window clamp" }

func (w WindowClamp) String() string {
	return fmt.Sprintf("window of %d segments for peers in %s", w.Segments, w.Peers)
}

func (w WindowClamp) check(p Policy) (reason, cure string) {
	if w.Segments < 1 || w.Segments > wire.MaxWindowPackets {
		return fmt.Sprintf("a window of %d segments is outside 1 to %d", w.Segments, wire.MaxWindowPackets), ""
	}
	return p.checkPeers(w.Peers)
}

func (w WindowClamp) prepare(*Kernel, uint64) (*loadedUndo, error) { return unloads(w), nil }

func (w WindowClamp) apply(k *Kernel, u *loadedUndo) error {
	return k.load(u, func() (io.Closer, error) {
		return tcp.ClampWindow(tcp.Clamp{Of: tcp.Of{Cookie: k.netns.Cookie, Peers: w.Peers}, Segments: w.Segments})
	})
}
