//go:build e2e

package android

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A phone that relays forwards, though netd has what is forwarded dropped, and drops
// it again afterwards.
func TestE2EAPhoneThatRelaysForwards(t *testing.T) {
	f := testnet.NewPair(t, "10.98.0", [2]string{"alpha", "bravo"})
	p, laptop := newPhone(t, f.Nodes["alpha"], magisk), f.Nodes["bravo"]
	before := p.filter(t)
	p.mustRoot(t, "cp", termux+"/bin/fieldmesh-agent", "/data/local/fieldmesh-agent")
	p.write(t, home+"/agent.yaml", fmt.Sprintf("node: alpha\ninterface: wlan0\nstate_dir: %s/state\nkeys_dir: "+
		"%[1]s/keys\nface_user: \"%d:%d\"\n", home, user, inet), 0o644)
	testnet.Start(t, p.command(nil, "/data/local/fieldmesh-agent", "host", "--config",
		home+"/agent.yaml")).Says(t, "host process is ready")
	client := host.Dial(p.path(home + "/state/host/host.sock"))
	own := netip.MustParsePrefix("10.77.0.1/24")
	changes := append(change.RouterSysctls("wlan0", true), change.Address{Interface: "wlan0", Prefix: own},
		change.Rule{Network: own.Masked()}, change.Forward{Interface: "wlan0"})
	if _, err := client.Apply(t.Context(), host.ScopeRun, changes); err != nil {
		t.Fatal(err)
	}
	laptop.Up(t, "wlan0", "10.77.0.2/24")
	laptop.Run(t, "ip", "route", "add", "10.77.0.3", "via", "10.77.0.1")
	// There is no 10.77.0.3: who forwards to it looks for it.
	testnet.Await(t, time.Minute, "the phone looks for whom it forwards to", func() bool {
		laptop.Do(t, func() error {
			conn, err := net.Dial("udp", "10.77.0.3:9")
			if err == nil {
				_, _ = conn.Write([]byte("x")) // an answer to the last one may come as an error
				err = conn.Close()
			}
			return err
		})
		return strings.Contains(p.ns.Run(t, "ip", "neigh", "show", "10.77.0.3"), "10.77.0.3")
	})
	if _, err := client.Restore(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if after := p.filter(t); after != before {
		t.Errorf("afterwards netd's filter is\n%s", testnet.Diff(before, after))
	}
}

// filter is the phone's table filter.
func (p phone) filter(t *testing.T) string { return p.must(t, nil, "/system/bin/iptables", "-S") }
