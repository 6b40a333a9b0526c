package medium

import (
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

const (
	segmentBytes = 512

	// The bytes of ns-2's frames: payload, IP's header, as its routing adds it, and TCP's two
	// (tcpip_base_hdr_size_), in an MPDU of 34 bytes more (mac-802_11.h, getHdrLen11). Here these are 36 with LLC.
	ns2DatagramBytes = segmentBytes + 20 + 34 - 36
	ns2DataBytes     = segmentBytes + 20 + 40 + 34 - 36
	ns2ACKBytes      = 20 + 40 + 34 - 36

	ns2Name, ns3Name       = "ns-2", "ns-3"
	chainCBR, chainTCP     = "cbr", "tcp"
	ns3PauseUs, ns3Retries = 11, 7

	withoutEnd = 1000 // retries: no frame is given up

	saturatedUs = 2048    // between two datagrams: more than a chain carries
	pacedUs     = 100_000 // one is there before the next comes
)

// chainScenario is a flow of 512 bytes over a chain of nodes 200 m apart: datagrams, or segments of TCP with a window
// so small that nothing is lost.
type chainScenario struct {
	simulator, kind string
	n               int // microseconds between two datagrams, or the segments under way
	pauseUs         int // in ns-3, from the end of reception until IP has the packet
	retries         int // in ns-3, and here beside it: how often a frame is sent at most
	hops            int
}

// chainScenarios are those that are compared.
func chainScenarios() (all []chainScenario) {
	add := func(simulator, kind string, n, pauseUs, retries int, hops ...int) {
		for _, h := range hops {
			all = append(all, chainScenario{simulator, kind, n, pauseUs, retries, h})
		}
	}
	add(ns2Name, chainCBR, saturatedUs, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	add(ns2Name, chainTCP, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	add(ns2Name, chainTCP, 2, 0, 0, 1, 2, 3, 4)
	add(ns3Name, chainCBR, pacedUs, ns3PauseUs, ns3Retries, 1, 2, 3, 4, 8)
	add(ns3Name, chainTCP, 1, ns3PauseUs, ns3Retries, 1, 2, 3, 4, 5, 6, 7, 8)
	add(ns3Name, chainCBR, saturatedUs, ns3PauseUs, ns3Retries, 1, 2, 3, 4)
	add(ns3Name, chainCBR, saturatedUs, ns3PauseUs, withoutEnd, 5, 6, 7, 8)
	add(ns3Name, chainTCP, 1, 0, ns3Retries, 1, 2, 4)
	return all
}

// chainResult is what a chain carries, and how long a datagram takes where they are paced.
type chainResult struct{ kbitS, delayUs float64 }

// of is the figure that is compared: the time where datagrams are paced, else what is carried.
func (r chainResult) of(s chainScenario) float64 {
	if s.n == pacedUs {
		return r.delayUs
	}
	return r.kbitS
}

const chainsFile = "testdata/chains.csv"

// otherChains are the other simulators' figures. TestE2ENS2sChainsCarryAsMuchHere and
// TestE2ENS3sChainsCarryAsMuchHere hold them to the simulators.
func otherChains(t *testing.T) map[chainScenario]chainResult {
	t.Helper()
	f, err := os.Open(chainsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[chainScenario]chainResult{}
	for _, row := range rows[1:] {
		var v [6]float64
		for i := range v {
			if v[i], err = strconv.ParseFloat(row[2+i], 64); err != nil {
				t.Fatal(err)
			}
		}
		out[chainScenario{row[0], row[1], int(v[0]), int(v[1]), int(v[2]), int(v[3])}] = chainResult{v[4], v[5]}
	}
	return out
}

// here is the scenario in the emulated radio: with ns-2's card, or with the standard's channel access and the same
// ranges. ns-3 answers a frame of 2 Mbit/s at 2 Mbit/s.
func (s chainScenario) here(t *testing.T, standards bool) chainResult {
	t.Helper()
	cfg, frames := ns2Config(2, s.hops+1), [3]int{ns2DatagramBytes, ns2DataBytes, ns2ACKBytes}
	if standards {
		cfg = waveLAN(t, testConfig(phy.Standard80211b, 2, s.hops+1))
	}
	if s.simulator == ns3Name {
		cfg.BasicRatesMbps = []float64{1, 2}
		cfg.ShortRetryLimit, cfg.LongRetryLimit = s.retries, s.retries
		frames = [3]int{segmentBytes + 28, segmentBytes + 40, 40}
	}
	cfg.RTSThresholdBytes, cfg.QueueFrames = 1, 50
	switch {
	case s.kind == chainTCP:
		return chainResult{kbitS: windowChain(t, cfg, s.hops, s.n, frames[1], frames[2])}
	case s.n == pacedUs:
		return chainResult{delayUs: pacedChain(t, cfg, s.hops, frames[0])}
	}
	const seeds = 3
	carried := 0.0
	for seed := range seeds {
		cfg.Seed = uint64(seed)
		carried += 1000 * chain(t, cfg, s.hops, frames[0]-28, 100*time.Second) / seeds *
			segmentBytes / float64(frames[0]-28)
	}
	return chainResult{kbitS: carried}
}

// windowed relays segments to the last node and their ACKs to the first.
type windowed struct {
	last    int
	due     []windowedFrame
	arrived int // ACKs
	lost    int
}

type windowedFrame struct {
	node int
	ack  bool
}

func (w *windowed) Deliver(node int, _ time.Duration, ethernet []byte) bool {
	ack := isACK(ethernet)
	switch {
	case ack && node == 0:
		w.arrived++
		ack = false
	case node == w.last:
		ack = true
	}
	w.due = append(w.due, windowedFrame{node, ack})
	return true
}

// TxFailed sends a frame that was given up again, once in thousands.
func (w *windowed) TxFailed(node int, _ time.Duration, _ MAC, ethernet []byte) {
	w.lost++
	w.due = append(w.due, windowedFrame{node, isACK(ethernet)})
}

func isACK(ethernet []byte) bool {
	return binary.BigEndian.Uint32(ethernet[dot11.EthernetHeaderBytes:]) == 1
}

// windowChain is the payload, in kbit/s, of a sender that has so many segments under way.
func windowChain(t *testing.T, cfg Config, hops, window, dataBytes, ackBytes int) float64 {
	t.Helper()
	const during = 50 * time.Second
	sink := &windowed{last: hops}
	c := mustCore(t, cfg, line(200), sink)
	for range window {
		sink.due = append(sink.due, windowedFrame{})
	}
	for c.Now() < during {
		for _, f := range sink.due {
			to, number, bytes := f.node+1, 0, dataBytes
			if f.ack {
				to, number, bytes = f.node-1, 1, ackBytes
			}
			c.Enqueue(f.node, ethernet(f.node, to, number, bytes))
		}
		sink.due = sink.due[:0]
		next, _ := c.NextEffect()
		c.Advance(min(next, c.Now()+time.Millisecond))
	}
	if sink.lost > 3 {
		t.Fatalf("%d hops, window %d: %d frames were given up, want next to none", hops, window, sink.lost)
	}
	return float64(sink.arrived) * segmentBytes * 8 / 1000 / during.Seconds()
}

// timed is a relay that sums up how long frames took that left at whole multiples of every.
type timed struct {
	relay
	every, took time.Duration
}

func (r *timed) Deliver(node int, at time.Duration, ethernet []byte) bool {
	if node == r.last {
		r.took += at % r.every
	}
	return r.relay.Deliver(node, at, ethernet)
}

// pacedChain is the mean time, in microseconds, that datagrams take when one has arrived before the next comes.
func pacedChain(t *testing.T, cfg Config, hops, bytes int) float64 {
	t.Helper()
	const every, frames = pacedUs * time.Microsecond, 1000
	sink := &timed{relay: relay{last: hops}, every: every}
	c := mustCore(t, cfg, line(200), sink)
	for due := time.Duration(0); c.Now() < frames*every; {
		if c.Now() == due {
			c.Enqueue(0, ethernet(0, 1, 0, bytes))
			due += every
		}
		for _, n := range sink.forward {
			c.Enqueue(n, ethernet(n, n+1, 0, bytes))
		}
		sink.forward = sink.forward[:0]
		next, _ := c.NextEffect()
		c.Advance(min(next, due))
	}
	if sink.arrived != frames {
		t.Fatalf("%d hops: %d of %d datagrams arrived", hops, sink.arrived, frames)
	}
	return float64(sink.took.Nanoseconds()) / 1e3 / frames
}

// chainRow is a scenario there and here.
type chainRow struct {
	chainScenario
	theirs   chainResult
	ns2, dcf chainResult // the latter beside ns-3 only
}

var chainRows = once(func(t *testing.T) (all []chainRow) {
	others := otherChains(t)
	for _, s := range chainScenarios() {
		theirs, ok := others[s]
		if !ok {
			t.Fatalf("%s lacks %+v", chainsFile, s)
		}
		if s.pauseUs > 0 {
			theirs.delayUs -= float64(s.hops * s.pauseUs)
		}
		row := chainRow{chainScenario: s, theirs: theirs, ns2: s.here(t, false)}
		if s.simulator == ns3Name {
			row.dcf = s.here(t, true)
		}
		all = append(all, row)
	}
	return all
})

// chainTolerance is how far a chain here may be from the other simulator's, or 0 where something in the
// other one bears that is named on the page.
//
// Beside ns-2 it is for what is not the same. Frames that begin at once at the same place are sorted by light's
// time of travel there, and drawn here; who would begin when light from another comes to it, in ns-2 does so or not
// by the last bit of its clock, and does here. That makes 2.5 % with five hops of datagrams, where the second node's
// collisions decide, and less than 1 % elsewhere. With TCP it makes 0.1 %.
//
// Beside ns-3 chance makes up to 0.5 %. ns-3 waits for DIFS when the channel was idle for longer, too: that is 1.6 % of
// the time of a single datagram over one hop. Of more datagrams than the chain carries some collide, and of those over
// five hops and more many: what a receiver survives in a part of a frame is not the same here and there.
func (s chainScenario) tolerance(standards bool) float64 {
	switch {
	case s.simulator == ns2Name:
		return 0.03
	case s.pauseUs == 0: // relays without backoff
		return 0
	case s.n == pacedUs && !standards: // its first frame backs off
		return 0
	case s.kind == chainTCP && s.n == 1:
		return 0.01
	case s.n == pacedUs, s.hops <= 3, s.hops == 4 && standards:
		return 0.02
	case standards:
		return 0.03
	}
	return 0
}

func TestChainsCarryWhatOtherSimulatorsCarry(t *testing.T) {
	for _, r := range chainRows(t) {
		for i, here := range []chainResult{r.ns2, r.dcf} {
			standards := i == 1
			if here == (chainResult{}) {
				continue
			}
			got, want, tolerance := here.of(r.chainScenario), r.theirs.of(r.chainScenario), r.tolerance(standards)
			what := fmt.Sprintf("%+v, the standard's access %v", r.chainScenario, standards)
			t.Logf("%s: %.1f, there %.1f (%+.2f %%, allowed %g)", what, got, want, 100*(got/want-1), 100*tolerance)
			if tolerance > 0 && !(math.Abs(got/want-1) <= tolerance) {
				t.Errorf("%s: %.1f, there %.1f", what, got, want)
			}
		}
	}
}
