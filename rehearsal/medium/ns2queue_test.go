package medium

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

// Packets as ns-2's queue tells them apart.
var (
	aodvMessage = inIPv4(17, 2, 142, 2, 142, 0, 8, 0, 0) // UDP, port 654 at both ends
	cbrDatagram = inIPv4(17, 20, 0, 20, 0, 0, 8, 0, 0)
	bareACK     = inIPv4(6, tcpHeader(0x10)...)
	dsrMessage  = inIPv4(48, 59, 0, 0, 0)
	dsrSegment  = inIPv4(48, append([]byte{6, 0, 0, 4, 0, 0, 0, 0}, append(tcpHeader(0x18), 1, 2, 3)...)...)
	dsrACK      = inIPv4(48, append([]byte{6, 0, 0, 4, 0, 0, 0, 0}, tcpHeader(0x10)...)...)
	arpRequest  = append([]byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, make([]byte, 20)...)
	dsrSYN      = inIPv4(48, append([]byte{6, 0, 0, 4, 0, 0, 0, 0}, tcpHeader(0x02)...)...)
)

func inIPv4(protocol byte, body ...byte) []byte {
	ip := append([]byte{0x45, 0, 0, byte(20 + len(body)), 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2},
		body...)
	return append([]byte{8, 0}, ip...)
}

func tcpHeader(flags byte) []byte {
	h := make([]byte, 20)
	h[12], h[13] = 5<<4, flags
	return h
}

// sequence records the number of each frame that arrives, which is at its end.
type sequence struct{ numbers []int }

func (s *sequence) Deliver(_ int, _ time.Duration, ethernet []byte) bool {
	s.numbers = append(s.numbers, int(binary.BigEndian.Uint16(ethernet[len(ethernet)-2:])))
	return true
}

func (s *sequence) TxFailed(int, time.Duration, MAC, []byte) {}

// ns2Order is the order in which packets arrive that come in at once, by their numbers; the first is in
// service at once.
func ns2Order(t *testing.T, packets ...[]byte) (arrived []int, lost uint64) {
	t.Helper()
	sink := &sequence{}
	c := mustCore(t, ns2Config(2, 2), line(100), sink)
	for i, p := range packets {
		f := append(ethernet(0, 1, 0, 4)[:12], p...)
		f = append(f, make([]byte, 100)...) // behind the packet, as Ethernet pads
		binary.BigEndian.PutUint16(f[len(f)-2:], uint16(i))
		c.Enqueue(0, f)
	}
	c.Advance(10 * time.Second)
	return sink.numbers, c.Counters(0).Lost[QueueFull]
}

// What routing says goes before data, the newest first. TCP's ACKs wait among the data.
func TestNS2sQueueHasRoutingFirst(t *testing.T) {
	got, lost := ns2Order(t, cbrDatagram, cbrDatagram, bareACK, aodvMessage, cbrDatagram, aodvMessage)
	if want := []int{0, 5, 3, 1, 2, 4}; !slices.Equal(got, want) || lost != 0 {
		t.Errorf("%v, %d lost; want %v", got, lost, want)
	}
}

// With DSR routing goes first in its order, then TCP's ACKs, then all else.
func TestNS2sQueueWithDSRHasACKsSecond(t *testing.T) {
	got, lost := ns2Order(t, dsrSegment, dsrSYN, dsrSegment, dsrACK, dsrMessage, dsrSegment, dsrACK, dsrMessage)
	if want := []int{0, 4, 7, 3, 6, 1, 2, 5}; !slices.Equal(got, want) || lost != 0 {
		t.Errorf("%v, %d lost; want %v", got, lost, want)
	}
}

// When it is full, the last goes for what routing says; with DSR each kind has its own room.
func TestNS2sFullQueue(t *testing.T) {
	full := slices.Repeat([][]byte{cbrDatagram}, 52) // one in service, 49 wait, two too many
	got, lost := ns2Order(t, append(full, aodvMessage)...)
	if len(got) != 50 || lost != 3 || got[1] != 52 || got[49] != 48 {
		t.Errorf("%v, %d lost; want 0, 52, 1 to 48, and 3", got, lost)
	}
	full = slices.Repeat([][]byte{dsrSegment}, 52)
	full = append(full, slices.Repeat([][]byte{dsrACK}, 51)...)
	got, lost = ns2Order(t, append(full, dsrMessage)...)
	if len(got) != 102 || lost != 2 || got[1] != 103 || got[2] != 52 || got[51] != 101 || got[52] != 1 ||
		got[101] != 50 {
		t.Errorf("%v, %d lost; want 0, 103, 52 to 101, 1 to 50, and 2", got, lost)
	}
	both := append(slices.Repeat([][]byte{dsrSegment}, 30), slices.Repeat([][]byte{dsrACK}, 21)...)
	if got, lost := ns2Order(t, append(both, arpRequest)...); lost != 0 || got[51] != 51 {
		t.Errorf("%v, %d lost; want ARP, which has room beside 21 ACKs, last", got, lost)
	}
}
