//go:build e2e

package meshes

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
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
	got := f.bulk(t, 0, 5, 256<<10)
	f.reaches(t, 0, 5, 5)
	// The MTU of 1500 less the room for the longest source route, and 40 bytes
	// for IP and TCP and 12 for timestamps (RFC 7323).
	if want := 1500 - dsr.Room(dsr.MaxHops) - 52; got.Start.MSS != want {
		t.Errorf("TCP's segments are of %d bytes, want %d", got.Start.MSS, want)
	}
	t.Logf("%.2f Mbit/s, %d retransmissions", got.End.Received.Bps/1e6, got.End.Sent.Retransmits)
	for i := range 6 {
		s := f.state(t, i)
		// What the kernel sends besides would be its refusals of protocol 48.
		if dests := s.TableSizes["requests"]; dests > 1 {
			t.Errorf("node %d has looked for %d destinations", i, dests)
		}
		if i > 0 && i < 5 && s.Counters["forwarded"] == 0 {
			t.Errorf("node %d has forwarded nothing", i)
		}
		if s.Counters["malformed"]+s.Counters["hostile"]+s.Counters["too_big"] > 0 {
			t.Errorf("node %d: %v", i, s.Counters)
		}
	}
}

func TestDSRDetour(t *testing.T) { detour(t, "dsr") }

// detour: the relay of two that was in use goes out of range; data goes over the
// other one.
func detour(t *testing.T, protocol string, args ...string) {
	t.Helper()
	var gone atomic.Int32 // the relay that is far away; 0 is none
	f := newField(t, 4, 11, func(node int, _ time.Duration) (xM, yM float64) {
		at := [][2]float64{{0, 0}, {100, 60}, {100, -60}, {200, 0}}[node]
		if node > 0 && int32(node) == gone.Load() {
			return 5000, 5000
		}
		return at[0], at[1]
	})
	f.route(t, protocol, args...)
	if protocol == "dsdv" {
		f.awaitHops(t, 0, 3, 2)
	}
	f.datagram(t, 0, 3)
	before := f.way(t, 0, 3)
	if before.Hops != 2 {
		t.Fatalf("the route is %+v, want one over a relay", before)
	}
	relay := before.NextHop.As4()[3] - 1
	gone.Store(int32(relay))
	probe := f.udp(t, 0, 3)
	wait(t, time.Minute, func() error {
		after := f.way(t, 0, 3)
		if !probe.send(t, time.Second) || after.Hops != 2 || after.NextHop == before.NextHop {
			return fmt.Errorf("with %v out of range the route is %+v", before.NextHop, after)
		}
		return nil
	})
	f.bulk(t, 0, 3, 64<<10)
}
