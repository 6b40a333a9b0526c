//go:build e2e

package routingd

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/node-agent/routing/manetd"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

// air joins nodes' interfaces wlan0 by a bridge that lets frames through only
// between those that are in each other's reach.
type air struct {
	bridge *testnet.NS
	nodes  []*testnet.NS
}

// newAir makes n nodes with the addresses 10.77.0.1 and so on.
func newAir(t *testing.T, n int, links ...[2]int) *air {
	t.Helper()
	testnet.Need(t, "ip", "nft")
	a := &air{bridge: testnet.NewNS(t, "air")}
	a.bridge.Run(t, "ip", "link", "add", "br0", "up", "type", "bridge", "mcast_snooping", "0", "forward_delay", "0")
	a.bridge.Run(t, "nft", "add table bridge air; add set bridge air reach { type ifname . ifname; }; "+
		"add chain bridge air f { type filter hook forward priority 0; policy drop; }; "+
		"add rule bridge air f iifname . oifname @reach accept")
	for i := range n {
		node := testnet.NewNS(t, "node")
		testnet.Veth(t, a.bridge, port(i), "", node, "wlan0", fmt.Sprintf("%s/24", addr(i)))
		a.bridge.Run(t, "ip", "link", "set", port(i), "master", "br0")
		a.nodes = append(a.nodes, node)
	}
	for _, l := range links {
		a.set(t, "add", l[0], l[1])
	}
	return a
}

// chain are the links of n nodes in a row.
func chain(n int) [][2]int {
	var out [][2]int
	for i := range n - 1 {
		out = append(out, [2]int{i, i + 1})
	}
	return out
}

func port(i int) string { return fmt.Sprintf("p%d", i) }
func addr(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

func (a *air) set(t *testing.T, verb string, i, k int) {
	t.Helper()
	a.bridge.Run(t, "nft", fmt.Sprintf("%s element bridge air reach { %s . %s, %s . %s }", verb, port(i), port(k),
		port(k), port(i)))
}

// cut takes two nodes out of each other's reach.
func (a *air) cut(t *testing.T, i, k int) { t.Helper(); a.set(t, "delete", i, k) }

// daemon is a routing daemon of ours that runs in a node.
type daemon struct {
	*testnet.Running
	socket string
}

// start runs a program in a node.
func start(t *testing.T, node *testnet.NS, name string, args ...string) *testnet.Running {
	t.Helper()
	return testnet.Start(t, node.Command(context.Background(), name, args...))
}

// route starts our routing daemon in a node and waits until it is ready.
func route(t *testing.T, node *testnet.NS, protocol string, more ...string) *daemon {
	t.Helper()
	dir := testnet.Folder(t)
	socket := filepath.Join(dir, "s")
	args := append([]string{"route", "--protocol", protocol, "--state-dir", filepath.Join(dir, "state"), "--socket",
		socket, "--fresh"}, more...)
	d := &daemon{start(t, node, filepath.Join(programs, "fieldmesh-agent"), args...), socket}
	testnet.Await(t, patience, "the daemon is ready", func() bool { _, err := d.state(); return err == nil })
	return d
}

// everywhere starts a protocol in all nodes.
func (a *air) everywhere(t *testing.T, protocol string, more ...string) []*daemon {
	t.Helper()
	var out []*daemon
	for _, n := range a.nodes {
		out = append(out, route(t, n, protocol, more...))
	}
	return out
}

func (d *daemon) state() (manetd.State, error) {
	var s manetd.State
	conn, err := net.Dial("unix", d.socket)
	if err != nil {
		return s, err
	}
	defer func() { _ = conn.Close() }() // only read from
	if _, err = fmt.Fprintln(conn, control.CommandState); err == nil {
		err = json.NewDecoder(conn).Decode(&s)
	}
	return s, err
}

// patience is far more than anything here takes on a busy machine.
const patience = 90 * time.Second

// hasRoute reports whether a node's kernel has a host route of a protocol
// number.
func hasRoute(t *testing.T, node *testnet.NS, to string, words ...string) bool {
	t.Helper()
	line := node.Run(t, "ip", "route", "show", to)
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return strings.TrimSpace(line) != ""
}
