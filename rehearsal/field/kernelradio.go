package field

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// ofKernel is a channel for the kernel's own radios. Rates, repetitions and RTS are the
// kernel's. What it tells its card and not the air is taken from what it does.
func ofKernel(m medium.Config, r wire.Radio) medium.Config {
	m.RateMbps, m.RateControl, m.RTSThresholdBytes, m.ShortRetryLimit, m.LongRetryLimit = 0, "", 0, 0, 0
	m.BasicRatesMbps = cellRatesMbps(m.Standard, r.RateMbps)
	return m
}

const modeAdHoc, modeMesh = "adhoc", "mesh" // of a trial's radio, beside wire.ModeInfrastructure

// cellRatesMbps are the rates that every station of a network must have: those of the standard,
// and a rate that is fixed, as the agents begin a cell or a mesh. An access point has the same
// (hostapd_prepare_rates of hostapd), but none for a rate that is fixed.
func cellRatesMbps(standard string, fixedMbps *float64) []float64 {
	basic := []float64{1, 2, 5.5, 11}
	if standard == phy.Standard80211a {
		basic = []float64{6, 12, 24}
	}
	if fixedMbps != nil && !slices.Contains(basic, *fixedMbps) {
		basic = append(basic, *fixedMbps)
	}
	return basic
}

// The most that the radios' regulatory table allows (rehearsal/hwsim).
const (
	powerMost24GHzDbm = 20
	powerMost5GHzDbm  = 30
)

// queueMostFrames keeps the emulated card's queue below the 200 frames at which the
// kernel's simulated card throws half of its own away (MAX_QUEUE).
const queueMostFrames = 150

// CheckKernelRadios refuses trials that the kernel's own radios cannot be driven in, or
// whose settings they would not have.
func CheckKernelRadios(c Config, trials []wire.Trial) error {
	const instead = "; rehearse it without --radio mac80211"
	s := c.Field
	for _, key := range []struct {
		name string
		set  bool
		cure string
	}{
		{"radio: " + s.Radio, s.Radio == phy.RadioDisc || s.Radio == phy.RadioNS2WaveLAN,
			"it has no signal that a kernel could report; take another of field.radio"},
		{"propagation: disc", s.Propagation == "disc",
			"it has no signal that a kernel could report; take another of field.propagation"},
		{"rate_control", s.RateControl != "", "the kernel's rate control chooses; leave it out"},
		{"basic_rates_mbps", len(s.BasicRatesMbps) > 0, "the agents begin the cell; leave it out"},
		{"short_retry_limit and long_retry_limit", s.ShortRetryLimit != 0 || s.LongRetryLimit != 0,
			"the kernel repeats frames; set trial.radio.retry_limit"},
		{"rts_threshold_bytes", s.RTSThresholdBytes != 0,
			"the kernel announces frames; set trial.radio.rts_threshold_bytes"},
		{"short_preamble", s.ShortPreamble, "frames here have the long one; leave it out"},
		{"long_slot", s.LongSlot != nil, "the kernel chooses the slot; leave it out"},
		{"frame_lost", s.FrameLost, "there is no radio-feedback socket; leave it out"},
		{"channels", len(s.Channels) > 0, "the agents join the plan's channel; leave it out"},
		{"queue_frames", s.QueueFrames > queueMostFrames,
			fmt.Sprintf("the kernel's card has room for %d; ask for that at most", queueMostFrames)},
	} {
		if key.set {
			return fmt.Errorf("field.%s is not for the kernel's radios: %s%s", key.name, key.cure, instead)
		}
	}
	for _, n := range c.Nodes {
		if n.Bare {
			return fmt.Errorf("node %s has no agent (agents: participants), and nobody would have its radio join; "+
				"leave the key out%s", n.Name, instead)
		}
	}
	for _, t := range trials {
		err := checkKernelRadio(t)
		if err != nil && t.Radio.HasAccessPoint() { // which no other radio of a rehearsal has
			return fmt.Errorf("trial %d: %w", t.Number, err)
		}
		if err != nil {
			return fmt.Errorf("trial %d: %w%s", t.Number, err, instead)
		}
	}
	return nil
}

func checkKernelRadio(t wire.Trial) error {
	r := t.Radio
	most := powerMost24GHzDbm
	standard := cmp.Or(r.Standard, phy.Standard80211g)
	if standard == phy.Standard80211a {
		most = powerMost5GHzDbm
	}
	switch {
	case t.Routing.Overhears():
		return fmt.Errorf("routing.protocol %s: its nodes overhear one another, for which the kernel's radios would "+
			"have to be promiscuous; plan another", t.Routing.Protocol)
	case r.Emulated():
		return fmt.Errorf("radio.standard %s: the emulated air between the kernel's radios has the rates of 802.11a, "+
			"b and g only; plan one of these", r.Standard)
	case r.Mode != modeAdHoc && r.Mode != modeMesh && r.Mode != wire.ModeInfrastructure:
		return fmt.Errorf("radio.mode %s: nobody would have the kernel's radios join; plan mode %s, %s or %s", r.Mode,
			modeAdHoc, modeMesh, wire.ModeInfrastructure)
	case r.Mode != modeAdHoc && standard == phy.Standard80211b:
		return fmt.Errorf("radio.standard %s in mode %s: the kernel's radios have the rates of 802.11g too, and keep "+
			"to its short slots among themselves, which 802.11b has not; plan 802.11g with a rate_mbps of 11 or "+
			"less, or mode %s", standard, r.Mode, modeAdHoc)
	case r.Mode == wire.ModeInfrastructure && r.RateMbps != nil &&
		!slices.Contains(cellRatesMbps(standard, nil), *r.RateMbps):
		return fmt.Errorf("radio.rate_mbps %g in mode %s: the kernel fixes a rate only if all stations must have it, "+
			"and those of an access point of %s are %v Mbit/s; plan one of these, or leave it out", *r.RateMbps, r.Mode,
			standard, cellRatesMbps(standard, nil))
	case standard != phy.Standard80211a && r.Channel > 11, r.Channel > 48 && r.Channel < 149:
		return fmt.Errorf("radio.channel %d: the kernel's radios may use 1 to 11, 36 to 48 and 149 to 165 here; "+
			"plan one of these", r.Channel)
	case r.TxPowerDbm == nil:
		return errors.New("radio.tx_power_dbm is absent, so that the air would not know what the kernel's radios " +
			"send with; set it")
	case *r.TxPowerDbm > float64(most):
		return fmt.Errorf("radio.tx_power_dbm %g: the kernel's radios send with %d dBm at most on channel %d",
			*r.TxPowerDbm, most, r.Channel)
	}
	if c := t.Conditions; c != nil && c.QueueFrames != nil && *c.QueueFrames > queueMostFrames {
		return fmt.Errorf("conditions.queue_frames %d: the kernel's card has room for %d", *c.QueueFrames,
			queueMostFrames)
	}
	return nil
}
