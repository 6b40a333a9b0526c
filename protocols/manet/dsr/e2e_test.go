//go:build e2e

package dsr_test

import (
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

func TestPropertiesMore(t *testing.T) { protocol.MoreProperties(t) }

// TestDissected has Wireshark's dissector read every kind of option that we
// send, as IP protocol 48, control and data alike.
func TestDissected(t *testing.T) {
	tshark := simtest.NeedTshark(t)
	sim := simtest.Simulate(t, simulation.Config{Seed: 1, Nodes: 6, Carrier: true,
		Promiscuous: true,
		Make: func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) {
			c := dsr.RFC4728(i[0], seed)
			c.Maintenance = dsr.NetworkAcks
			return dsr.New(c)
		}})
	sim.Chain()
	sim.Connect(2, 4) // beside the chain, so that there is a way to salvage by
	sim.Flow(0, 5, 512, 100*time.Millisecond, 2*time.Second, 30*time.Second)
	sim.At(10*time.Second, func() { sim.Cut(2, 4) })
	sim.At(20*time.Second, func() { sim.Cut(4, 5) })
	d := simtest.Dissect(t, tshark, simtest.Capture(t, sim, 0, 30*time.Second))
	// Route Request, Reply and Error, Acknowledgement, Source Route,
	// Acknowledgement Request, Pad1 and PadN.
	d.Kinds("dsr.option.type", "1", "2", "3", "32", "96", "160", "224", "0")
	if other := d.Read("-Y", "!dsr", "-T", "fields", "-e", "frame.number"); other != "" {
		t.Errorf("frames that are not read as DSR: %s", other)
	}
	// What the dissector reads is what was meant.
	first := d.Read("-Y", "dsr.option.type == 1", "-T", "fields", "-e", "ip.proto", "-e", "ip.dst", "-e", "ip.ttl",
		"-e", "dsr.option.rreq.targetaddress")
	if line, _, _ := strings.Cut(first, "\n"); line != "48\t255.255.255.255\t1\t10.0.0.6" {
		t.Errorf("the first Route Request is read as %q", line)
	}
	routed := d.Read("-Y", "ip.src == 10.0.0.1 && dsr.nexthdr == 253", "-T", "fields", "-e",
		"dsr.option.srcrt.segsleft")
	if line, _, _ := strings.Cut(routed, "\n"); line != "3" {
		t.Errorf("a data packet over 10.0.0.2, .3 and .5 has %q segments left", line)
	}
}
