package realtime

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A loss for lack of a route becomes a route change's once the node that lost
// it, or the one where the flow begins, has another route there; for what is
// lost right after, that is told at once.
func TestALossBecomesARouteChanges(t *testing.T) {
	live, hosts, feeds := startWith(t, testConfig(phy.Standard80211g, 54, 3), true,
		Options{NoFIFO: true, FrameLost: true})
	next := testnet.Feedback(t, feeds[0].FeedbackSocket)
	for live.watchers.Load() != 1 {
		time.Sleep(time.Millisecond)
	}
	// told reads until the next loss; "" after surveys without one.
	told := func() string {
		for surveys := 0; surveys < 6; {
			line, ok := next()
			if !ok {
				return ""
			}
			if line.Survey != nil {
				surveys++
			}
			if l := line.FrameLost; l != nil {
				return l.Flow + " " + l.Cause
			}
		}
		return ""
	}
	// lose has node 0 send to a node that is not there.
	lose := func(seq byte) {
		if _, err := unix.Write(hosts[0], segment(0, 77, seq)); err != nil {
			t.Fatal(err)
		}
	}
	const flow = "10.0.0.1:5201>10.0.0.2:40000/tcp "
	expect := func(when, want string) {
		t.Helper()
		if want != "" {
			want = flow + want
		}
		if got := told(); got != want {
			t.Errorf("%s: told %q, want %q", when, got, want)
		}
	}
	lose(42)
	expect("lost", "out_of_range")
	live.Rerouted(0, netip.MustParsePrefix("10.0.1.0/24"))
	live.Rerouted(2, netip.MustParsePrefix("10.0.0.0/24"))
	expect("routes elsewhere, and another node's, change", "")
	live.Rerouted(0, netip.MustParsePrefix("10.0.0.2/32"))
	expect("its route changes", "route_change")
	lose(43)
	expect("lost right after", "out_of_range")
	expect("lost right after, once more", "route_change")
}
