package field

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/realtime"
)

// liveRadio is the emulated radio between the nodes' TAP devices, with its
// lateness kept in short bins: where the window was is known only afterwards.
type liveRadio struct {
	live *realtime.Channel
	lossLog

	rotating sync.Mutex // one rotation at a time
	from     time.Duration
	binsMu   sync.Mutex
	bins     []lateBin // in order of time, at most maxBins
	tallies  []tally   // in order of time, at most maxTallies
}

// lateBin is the lateness of [from, to) of the boot clock.
type lateBin struct {
	from, to time.Duration
	late     wire.Lateness
}

const (
	binEvery = 100 * time.Millisecond
	maxBins  = 10 * 60 * 10 // ten minutes
)

// live opens the real-time radio.
func (f *Field) live(cfg medium.Config) (channel, error) {
	faceUID, _, err := account(f.cfg.FaceUser)
	if err != nil {
		return nil, err
	}
	var ports []realtime.Port
	for _, n := range f.nodes {
		if f.radios != nil {
			break
		}
		port := realtime.Port{FD: int(n.tap.Fd())}
		if !n.Bare {
			port.FeedbackSocket, port.FeedbackUID = n.feedback, faceUID
		}
		ports = append(ports, port)
	}
	epoch := time.Now()
	boot, err := bootNow()
	if err != nil {
		return nil, err
	}
	r := &liveRadio{from: boot, lossLog: lossLog{bootAt0: boot}}
	cfg.FrameLost = r.add
	locate := func(node int, at time.Duration) (xM, yM float64) { return f.locate(node, r.bootAt0+at) }
	r.live, err = realtime.New(cfg, locate, ports, realtime.Options{
		Epoch: epoch, VirtualTime: f.cfg.VirtualTime, FrameLost: f.cfg.Field.FrameLost, Air: f.radios,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Run carries frames and keeps the account of lateness until ctx ends.
func (r *liveRadio) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.live.Run(ctx) })
	g.Go(func() error {
		ticker := time.NewTicker(binEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			if err := errors.Join(r.rotate(), r.tally()); err != nil {
				return err
			}
		}
	})
	return g.Wait()
}

// rotate ends the present bin and begins the next.
func (r *liveRadio) rotate() error {
	r.rotating.Lock()
	defer r.rotating.Unlock()
	late := r.live.EndWindow()
	r.live.BeginWindow()
	now, err := bootNow()
	if err != nil {
		return err
	}
	r.binsMu.Lock()
	defer r.binsMu.Unlock()
	r.bins = append(r.bins, lateBin{r.from, now, late})
	if over := len(r.bins) - maxBins; over > 0 {
		r.bins = append(r.bins[:0:0], r.bins[over+maxBins/10:]...) // in large steps, not one by one
	}
	r.from = now
	return nil
}

// tally notes what was sent so far, once a second.
func (r *liveRadio) tally() error {
	r.binsMu.Lock()
	last := r.from - tallyEvery
	if n := len(r.tallies); n > 0 {
		last = r.tallies[n-1].at
	}
	due := r.from-last >= tallyEvery
	r.binsMu.Unlock()
	if !due {
		return nil
	}
	sent := r.live.OnAir()
	now, err := bootNow()
	if err != nil {
		return err
	}
	r.binsMu.Lock()
	defer r.binsMu.Unlock()
	r.tallies = addTally(r.tallies, tally{now, sent})
	return nil
}

// Sent are the frames a second that every node put on the air in the interval.
func (r *liveRadio) Sent(open, closed time.Duration) []map[string]float64 {
	r.binsMu.Lock()
	defer r.binsMu.Unlock()
	return rates(r.tallies, open, closed)
}

// SetDead switches the channel off or on.
func (r *liveRadio) SetDead(dead bool) { r.live.SetDead(dead) }

// Counters are a node's since the radio was opened.
func (r *liveRadio) Counters(node int) medium.Counters { return r.live.Counters(node) }

// Losses are the frames lost in the interval, and how many were not kept.
func (r *liveRadio) Losses(open, closed time.Duration) ([]loss, uint64) {
	return r.between(open, closed)
}

// Miss adds a packet that did not get here.
func (r *liveRadio) Miss(boot time.Duration, node int, packet []byte, why medium.Cause) {
	x := medium.PacketLoss(boot-r.bootAt0, node, packet, why)
	r.add(x)
	r.live.Tell(x)
}

// Forget drops the lost frames that were kept so far.
func (r *liveRadio) Forget() { r.begin() }

// Lateness is that of the bins which the interval touches.
func (r *liveRadio) Lateness(open, closed time.Duration) (wire.Lateness, error) {
	if err := r.rotate(); err != nil {
		return wire.Lateness{}, err
	}
	r.binsMu.Lock()
	defer r.binsMu.Unlock()
	return sumBins(r.bins, open, closed)
}

// sumBins joins the bins that an interval touches: up to a bin more at either
// end, which WindowS counts too. Sum, mean and worst are exact for that time;
// the 99th percentile is the highest of the bins', an upper bound.
func sumBins(bins []lateBin, open, closed time.Duration) (wire.Lateness, error) {
	out := wire.Lateness{Source: "medium"}
	if len(bins) == 0 || bins[0].from > open || bins[len(bins)-1].to < closed {
		return out, fmt.Errorf("find lateness of the window: the radio was not on, or it is too long ago")
	}
	var total float64
	for _, b := range bins {
		if b.to <= open || b.from >= closed {
			continue
		}
		out.WindowS += (b.to - b.from).Seconds()
		out.SumS += b.late.SumS
		out.Events += b.late.Events
		total += b.late.MeanUs * float64(b.late.Events)
		out.P99Us = max(out.P99Us, b.late.P99Us)
		out.WorstUs = max(out.WorstUs, b.late.WorstUs)
	}
	if out.Events > 0 {
		out.MeanUs = total / float64(out.Events)
	}
	return out, nil
}
