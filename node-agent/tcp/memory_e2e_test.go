//go:build e2e

package tcp

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/genetlink"
	vnetlink "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

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
		for _, prefix := range []string{"127.0.0.0/16", "10.0.0.0/8"} { // of the second nothing is known
			if kept, err := Forget(netip.MustParsePrefix(prefix)); err != nil || len(kept) > 0 {
				return fmt.Errorf("of %s are kept %v (%v)", prefix, kept, err)
			}
		}
		known(peers[1])
		return nil
	})
}

// Root of a container may not have the kernel forget anything. A trial there begins with remembered round trips, but
// not with a remembered reordering, by which a connection would take a loss for none.
func TestWhatAContainerMayNotForget(t *testing.T) {
	const inside = "FIELDMESH_TEST_CONTAINER"
	if os.Getenv(inside) == "" {
		testnet.Need(t)
		c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), inside+"=1")
		root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, UidMappings: root,
			GidMappings: root}
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	lo, err := vnetlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := vnetlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	measured, reordered := netip.MustParsePrefix("127.0.0.2/32"), netip.MustParsePrefix("127.0.0.3/32")
	if err := exchange(measured.Addr()); err != nil {
		t.Fatal(err)
	}
	if kept, err := Forget(measured); err != nil || len(kept) != 1 || kept[0] != measured.Addr() {
		t.Errorf("of round trips are kept %v, %v", kept, err)
	}
	// A route's metrics are what the kernel begins with (tcpm_suck_dst in net/ipv4/tcp_metrics.c).
	dst := &net.IPNet{IP: reordered.Addr().AsSlice(), Mask: net.CIDRMask(32, 32)}
	if err := vnetlink.RouteAdd(&vnetlink.Route{Dst: dst, LinkIndex: lo.Attrs().Index, Type: unix.RTN_LOCAL,
		Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST, Reordering: 7}); err != nil {
		t.Fatal(err)
	}
	if err := exchange(reordered.Addr()); err != nil {
		t.Fatal(err)
	}
	if kept, err := Forget(reordered); err == nil || !strings.Contains(err.Error(), "ip tcp_metrics flush") {
		t.Errorf("with a reordering are kept %v, %v", kept, err)
	}
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
