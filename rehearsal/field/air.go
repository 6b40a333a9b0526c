package field

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// channel is what the field wants of an emulated radio channel that runs in
// real time.
type channel interface {
	Run(ctx context.Context) error
	SetDead(dead bool)
	// Lateness is how late the channel was during [open, close] of the boot clock.
	Lateness(open, closed time.Duration) (wire.Lateness, error)
	// Counters are a node's since the channel was opened.
	Counters(node int) medium.Counters
	// Sent are the frames a second that every node put on the air during
	// [open, close] of the boot clock, by class; nil where that is not known.
	Sent(open, closed time.Duration) []map[string]float64
	// Losses are the frames lost during [open, close] of the boot clock, as
	// far as they were kept, and how many were not, since the last Forget.
	Losses(open, closed time.Duration) ([]loss, uint64)
	Forget()
	// Miss adds a packet that a node's kernel gave up before the channel could
	// have it. It does not wait.
	Miss(boot time.Duration, node int, packet []byte, why medium.Cause)
}

// air is the channel that is open at present, set as one trial's radio wants.
type air struct {
	config  medium.Config
	channel channel
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error             // of the channel, once ended
	before  []medium.Counters // by node, when the present trial was placed
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

// tune opens the channel that a trial's radio and conditions want; one that is
// open already and fits goes on, with its queues and rates as they are.
func (f *Field) tune(t wire.Trial) error {
	cfg := f.trialConfig(t)
	if a := f.air.Load(); a != nil && sameChannel(a.config, cfg) {
		a.count(len(f.nodes))
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
	a.before = make([]medium.Counters, len(f.nodes))
	f.air.Store(a)
	return nil
}

// trialConfig is the channel that a trial is driven on.
func (f *Field) trialConfig(t wire.Trial) medium.Config {
	cfg := conditioned(f.mediumConfig(t.Radio), t.Conditions)
	if f.cfg.MAC80211 {
		cfg = ofKernel(cfg, t.Radio)
	}
	cfg.Seed, cfg.Promiscuous = f.cfg.channelSeed(t), t.Routing.Overhears()
	return cfg
}

// channelSeed is what a trial's shadowing, fading and back-off are drawn by.
func (c Config) channelSeed(t wire.Trial) uint64 {
	if c.Field.ChannelDraws == DrawsPerCampaign {
		return c.Seed
	}
	return rand.NewPCG(c.Seed, uint64(t.Repetition)).Uint64()
}

// RadioOf is a trial's radio with the standard and the channel that the field takes where the
// trial names none.
func RadioOf(r wire.Radio) wire.Radio {
	r.Standard, r.Channel = or(r.Standard, phy.Standard80211g), or(r.Channel, wire.DefaultChannel)
	return r
}

// longSlot reports whether a network of OFDM keeps to the slot of 20 µs. At 2.4 GHz Linux does (ibss.c of
// net/mac80211), but in a mesh and at an access point, where all stations have the rates of 802.11g
// (mesh_set_short_slot_time of mesh_plink.c; hostapd_own_capab_info of hostapd).
func longSlot(r wire.Radio) bool {
	return (r.Standard == phy.Standard80211g || r.Standard == phy.Standard80211n && r.Channel <= 14) &&
		r.Mode != modeMesh && !r.HasAccessPoint()
}

// mediumConfig is what the field makes of a radio. Its seed is the trial's.
func (f *Field) mediumConfig(r wire.Radio) medium.Config {
	c := f.cfg.Field
	r = RadioOf(r)
	m := medium.Config{
		Standard: r.Standard, Channel: r.Channel,
		Radio: c.Radio, RateControl: c.RateControl, BasicRatesMbps: c.BasicRatesMbps,
		CarrierSenseDbm: c.CarrierSenseDbm, EnergyDetectDbm: c.EnergyDetectDbm,
		ShortRetryLimit: c.ShortRetryLimit, LongRetryLimit: c.LongRetryLimit,
		ShortPreamble: c.ShortPreamble, LongSlot: *or(c.LongSlot, new(longSlot(r))),
		RTSThresholdBytes: c.RTSThresholdBytes, QueueFrames: c.QueueFrames,
	}
	switch {
	case c.Propagation != "" || c.Radio == phy.RadioDisc:
		m.Propagation = propagation.Config{Model: c.Propagation, Exponent: c.PathLossExponent,
			ReferenceM: c.ReferenceM, RangeM: c.RangeM, CarrierSenseM: c.CarrierSenseM}
	case c.Radio == phy.RadioNS2WaveLAN:
		m.Propagation.RangeM = c.RangeM
	}
	if s := c.Shadowing; s != nil {
		m.Shadowing = propagation.ShadowingConfig{SigmaDb: s.SigmaDb, DecorrelationM: s.DecorrelationM,
			NodeCorrelation: s.NodeCorrelation}
	}
	if s := c.Fading; s != nil {
		m.Fading = propagation.FadingConfig{Model: s.Model, KFactorDb: s.KFactorDb, ScattererMps: s.ScattererMps}
	}
	if e := c.ChannelError; e != nil {
		m.ChannelError = propagation.ChannelErrorConfig{Mean: e.Mean, BurstFrames: e.BurstFrames, BurstS: e.BurstS}
	}
	if r.RateMbps != nil {
		m.RateMbps = *r.RateMbps
	}
	if r.RTSThresholdBytes != nil {
		m.RTSThresholdBytes = *r.RTSThresholdBytes
	}
	if m.RTSThresholdBytes == wire.RTSNever {
		m.RTSThresholdBytes = 0 // an A-MPDU is longer
	}
	if r.RetryLimit != nil {
		m.ShortRetryLimit, m.LongRetryLimit = *r.RetryLimit, *r.RetryLimit
	}
	power := *c.TxPowerDbm
	if r.TxPowerDbm != nil {
		power = *r.TxPowerDbm
	}
	for _, n := range f.nodes {
		m.Nodes = append(m.Nodes, medium.NodeConfig{
			Name: n.Name, MAC: n.mac.String(), TxPowerDbm: power + c.UnitPowerOffsetDb[n.Unit],
			AntennaGainDbi: c.AntennaGainDbi + c.UnitGainOffsetDb[n.Unit], NoiseFigureDb: c.NoiseFigureDb +
				c.UnitNoiseOffsetDb[n.Unit],
			HeightM: c.AntennaHeightM, Channel: c.Channels[n.Name],
		})
	}
	return m
}

// conditioned is the channel with a trial's own conditions.
func conditioned(m medium.Config, c *wire.Conditions) medium.Config {
	if c == nil {
		return m
	}
	if c.QueueFrames != nil {
		m.QueueFrames = *c.QueueFrames
	}
	if c.ChannelErrorMean != nil {
		m.ChannelError = propagation.ChannelErrorConfig{Mean: *c.ChannelErrorMean,
			BurstFrames: orZero(c.ChannelErrorBurstFrames)}
	}
	return m
}

// sameChannel compares all but the functions, which are the open channel's.
func sameChannel(a, b medium.Config) bool {
	a.Trace, a.FrameLost, b.Trace, b.FrameLost = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// locate is where a node is, for the channel.
func (f *Field) locate(node int, boot time.Duration) (xM, yM float64) {
	s := f.scene.Load().at(node, boot)
	return s.XM, s.YM
}
