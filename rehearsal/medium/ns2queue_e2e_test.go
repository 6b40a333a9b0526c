//go:build e2e

package medium

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A flow with 20 segments under way over a chain in which all sense each other: data take as long to the other end
// as in ns-2 with the same queue. In the queue for DSR ACKs go before them, and they take half as long again.
func TestE2ENS2sQueuesDelayDataAsMuchHere(t *testing.T) {
	if _, err := exec.LookPath("ns"); err != nil {
		t.Skip("needs ns-2: install Debian's package ns2")
	}
	const hops, window, spacingM = 4, 20, 130
	var here [2]float64
	for i, v := range []struct {
		queue        string
		segment, ack []byte
	}{{"Queue/DropTail/PriQueue", plainSegment, bareACK}, {"CMUPriQueue", dsrSegment, dsrACK}} {
		trace := filepath.Join(t.TempDir(), "trace")
		carried := ns2Chain(t, "Newreno", hops, window, 1, strconv.Itoa(spacingM), v.queue, trace)
		theirs := traceDelayMs(t, trace, "_"+strconv.Itoa(hops)+"_")
		kbitS, delayMs := 0.0, 0.0
		const seeds = 4 // of one, 50 s long, the delay is within some 3 % of the mean
		for seed := range uint64(seeds) {
			k, d := queuedChain(t, hops, window, spacingM, v.segment, v.ack, seed)
			kbitS, delayMs = kbitS+k/seeds, delayMs+d/seeds
		}
		t.Logf("%s: %.1f kbit/s and %.1f ms there, %.1f and %.1f here", v.queue, carried, theirs, kbitS, delayMs)
		if math.Abs(delayMs/theirs-1) > 0.03 || math.Abs(kbitS/carried-1) > 0.03 {
			t.Errorf("%s: more than 3 %% apart", v.queue)
		}
		here[i] = delayMs
	}
	if ratio := here[1] / here[0]; ratio < 1.4 || ratio > 1.6 {
		t.Errorf("with DSR's queue data take %.2f times as long, want about 1.5", ratio)
	}
}

var plainSegment = inIPv4(6, append(tcpHeader(0x18), 1, 2, 3)...)

// queuedChain is what a sender with so many segments under way gets through in kbit/s, and how long its data take.
func queuedChain(t *testing.T, hops, window int, spacingM float64, segment, ack []byte,
	seed uint64) (kbitS, delayMs float64) {
	t.Helper()
	const during = 50 * time.Second
	cfg := ns2Config(2, hops+1)
	cfg.RTSThresholdBytes, cfg.Seed = 1, seed
	sink := &queued{last: hops, ack: ack}
	c := mustCore(t, cfg, line(spacingM), sink)
	for range window {
		sink.due = append(sink.due, windowedFrame{})
	}
	for c.Now() < during {
		for _, f := range sink.due {
			to, packet, size := f.node+1, segment, ns2DataBytes
			if f.ack {
				to, packet, size = f.node-1, ack, ns2ACKBytes
			} else if f.node == 0 {
				sink.left = append(sink.left, c.Now())
			}
			frame := append(ethernet(f.node, to, 0, size)[:12], packet...)
			c.Enqueue(f.node, frame[:14+size])
		}
		sink.due = sink.due[:0]
		next, _ := c.NextEffect()
		c.Advance(min(next, c.Now()+time.Millisecond))
	}
	if sink.gaveUp != 0 {
		t.Fatalf("%d frames were given up", sink.gaveUp)
	}
	return float64(sink.arrived) * segmentBytes * 8 / 1000 / during.Seconds(),
		float64(sink.took.Microseconds()) / 1000 / float64(sink.arrived)
}

// queued relays segments to the last node and their ACKs to the first. Segments arrive in their order.
type queued struct {
	last    int
	ack     []byte
	due     []windowedFrame
	left    []time.Duration // of the segments under way
	took    time.Duration
	arrived int // segments
	gaveUp  int
}

func (q *queued) Deliver(node int, at time.Duration, ethernet []byte) bool {
	ack := bytes.HasPrefix(ethernet[12:], q.ack)
	switch {
	case ack && node == 0:
		ack = false
	case node == q.last:
		ack = true
		q.arrived++
		q.took += at - q.left[0]
		q.left = q.left[1:]
	}
	q.due = append(q.due, windowedFrame{node, ack})
	return true
}

func (q *queued) TxFailed(int, time.Duration, MAC, []byte) { q.gaveUp++ }

// traceDelayMs is how long data take to a node by ns-2's trace, in the mean.
func traceDelayMs(t *testing.T, path, node string) float64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sent, sum, n := map[string]float64{}, 0.0, 0
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(line) // s 1.0 _0_ AGT --- 7 tcp 552 …
		if len(w) < 8 || w[3] != "AGT" || w[6] != "tcp" {
			continue
		}
		at, err := strconv.ParseFloat(w[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		began, known := sent[w[5]]
		switch {
		case w[0] == "s":
			sent[w[5]] = at
		case w[0] == "r" && w[2] == node && known:
			sum, n = sum+at-began, n+1
		}
	}
	if n == 0 {
		t.Fatalf("nothing arrives at %s by %s", node, path)
	}
	return 1000 * sum / float64(n)
}
