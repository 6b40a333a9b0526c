//go:build e2e

package aodv_test

import (
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

func TestPropertiesMore(t *testing.T) { protocol.MoreProperties(t) }

// TestDissected has Wireshark's dissector read every kind of message that we
// send.
func TestDissected(t *testing.T) {
	tshark := simtest.NeedTshark(t)
	d := simtest.Dissect(t, tshark, capture(t))
	d.Kinds("aodv.type", "1", "2", "3", "4")
	// What the dissector reads is what was meant, in an RREQ and in a HELLO.
	first := d.Read("-Y", "aodv.type == 1", "-c", "40", "-T", "fields", "-e", "ip.src", "-e", "aodv.orig_ip", "-e",
		"aodv.dest_ip", "-e", "aodv.hopcount")
	if line, _, _ := strings.Cut(first, "\n"); line != "10.0.0.1\t10.0.0.1\t10.0.0.6\t0" {
		t.Errorf("the first RREQ is read as %q", line)
	}
	hello := d.Read("-Y", "aodv.type == 2 && ip.dst == 255.255.255.255", "-T", "fields", "-e", "aodv.lifetime")
	if line, _, _ := strings.Cut(hello, "\n"); line != "2000" {
		t.Errorf("a HELLO's lifetime is read as %q, want 2000", line)
	}
}

// capture simulates a chain one of whose links breaks under traffic.
func capture(t *testing.T) string {
	t.Helper()
	sim := simtest.Simulate(t, simulation.Config{Seed: 1, Nodes: 6, Feedback: true,
		Make: func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) {
			c := aodv.RFC3561(i, seed)
			c.AckRREPs, c.QuietStart = true, 0
			return aodv.New(c)
		}})
	sim.Chain()
	sim.Flow(0, 5, 512, 100*time.Millisecond, 2*time.Second, 30*time.Second)
	sim.At(10*time.Second, func() { sim.Cut(4, 5) })
	return simtest.Capture(t, sim, aodv.Port, 40*time.Second)
}
