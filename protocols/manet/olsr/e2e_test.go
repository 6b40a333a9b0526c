//go:build e2e

package olsr_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/olsr"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

func TestPropertiesMore(t *testing.T) { protocol.MoreProperties(t) }

// TestDissected has Wireshark's dissector read every kind of message that we
// send, plain and with olsrd's link qualities.
func TestDissected(t *testing.T) {
	tshark := simtest.NeedTshark(t)
	for name, test := range map[string]struct {
		make  func([]manet.Interface, uint64) olsr.Config
		kinds []string
	}{
		"rfc3626": {olsr.RFC3626, []string{"1", "2", "3", "4"}},
		"olsrd":   {olsr.Olsrd, []string{"201", "202", "3", "4"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := simtest.Dissect(t, tshark, capture(t, test.make))
			d.Kinds("olsr.message_type", test.kinds...)
			sizes(t, d)
		})
	}
}

// capture simulates a grid whose nodes have two interfaces and networks.
func capture(t *testing.T, config func([]manet.Interface, uint64) olsr.Config) string {
	t.Helper()
	sim := simtest.Simulate(t, simulation.Config{Seed: 1, Nodes: 9, Interfaces: 2,
		Make: func(node int, i []manet.Interface, seed uint64) (manet.Node, error) {
			c := config(i, seed)
			c.Networks = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(node), 0}), 24)}
			return olsr.New(c)
		}})
	sim.Grid(3)
	sim.SetLink(0, 1, 1, 0, 0)
	return simtest.Capture(t, sim, olsr.Port, time.Minute)
}

// sizes checks that the dissector read each packet to its end: the sum of its
// messages and the header is the packet's length.
func sizes(t *testing.T, d *simtest.Dissector) {
	t.Helper()
	out := d.Read("-T", "fields", "-E", "occurrence=a", "-E", "aggregator= ", "-e", "olsr.packet_len", "-e",
		"olsr.message_size")
	for i, line := range strings.Split(out, "\n") {
		length, messages, ok := strings.Cut(line, "\t")
		sum := 4
		for _, m := range strings.Fields(messages) {
			sum += number(t, m)
		}
		if !ok || sum != number(t, length) {
			t.Fatalf("frame %d: %q: messages of %d bytes with the header", i+1, line, sum)
		}
	}
}

func number(t *testing.T, s string) (n int) {
	t.Helper()
	for _, c := range strings.TrimSpace(s) {
		if c < '0' || c > '9' {
			t.Fatalf("%q is not a number", s)
		}
		n = 10*n + int(c-'0')
	}
	return n
}
