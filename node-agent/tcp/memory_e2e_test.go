//go:build e2e

package tcp

import (
	"net"
	"net/netip"
	"testing"

	"github.com/mdlayher/genetlink"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// What a connection has taught the kernel of its peer is forgotten for the peers that are meant, and for nobody else.
func TestWhatWasLearnedOfPeersIsForgotten(t *testing.T) {
	testnet.Need(t)
	ns := testnet.NewNS(t, "snd")
	setSysctls(t, ns, map[string]string{"tcp_no_metrics_save": "0"})
	peers := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.1.0.2")}
	known := func(want ...netip.Addr) {
		t.Helper()
		c, err := genetlink.Dial(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		family, err := c.GetFamily(memoryFamily)
		if err != nil {
			t.Fatal(err)
		}
		for _, peer := range peers {
			got, err := remembered(c, family.ID, netip.PrefixFrom(peer, 32))
			wanted := 0
			for _, w := range want {
				if w == peer {
					wanted = 1
				}
			}
			if err != nil || len(got) != wanted {
				t.Errorf("of %s is known %v, %v; want %d", peer, got, err, wanted)
			}
		}
	}
	ns.Do(t, func() error {
		for _, peer := range peers {
			if err := exchange(peer); err != nil {
				return err
			}
		}
		known(peers...)
		if err := Forget(netip.MustParsePrefix("127.0.0.0/16")); err != nil {
			return err
		}
		known(peers[1])
		return Forget(netip.MustParsePrefix("10.0.0.0/8")) // of whom nothing is known
	})
}

// exchange has one connection to an address of this host, which both ends close.
func exchange(with netip.Addr) error {
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(with, 0)))
	if err != nil {
		return err
	}
	defer l.Close()
	client, err := net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		return err
	}
	server, err := l.AcceptTCP()
	if err != nil {
		return err
	}
	if _, err := client.Write([]byte("x")); err != nil {
		return err
	}
	if _, err := server.Read(make([]byte, 1)); err != nil {
		return err
	}
	if err := server.Close(); err != nil {
		return err
	}
	return client.Close()
}
