//go:build e2e

package meshes

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// contender is a protocol as these tests start it: with hellos a second apart
// where it has any, and without waiting to be forgotten.
type contender struct {
	name      string
	args      []string
	proactive bool // it makes its routes before there is data
}

// contenders are our six protocols, and babeld.
func contenders() []contender {
	return []contender{
		{"olsr", []string{"--fresh", "--hello", "1s"}, true},
		{"aodv", []string{"--fresh"}, false},
		{"aomdv", []string{"--fresh"}, false},
		{"dsdv", []string{"--hello", "1s"}, true},
		{"dsr", []string{"--fresh"}, false},
		{"adv", []string{"--hello", "1s"}, false},
		{"babeld", nil, true},
	}
}

func contenderOf(t *testing.T, name string) contender {
	t.Helper()
	for _, c := range contenders() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no protocol %q", name)
	return contender{}
}

// begin starts a protocol's daemons on all nodes.
func (f *field) begin(t *testing.T, c contender) {
	t.Helper()
	if c.name == "babeld" {
		f.babeld(t)
		return
	}
	f.route(t, c.name, c.args...)
}

// babeld starts it on all nodes; what it needs of a kernel is set as the agent
// sets it.
func (f *field) babeld(t *testing.T) {
	t.Helper()
	for i, ns := range f.spaces {
		ns.Run(t, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0",
			"net.ipv4.conf.wlan0.rp_filter=0", "net.ipv4.conf.all.send_redirects=0",
			"net.ipv4.conf.wlan0.send_redirects=0")
		ns.Run(t, "ip", "address", "add", fmt.Sprintf("fe80::%x/64", i+1), "dev", "wlan0", "nodad")
		dir := filepath.Join(f.dir, fmt.Sprintf("babeld%d", i))
		text := fmt.Sprintf("skip-kernel-setup true\nrandom-id true\nstate-file %q\ninterface wlan0 type wireless "+
			"hello-interval 1\n"+
			"redistribute local ip 10.9.0.0/24 allow\nredistribute local deny\n", dir+".state")
		if err := os.WriteFile(dir+".conf", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		testnet.Start(t, ns.Command(context.Background(), "babeld", "-I", "", "-c", dir+".conf"))
	}
}

// trace is a flow's path: by each node's kernel, or, where there are no kernel
// routes (DSR's are in its packets), no more than its length and first relay.
// The way is nil where there is none.
func (f *field) trace(t *testing.T, c contender, from, to int) (way []int, hops int) {
	t.Helper()
	if c.name == "dsr" {
		r := f.way(t, from, to)
		if r.Hops == 0 {
			return nil, 0
		}
		return []int{from, int(r.NextHop.As4()[3]) - 1}, r.Hops
	}
	way = []int{from}
	for at := from; at != to; {
		at = f.nextHop(t, at, to)
		if at < 0 || len(way) > len(f.spaces) {
			return nil, 0
		}
		way = append(way, at)
	}
	return way, len(way) - 1
}

// nextHop is the node that a node's kernel sends what is for another to, −1
// for none.
func (f *field) nextHop(t *testing.T, node, to int) int {
	t.Helper()
	next := -1
	f.spaces[node].Do(t, func() error {
		dst := &net.IPNet{IP: net.ParseIP(address(to)).To4(), Mask: net.CIDRMask(32, 32)}
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: dst}, netlink.RT_FILTER_DST)
		if err != nil {
			return err
		}
		for _, r := range routes {
			switch {
			case r.Type != unix.RTN_UNICAST:
			case r.Gw != nil:
				next = int(r.Gw.To4()[3]) - 1
			default:
				next = to
			}
		}
		return nil
	})
	return next
}

// awaitWay waits until a flow has a route of at least so many hops, both ways
// where the protocol makes routes before there is data, and packets pass.
func (f *field) awaitWay(t *testing.T, c contender, from, to, hopsLeast int) (way []int, hops int) {
	t.Helper()
	probe := f.udp(t, from, to)
	wait(t, 3*time.Minute, func() error {
		passed := probe.send(t, time.Second)
		way, hops = f.trace(t, c, from, to)
		if !passed || hops < hopsLeast {
			return fmt.Errorf("a packet passed: %v; the way is %v, %d hops, want at least %d", passed, way, hops,
				hopsLeast)
		}
		return nil
	})
	return way, hops
}

// awaitRoutes waits until both ends of a flow have a route to the other.
func (f *field) awaitRoutes(t *testing.T, c contender, from, to int) {
	t.Helper()
	wait(t, 3*time.Minute, func() error {
		there, _ := f.trace(t, c, from, to)
		back, _ := f.trace(t, c, to, from)
		if there == nil || back == nil {
			return fmt.Errorf("the way there is %v, back %v", there, back)
		}
		return nil
	})
}

// names is a way as a person reads it.
func names(way []int) string {
	var out []string
	for _, n := range way {
		out = append(out, fmt.Sprintf("n%d", n+1))
	}
	return strings.Join(out, " ")
}
