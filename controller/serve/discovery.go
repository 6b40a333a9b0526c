package serve

import (
	"context"
	"net"
	"net/netip"

	"fieldmesh.dev/fieldmesh/internal/dnssd"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
)

// discover has phones find the server, which listens there, when its address has changed.
// Without it they reach it at the address that they know.
func (s *Server) discover(ctx context.Context, at net.Addr) {
	listens, err := netip.ParseAddrPort(at.String())
	if err == nil {
		err = dnssd.Service{Pin: s.identity.Pin, Port: listens.Port(), Quiet: s.board.driving, Log: s.log,
			On: func(_ string, own []netip.Prefix) bool { return dnssd.Listens(listens.Addr(), own) }}.Run(ctx)
	}
	if err != nil {
		s.log.Warn("phones do not find this server when its address changes; --discovery=false switches that off",
			"error", err)
	}
}

// driving reports whether any run is driven, or that cannot be told: what is said may then be in
// what is measured, as it is not known which networks the nodes share with this machine.
func (b *board) driving() bool {
	all, err := b.candidates()
	if err != nil {
		return true
	}
	for _, c := range all[:min(len(all), campaigns.MostRuns)] {
		rec, err := readRecord(b.dir, c.name)
		if err != nil {
			continue // board says so where it is shown
		}
		if driven, err := b.driven(c.name, rec); driven || err != nil {
			return true
		}
	}
	return false
}
