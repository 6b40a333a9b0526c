//go:build e2e

package mesh

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/dsr"
)

// chain has all nodes in a row, 100 m apart.
func chain(node int, _ time.Duration) (xM, yM float64) { return 100 * float64(node), 0 }

// TestDSRChain: a chain of six carries TCP over five hops; the first packet of
// all is not lost to the search for a route, and a full segment fits with its
// source route.
func TestDSRChain(t *testing.T) {
	f := newField(t, 6, 11, chain)
	f.route(t, "dsr")
	f.datagram(t, 0, 5)
	got := f.iperf(t, 0, 5, 5)
	if hops := f.hops(t, 0, 5); hops != 5 {
		t.Errorf("the route is %d hops long, want 5: %+v", hops, f.state(t, 0))
	}
	// The MTU of 1500 less the room for the longest source route, and 40 bytes
	// for IP and TCP and 12 for timestamps (RFC 7323).
	if want := 1500 - dsr.Room(dsr.MaxHops) - 52; got.Start.MSS != want {
		t.Errorf("TCP's segments are of %d bytes, want %d", got.Start.MSS, want)
	}
	if got.End.Received.Bytes < 1<<16 {
		t.Errorf("only %d bytes arrived", got.End.Received.Bytes)
	}
	t.Logf("%.2f Mbit/s, %d retransmissions", got.End.Received.Bps/1e6, got.End.Sent.Retransmits)
	for i := range 6 {
		s := f.state(t, i)
		if i > 0 && i < 5 && s.Counters["forwarded"] == 0 {
			t.Errorf("node %d has forwarded nothing", i)
		}
		if s.Counters["malformed"]+s.Counters["hostile"]+s.Counters["too_big"] > 0 {
			t.Errorf("node %d: %v", i, s.Counters)
		}
	}
}
