//go:build e2e

package routingd

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Where no way is found, a local sender hears so, as it would of the kernel:
// of a protocol that makes kernel routes, and of one that carries data itself.
func TestAnUnreachableHostIsSaid(t *testing.T) {
	for _, protocol := range []string{"aodv", "dsr"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			a := newAir(t, 2, chain(2)...)
			a.everywhere(t, protocol)
			began := time.Now()
			var err error
			a.nodes[0].Do(t, func() error {
				var conn net.Conn
				if conn, err = net.DialTimeout("tcp4", "10.77.0.99:9", patience); err == nil {
					return conn.Close()
				}
				return nil
			})
			if !errors.Is(err, syscall.EHOSTUNREACH) {
				t.Errorf("the sender is told %v, want that there is no route to the host", err)
			}
			t.Logf("%s: told after %s", protocol, time.Since(began).Round(100*time.Millisecond))
		})
	}
}

// A daemon of a trial does not start where it could not tell which routes are in use; by hand it does, and says so.
// Another's table of its own's name stands for a kernel without nftables.
func TestRoutesInUseThatAreNotKnown(t *testing.T) {
	testnet.Need(t, "nft")
	a := newAir(t, 1)
	node := a.nodes[0]
	node.Run(t, "nft", "add table ip fieldmesh-route-wlan0")
	s, err := route(t, node, "aodv").state()
	if err != nil || s.RouteInUse {
		t.Fatalf("by hand: %+v, %v", s, err)
	}
	for _, c := range []struct {
		protocol string
		starts   bool
	}{{"adv", false}, {"olsr", true}} {
		t.Run(c.protocol, func(t *testing.T) {
			node := newAir(t, 1).nodes[0]
			node.Run(t, "nft", "add table ip fieldmesh-route-wlan0")
			for _, of := range []string{"all", "wlan0"} {
				node.Run(t, "sysctl", "-w", "net.ipv4.conf."+of+".rp_filter=0", "net.ipv4.conf."+of+".send_redirects=0")
			}
			node.Run(t, "sysctl", "-w", "net.ipv4.ip_forward=1")
			dir := testnet.Folder(t)
			socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "config")
			text, err := json.Marshal(control.Config{Protocol: c.protocol, Interface: "wlan0", Socket: socket,
				Fresh: true, Strict: true})
			if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
				t.Fatal(err)
			}
			if c.starts {
				agent := filepath.Join(programs, "fieldmesh-agent")
				d := &daemon{start(t, node, agent, "route", "--config", file), socket}
				testnet.Await(t, patience, "it is ready", func() bool { _, err := d.state(); return err == nil })
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			out, err := node.Command(ctx, filepath.Join(programs, "fieldmesh-agent"), "route", "--config",
				file).CombinedOutput()
			if err == nil || ctx.Err() != nil || !strings.Contains(string(out), "which routes data uses") {
				t.Errorf("%v, said %q", err, out)
			}
		})
	}
}

func TestWithoutRootItIsSaid(t *testing.T) {
	testnet.Need(t, "setpriv")
	a := newAir(t, 2, chain(2)...)
	before := testnet.Snapshot(t, a.nodes[0].Name)
	out, err := a.nodes[0].Command(t.Context(), "setpriv", "--reuid", "65534", "--clear-groups", "--",
		filepath.Join(programs, "fieldmesh-agent"),
		"route", "--protocol", "aodv", "--interface", "wlan0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "root") {
		t.Errorf("%v, said %q, want root in it", err, out)
	}
	asItWas(t, a.nodes[0], before)
}
