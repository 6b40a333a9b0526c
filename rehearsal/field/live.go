package field

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field/tally"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/realtime"
)

// liveRadio is the emulated radio between the nodes' TAP devices.
type liveRadio struct {
	live *realtime.Channel
	lossLog

	mu      sync.Mutex
	tallies []tally.Tally // in order of time
}

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
	r := &liveRadio{lossLog: lossLog{bootAt0: boot}}
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

// Run carries frames and tallies them until ctx ends.
func (r *liveRadio) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.live.Run(ctx) })
	g.Go(func() error {
		for pause.For(ctx, tally.Every) == nil {
			if err := r.tally(); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// tally notes what was sent so far.
func (r *liveRadio) tally() error {
	sent := r.live.OnAir()
	now, err := bootNow()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tallies = tally.Add(r.tallies, tally.Tally{At: now, ByNode: sent})
	return nil
}

// Sent are the frames a second that every node put on the air in the interval.
func (r *liveRadio) Sent(open, closed time.Duration) []map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return tally.Rates(r.tallies, open, closed)
}

// SetDead switches the channel off or on.
func (r *liveRadio) SetDead(dead bool) { r.live.SetDead(dead) }

// Counters are a node's since the radio was opened.
func (r *liveRadio) Counters(node int) medium.Counters { return r.live.Counters(node) }

// Miss adds a packet that did not get here.
func (r *liveRadio) Miss(boot time.Duration, node int, packet []byte, why medium.Cause) {
	x := medium.PacketLoss(boot-r.bootAt0, node, packet, why)
	r.add(x)
	r.live.Tell(x)
}

// Lateness is that of the interval, and of up to 100 ms more at either end.
func (r *liveRadio) Lateness(open, closed time.Duration) (wire.Lateness, error) {
	return r.live.Lateness(open-r.bootAt0, closed-r.bootAt0)
}
