//go:build e2e

package manetd

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Without a radio that reports, the kernel's own asking reports a neighbour that
// has gone: one that is there is found and stays, one that is cut off fails.
func TestE2EProbingFindsWhoIsGone(t *testing.T) {
	testnet.Need(t, "ip")
	here, there := testnet.NewNS(t, "here"), testnet.NewNS(t, "there")
	testnet.Veth(t, here, "wlan0", "10.77.0.1/24", there, "wlan0", "10.77.0.2/24")
	peer := netip.MustParseAddr("10.77.0.2")
	ctx, cancel := context.WithCancel(t.Context())
	resolved, failed, ended := make(chan netip.Addr, 16), make(chan netip.Addr, 16), make(chan error, 1)
	var n *neighbors
	here.Do(t, func() error {
		link, err := netlink.LinkByName("wlan0")
		if err != nil {
			return err
		}
		n = newNeighbors(link.Attrs().Index)
		return nil
	})
	go here.Do(t, func() error { // its socket is the namespace's; the watch ends with ctx
		ended <- n.watch(ctx, func(a netip.Addr) { resolved <- a }, func(a netip.Addr) { failed <- a })
		return nil
	})
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("watch: %v", err)
		}
	}()
	probe := func() { t.Helper(); here.Do(t, func() error { return n.probe(peer) }) }
	await := func(what string, c <-chan netip.Addr) {
		t.Helper()
		select {
		case a := <-c:
			if a != peer {
				t.Errorf("%s: told about %s, want %s", what, a, peer)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: nothing is told within a minute", what)
		}
	}
	probe() // of one that is not known: it is looked for
	await("a neighbour that answers", resolved)
	probe()
	there.Run(t, "ip", "link", "set", "wlan0", "down") // here the carrier goes; what is known stays
	there.Run(t, "ip", "addr", "del", "10.77.0.2/24", "dev", "wlan0")
	there.Run(t, "ip", "link", "set", "wlan0", "up") // frames get through, and nobody answers
	probe()
	await("a neighbour that has gone", failed)
	if _, known := n.mac(peer); !known {
		t.Error("its hardware address is forgotten: it may come back")
	}
}
