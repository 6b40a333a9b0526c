package manetd

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// waitingFramer is one whose kernel looks for no neighbour. lost counts what it threw away.
func waitingFramer(now *manet.Time) (f *framer, lost *int) {
	lost = new(int)
	return &framer{neighbors: newNeighbors(math.MaxInt32), waiting: newWaiting(),
		now: func() manet.Time { return *now }, lost: func(packets int) { *lost += packets }}, lost
}

// A source route may name any address as the next hop. What waits for one that nobody has is bounded, whatever the
// kernel says or does not say of it.
//
//attack:air packets whose source route goes on to an address that nobody has, each to another | what waits for a
//attack:and neighbour's answer is bounded in number and in age
func TestNextHopsThatAreNotThereFillNothing(t *testing.T) {
	now := manet.Time(0)
	f, lost := waitingFramer(&now)
	d := &daemon{framer: f, peers: map[netip.Addr]bool{}}
	d.cfg.Feedback = "a radio that reports"
	const packets = 4 * waitingAll
	to := netip.MustParseAddr("10.77.1.0")
	packet := ip(self, far, 17)
	for range packets {
		to = to.Next()
		if (outbound{d}).Transmit(manet.Transmit{To: to, Packet: packet}) == nil {
			t.Fatal("the kernel has such an interface")
		}
	}
	if f.waiting.Len() != waitingAll || *lost != packets-waitingAll {
		t.Errorf("%d packets wait and %d are counted as lost, want %d and %d", f.waiting.Len(), *lost, waitingAll,
			packets-waitingAll)
	}
	if len(d.peers) != 0 {
		t.Errorf("%d next hops are kept that nobody will ask for", len(d.peers))
	}
	now += waitingFor + 1
	if left := f.take(to); len(left) != 0 || f.waiting.Len() != 0 || *lost != packets {
		t.Errorf("after their time %d wait for the last neighbour and %d in all; %d are counted", len(left),
			f.waiting.Len(), *lost)
	}
}

// What waits for one neighbour gives way one by one, the oldest first, and is counted. The kernel gives a neighbour up
// after 3 s: what waits is there still, to go back to the protocol.
func TestPacketsWaitForAHardwareAddress(t *testing.T) {
	now := manet.Time(0)
	f, lost := waitingFramer(&now)
	to := netip.MustParseAddr("10.77.0.2")
	for i := range byte(waitingMax + 3) {
		_ = f.transmit(manet.Transmit{To: to, Packet: ip(self, far, 17, i)})
	}
	now += 3500 * time.Millisecond
	left := f.take(to)
	if len(left) != waitingMax || *lost != 3 || left[0][20] != 3 {
		t.Errorf("%d wait, %d are lost; want %d and 3, the oldest", len(left), *lost, waitingMax)
	}
}
