package field

import (
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
)

// The datagrams of a saturated link.
const (
	DatagramBytes        = 1500 // with the headers of IP and UDP
	DatagramPayloadBytes = DatagramBytes - 20 - 8
)

// Saturation is what the emulated radio carries straight from a trial's sender to its
// receiver when there always is another datagram to send.
type Saturation struct {
	GoodputMbps float64 // payload of UDP
	// WithinReach is the share of the time in which the two carry each other's data: on
	// average over fading, at the trial's rate or, where it fixes none, at any.
	WithinReach         float64
	NearestM, FarthestM float64 // between the two
}

// Saturate works a trial's window out, in model time and without a process: no root is
// needed. The window opens so long after the car has set off. What counts of the
// configuration is as in NewSketch.
func Saturate(cfg Config, t wire.Trial, opens time.Duration) (Saturation, error) {
	f, standing, err := desk(cfg, t)
	if err != nil {
		return Saturation{}, err
	}
	s := standing.departing(0)
	return f.saturate(t, opens, 0, t.Duration(), func(node int, at time.Duration) (xM, yM float64) {
		state := s.at(node, at)
		return state.XM, state.YM
	})
}

// SaturateApart is Saturate of two nodes that stand so far apart, for a while.
func SaturateApart(cfg Config, t wire.Trial, apartM float64, during time.Duration) (Saturation, error) {
	f, _, err := desk(cfg, t)
	if err != nil {
		return Saturation{}, err
	}
	receiver := f.stage.find(t.Receiver)
	return f.saturate(t, 0, settles, during, func(node int, _ time.Duration) (xM, yM float64) {
		if node == receiver {
			return apartM, 0
		}
		return 0, 0
	})
}

const (
	settles = 2 * time.Second // of a rate control: Minstrel decides about twenty times a second, with a filter of 16
	// saturationStep is how often the queue is filled up, and saturationQueue more frames than any radio sends in
	// it: at 54 Mbit/s an exchange takes 0.3 ms. With A-MPDUs it is one of these, which at 390 Mbit/s takes 2 ms.
	saturationStep  = time.Millisecond
	saturationQueue = 8
)

func (f *Field) saturate(t wire.Trial, opens, warm, during time.Duration, locate medium.Locate) (Saturation, error) {
	from, to := f.stage.find(t.Sender), f.stage.find(t.Receiver)
	if from < 0 || to < 0 {
		return Saturation{}, fmt.Errorf("saturate trial %d: no nodes %q and %q", t.Number, t.Sender, t.Receiver)
	}
	cfg := f.trialConfig(t)
	cfg.QueueFrames = max(cfg.QueueFrames, saturationQueue)
	if t.Radio.Emulated() {
		cfg.QueueFrames = max(cfg.QueueFrames, ht.Window)
	}
	sink := &counted{node: to}
	core, err := medium.NewCore(cfg, locate, sink)
	if err != nil {
		return Saturation{}, fmt.Errorf("saturate trial %d: %w", t.Number, err)
	}
	frame := make([]byte, 14+DatagramBytes)
	copy(frame, f.nodes[to].mac)
	copy(frame[6:], f.nodes[from].mac)
	out := Saturation{NearestM: math.Inf(1)}
	looks, within := 0, 0
	core.Advance(opens)
	begin := opens + warm
	for at := opens; at < begin+during; at += saturationStep {
		if at == begin {
			sink.frames = 0
		}
		for core.QueueRoom(from) > 0 {
			core.Enqueue(from, frame)
		}
		if (at-opens)%truthEvery == 0 {
			looks++
			if l, ok := sketchLink(core, from, to); ok && l.RateMbps >= leastRateMbps(core, t) {
				within++
			}
			x, y := locate(from, at)
			u, v := locate(to, at)
			apart := math.Hypot(x-u, y-v)
			out.NearestM, out.FarthestM = min(out.NearestM, apart), max(out.FarthestM, apart)
		}
		core.Advance(min(at+saturationStep, begin+during))
	}
	out.WithinReach = float64(within) / float64(looks)
	out.GoodputMbps = float64(sink.frames*8*DatagramPayloadBytes) / during.Seconds() / 1e6
	return out, nil
}

// counted counts what comes to a node.
type counted struct {
	silent
	node, frames int
}

func (c *counted) Deliver(node int, _ time.Duration, _ []byte) bool {
	if node == c.node {
		c.frames++
	}
	return true
}
