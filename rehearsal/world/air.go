package world

import (
	"context"
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// channel is what the field wants of an emulated radio channel that runs in
// real time.
type channel interface {
	Run(ctx context.Context) error
	SetDead(dead bool)
	// Lateness is how late the channel was during [open, close] of the boot clock.
	Lateness(open, closed time.Duration) (wire.Lateness, error)
}

// air is the channel that is open at present, set as one trial's radio wants.
type air struct {
	config  medium.Config
	channel channel
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error // of the channel, once ended
}

func (a *air) close() error {
	if a == nil {
		return nil
	}
	a.cancel()
	<-a.ended
	if a.err != nil {
		return fmt.Errorf("run the emulated radio: %w", a.err)
	}
	return nil
}

// tune opens the channel that a trial's radio wants; one that is open already
// and fits goes on, with its queues and rates as they are.
func (f *Field) tune(r wire.Radio) error {
	cfg := f.mediumConfig(r)
	if a := f.air.Load(); a != nil && sameChannel(a.config, cfg) {
		return nil
	}
	if err := f.air.Swap(nil).close(); err != nil {
		return err
	}
	ch, err := f.openChannel(cfg)
	if err != nil {
		return fmt.Errorf("open the emulated radio: %w", err)
	}
	ctx, cancel := context.WithCancel(f.restCtx)
	a := &air{config: cfg, channel: ch, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		if err := ch.Run(ctx); err != nil && ctx.Err() == nil {
			a.err = err
			f.stopRest() // see Failed
		}
	}()
	ch.SetDead(f.dead.Load())
	f.air.Store(a)
	return nil
}

func (f *Field) mediumConfig(r wire.Radio) medium.Config {
	c := f.cfg.Field
	m := medium.Config{
		Seed: f.cfg.Seed, Standard: or(r.Standard, medium.Standard80211g), Channel: or(r.Channel, 6),
		Propagation:       medium.PropagationConfig{Model: c.Propagation, Exponent: c.PathLossExponent, ReferenceM: c.ReferenceM},
		RTSThresholdBytes: c.RTSThresholdBytes, QueueFrames: c.QueueFrames,
	}
	if r.RateMbps != nil {
		m.RateMbps = *r.RateMbps
	}
	power := *c.TxPowerDbm
	if r.TxPowerDbm != nil {
		power = *r.TxPowerDbm
	}
	for _, n := range f.nodes {
		m.Nodes = append(m.Nodes, medium.NodeConfig{
			Name: n.Name, MAC: n.mac.String(), TxPowerDbm: power + c.UnitPowerOffsetDb[n.Unit],
			AntennaGainDbi: c.AntennaGainDbi, NoiseFigureDb: c.NoiseFigureDb, HeightM: c.AntennaHeightM,
		})
	}
	return m
}

// sameChannel compares what a trial's radio can change.
func sameChannel(a, b medium.Config) bool {
	if a.Standard != b.Standard || a.Channel != b.Channel || a.RateMbps != b.RateMbps {
		return false
	}
	for i := range a.Nodes {
		if a.Nodes[i] != b.Nodes[i] {
			return false
		}
	}
	return true
}

// locate is where a node is, for the channel.
func (f *Field) locate(node int, boot time.Duration) (xM, yM float64) {
	s := f.scene.Load().at(node, boot)
	return s.XM, s.YM
}
