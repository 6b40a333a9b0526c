package face

import (
	"context"
	"net"
	"net/netip"

	"fieldmesh.dev/fieldmesh/internal/dnssd"
)

// discovery has apps find the node when its address has changed. Without it the node is
// reached at the addresses that they know.
func (f *Face) discovery(ctx context.Context, at net.Addr) {
	if !f.cfg.Discovery {
		return
	}
	listens, err := netip.ParseAddrPort(at.String())
	if err == nil {
		err = dnssd.Service{Pin: f.pin, Port: listens.Port(), Quiet: f.quiet, Log: f.log,
			On: func(iface string, own []netip.Prefix) bool {
				return f.controlled(iface) && dnssd.Listens(listens.Addr(), own)
			}}.Run(ctx)
	}
	if err != nil {
		f.log.Warn("apps do not find this node when its address changes; `discovery: false` in the configuration "+
			"switches that off", "error", err)
	}
}

// controlled reports whether control may come over an interface. The one under test is none
// of these, unless the network that it is in stands already and the agent changes nothing of it.
func (f *Face) controlled(iface string) bool {
	if f.cfg.ControlInterface != "" {
		return iface == f.cfg.ControlInterface
	}
	return iface != f.cfg.Interface || f.cfg.Unprivileged()
}

// quiet reports whether what is said may be in what is measured: a run is under way, and no
// interface is known to be control's own, or its radio is the one under test.
func (f *Face) quiet() bool {
	own := f.cfg.ControlInterface
	return (own == "" || own == f.cfg.PhyOf) && f.engine.Busy()
}
