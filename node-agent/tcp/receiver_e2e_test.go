//go:build e2e || guest

package tcp

import (
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// receiver is a receiver that acknowledges every segment at once (RFC 5681,
// section 4.2), with SACK as of RFC 2018. Segments reach it in the order in
// which they were sent, one after another, and their ACKs the sender before the
// next is on its way: so that a run is the same each time, whatever else the
// machine does.
type receiver struct {
	underway []uint32       // first bytes of segments, as they were sent
	times    map[uint32]int // that each was sent
	next     uint32         // the first byte that is missing
	held     map[uint32]int // segments beyond it, and when each came
	arrivals int
}

// take has a segment arrive.
func (r *receiver) take(first uint32) {
	r.arrivals++
	if first >= r.next {
		r.held[first] = r.arrivals
	}
	for r.held[r.next] > 0 {
		delete(r.held, r.next)
		r.next += mss
	}
}

// blocks are what it holds beyond a hole, the one that changed last first, and
// at most four (RFC 2018, sections 3 and 4).
func (r *receiver) blocks() (out [][2]uint32) {
	type block struct {
		edges [2]uint32
		last  int
	}
	var all []block
	firsts := make([]uint32, 0, len(r.held))
	for first := range r.held {
		firsts = append(firsts, first)
	}
	slices.Sort(firsts)
	for _, first := range firsts {
		if n := len(all); n > 0 && all[n-1].edges[1] == first {
			all[n-1].edges[1], all[n-1].last = first+mss, max(all[n-1].last, r.held[first])
			continue
		}
		all = append(all, block{[2]uint32{first, first + mss}, r.held[first]})
	}
	slices.SortFunc(all, func(a, b block) int { return b.last - a.last })
	for _, b := range all[:min(len(all), 4)] {
		out = append(out, b.edges)
	}
	return out
}

// highest is the end of what it has.
func (r *receiver) highest() uint32 {
	end := r.next
	for first := range r.held {
		end = max(end, first+mss)
	}
	return end
}

// playLosses sends so many segments to a receiver that does not get what lost
// chooses, and gives the sender as it was after each ACK.
func playLosses(t *testing.T, congestion string, sack bool, segments int, lost func(testnet.Segment) bool) (out trace) {
	t.Helper()
	p := newPeer(t, sack)
	setSysctls(t, p.ns, map[string]string{"tcp_rto_min_us": "1000000"})
	c := p.dial(t, congestion, 0)
	r := &receiver{times: map[uint32]int{}, held: map[uint32]int{}}
	c.receiver = r
	c.write(t, segments)
	p.drain(t)
	until := time.Now().Add(time.Minute)
	for r.next < uint32(segments*mss) && time.Now().Before(until) {
		if len(r.underway) == 0 { // the timer is next
			time.Sleep(time.Millisecond)
			p.drain(t)
			continue
		}
		first := r.underway[0]
		r.underway = r.underway[1:]
		r.times[first]++
		s := testnet.Segment{At: time.Now(), Index: int(first / mss), Times: r.times[first], Offset: first, Bytes: mss}
		out.sent = append(out.sent, s)
		if lost(s) {
			continue
		}
		r.take(first)
		var blocks [][2]uint32
		if sack {
			blocks = r.blocks()
		}
		p.give(t, p.ack(c, r.next, blocks...))
		p.drain(t)
		out.points = append(out.points,
			pointOf(p.info(t, c), testnet.Ack{At: time.Now(), Offset: r.next, Highest: r.highest()}))
	}
	if r.next != uint32(segments*mss) {
		t.Errorf("%d segments arrived of %d", r.next/mss, segments)
	}
	return out
}
