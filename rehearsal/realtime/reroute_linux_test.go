package realtime

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A loss for lack of a route becomes a route change's once the node that lost
// it, or the one where the flow begins, has another route there; for what is
// lost right after, that is told at once.
func TestALossBecomesARouteChanges(t *testing.T) {
	live, hosts, expect := listener(t)
	// lose has node 0 send to a node that is not there.
	lose := func(seq byte) {
		if _, err := unix.Write(hosts[0], segment(0, 77, seq)); err != nil {
			t.Fatal(err)
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

// No kernel's route changes where DSR carries data: another source route of the flow's own node is the change.
func TestALossOverDSRBecomesARouteChanges(t *testing.T) {
	_, hosts, expect := listener(t)
	// lose has node 0 send to a node that is not there, by a source route over one node.
	lose := func(seq, over byte) {
		frame := segment(0, 77, seq)
		packet, err := dsr.Encapsulate(frame[14:], []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, over})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(hosts[0], append(frame[:14:14], packet...)); err != nil {
			t.Fatal(err)
		}
	}
	lose(42, 7)
	expect("lost", "out_of_range")
	lose(43, 7)
	expect("lost on the same way", "out_of_range")
	expect("the way did not change", "")
	lose(44, 8)
	expect("the first, by another way", "route_change")
	expect("the second", "route_change")
	expect("lost on the new way", "out_of_range")
	expect("which is right after", "route_change")
}

// listener is a channel of three nodes whose losses are told. expect compares what node 0 is told next of the
// flow of segment with what it should be: nothing, or a cause.
func listener(t *testing.T) (live *Channel, hosts []int, expect func(when, want string)) {
	t.Helper()
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
	const flow = "10.0.0.1:5201>10.0.0.2:40000/tcp "
	expect = func(when, want string) {
		t.Helper()
		if want != "" {
			want = flow + want
		}
		if got := told(); got != want {
			t.Errorf("%s: told %q, want %q", when, got, want)
		}
	}
	return live, hosts, expect
}
