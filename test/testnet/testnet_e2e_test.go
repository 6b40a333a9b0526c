//go:build e2e

package testnet_test

import (
	"net"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

func TestSnapshotSeesEachKindOfChangeAndItsUndo(t *testing.T) {
	testnet.Need(t, "ip")
	a, b := testnet.NewNS(t, "a"), testnet.NewNS(t, "b")
	testnet.Veth(t, a, "eth0", "10.9.1.1/24", b, "eth0", "10.9.1.2/24")
	before := testnet.Snapshot(t, a.Name)
	if again := testnet.Snapshot(t, a.Name); again != before {
		t.Fatalf("two snapshots of one state differ:\n%s\n%s", before, again)
	}
	for _, c := range []struct{ name, do, undo string }{
		{"address", "ip addr add 10.9.2.1/24 dev eth0", "ip addr del 10.9.2.1/24 dev eth0"},
		{"route", "ip route add 10.8.0.0/16 via 10.9.1.2", "ip route del 10.8.0.0/16"},
		{"rule", "ip rule add from 10.9.9.9 table 77", "ip rule del from 10.9.9.9 table 77"},
		{"sysctl", "sysctl -q -w net.ipv4.tcp_congestion_control=reno", ""},
		{"link", "ip link set eth0 mtu 1400", "ip link set eth0 mtu 1500"},
		{"neighbour", "ip neigh add 10.9.1.9 lladdr 02:00:00:00:00:09 dev eth0", "ip neigh del 10.9.1.9 dev eth0"},
	} {
		was := testnet.Snapshot(t, a.Name)
		do := strings.Fields(c.do)
		a.Run(t, do[0], do[1:]...)
		if c.undo == "" {
			if c.name == "sysctl" && !strings.Contains(testnet.Snapshot(t, a.Name), "tcp_congestion_control = reno") {
				t.Error("sysctl: not in the snapshot")
			}
			continue
		}
		if testnet.Snapshot(t, a.Name) == was {
			t.Errorf("%s: the change does not show", c.name)
		}
		undo := strings.Fields(c.undo)
		a.Run(t, undo[0], undo[1:]...)
		if now := testnet.Snapshot(t, a.Name); now != was {
			t.Errorf("%s: after its undo the snapshot differs:\n%s\nwas\n%s", c.name, now, was)
		}
	}
}

func TestDoOpensSocketsInside(t *testing.T) {
	testnet.Need(t, "ip")
	a, b := testnet.NewNS(t, "a"), testnet.NewNS(t, "b")
	testnet.Veth(t, a, "eth0", "10.9.1.1/24", b, "eth0", "10.9.1.2/24")
	var l net.Listener
	a.Do(t, func() (err error) { l, err = net.Listen("tcp", "10.9.1.1:7000"); return err })
	defer l.Close()
	b.Do(t, func() error {
		c, err := net.Dial("tcp", "10.9.1.1:7000")
		if err != nil {
			return err
		}
		return c.Close()
	})
	if got := testnet.Namespaces(t, testnet.Prefix()); len(got) < 2 {
		t.Errorf("namespaces with the test's prefix: %v, want both", got)
	}
}
