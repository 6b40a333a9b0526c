package field

import (
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

func TestWhatTheKernelsRadiosCannotBeIsRefused(t *testing.T) {
	radio := func(change func(*wire.Radio)) wire.Trial {
		r := wire.Radio{Mode: "adhoc", Standard: "802.11g", Channel: 6, TxPowerDbm: new(20.0)}
		if change != nil {
			change(&r)
		}
		return wire.Trial{Number: 4, Radio: r}
	}
	nodes := []Node{{Name: "a"}, {Name: "b"}}
	for _, c := range []struct {
		want  string // part of the refusal; "": none
		field Settings
		nodes []Node
		trial wire.Trial
	}{
		{"", Settings{Radio: phy.RadioOFDMRecent, QueueFrames: 50}, nodes, radio(nil)},
		{"", Settings{}, nodes, radio(func(r *wire.Radio) {
			r.Standard, r.Channel, r.TxPowerDbm = "802.11a", 36, new(23.0)
		})},
		{"the rates of 802.11a, b and g only", Settings{Radio: phy.RadioHT20}, nodes, radio(func(r *wire.Radio) {
			r.Standard = phy.Standard80211n
		})},
		{"", Settings{}, nodes, radio(func(r *wire.Radio) { r.Mode, r.RateMbps = "mesh", new(54.0) })},
		{"", Settings{}, nodes, radio(func(r *wire.Radio) { r.Mode, r.RateMbps = "infrastructure", new(11.0) })},
		{"", Settings{}, nodes, radio(func(r *wire.Radio) {
			r.Mode, r.Standard, r.Channel, r.RateMbps = "infrastructure", "802.11a", 36, new(24.0)
		})},
		{"trial 4: radio.mode hotspot", Settings{}, nodes, radio(func(r *wire.Radio) { r.Mode = "hotspot" })},
		{"radio.mode none", Settings{}, nodes, radio(func(r *wire.Radio) { r.Mode = "none" })},
		{"802.11b in mode mesh", Settings{}, nodes, radio(func(r *wire.Radio) {
			r.Mode, r.Standard = "mesh", "802.11b"
		})},
		{"802.11b in mode infrastructure", Settings{}, nodes, radio(func(r *wire.Radio) {
			r.Mode, r.Standard = "infrastructure", "802.11b"
		})},
		{"802.11g are [1 2 5.5 11] Mbit/s", Settings{}, nodes, radio(func(r *wire.Radio) {
			r.Mode, r.RateMbps = "infrastructure", new(24.0)
		})},
		{"tx_power_dbm is absent", Settings{}, nodes, radio(func(r *wire.Radio) { r.TxPowerDbm = nil })},
		{"20 dBm at most", Settings{}, nodes, radio(func(r *wire.Radio) { r.TxPowerDbm = new(20.5) })},
		{"channel 12", Settings{}, nodes, radio(func(r *wire.Radio) { r.Channel = 12 })},
		{"channel 52", Settings{}, nodes, radio(func(r *wire.Radio) { r.Standard, r.Channel = "802.11a", 52 })},
		{"", Settings{}, nodes, radio(func(r *wire.Radio) { r.Standard, r.Channel = "802.11a", 149 })},
		{"field.radio: disc", Settings{Radio: phy.RadioDisc}, nodes, radio(nil)},
		{"field.radio: ns2", Settings{Radio: phy.RadioNS2WaveLAN}, nodes, radio(nil)},
		{"field.propagation: disc", Settings{Propagation: "disc"}, nodes, radio(nil)},
		{"field.rate_control", Settings{RateControl: "minstrel"}, nodes, radio(nil)},
		{"field.basic_rates_mbps", Settings{BasicRatesMbps: []float64{6}}, nodes, radio(nil)},
		{"trial.radio.retry_limit", Settings{ShortRetryLimit: 4}, nodes, radio(nil)},
		{"trial.radio.rts_threshold_bytes", Settings{RTSThresholdBytes: 500}, nodes, radio(nil)},
		{"field.short_preamble", Settings{ShortPreamble: true}, nodes, radio(nil)},
		{"field.long_slot", Settings{LongSlot: new(true)}, nodes, radio(nil)},
		{"field.frame_lost", Settings{FrameLost: true}, nodes, radio(nil)},
		{"field.channels", Settings{Channels: map[string]int{"a": 1}}, nodes, radio(nil)},
		{"has room for 150", Settings{QueueFrames: 151}, nodes, radio(nil)},
		{"node b has no agent", Settings{}, []Node{{Name: "a"}, {Name: "b", Bare: true}}, radio(nil)},
	} {
		err := CheckKernelRadios(Config{Field: c.field, Nodes: c.nodes}, []wire.Trial{c.trial})
		if (err != nil) != (c.want != "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "without --radio mac80211") == c.trial.Radio.HasAccessPoint()) {
			t.Errorf("want %q: %v", c.want, err)
		}
	}
	overhears := radio(nil)
	overhears.Routing.Protocol = "dsr-ns2"
	if err := CheckKernelRadios(Config{Nodes: nodes}, []wire.Trial{overhears}); err == nil {
		t.Error("dsr-ns2 is let through, whose nodes overhear one another")
	}
	full := radio(nil)
	full.Conditions = &wire.Conditions{QueueFrames: new(151)}
	if err := CheckKernelRadios(Config{Nodes: nodes}, []wire.Trial{full}); err == nil {
		t.Error("a trial's queue of 151 frames is let through")
	}
}

// The air keeps to what the agents make of a plan.
func TestTheAirIsThatOfTheAgentsCell(t *testing.T) {
	f := &Field{cfg: Config{MAC80211: true, Field: mustSettings(t, Settings{})}}
	emulated := &Field{cfg: Config{Field: f.cfg.Field}}
	for _, c := range []struct {
		radio wire.Radio
		basic []float64
		long  bool
	}{
		{wire.Radio{Mode: "adhoc", Standard: "802.11g", RateMbps: new(54.0), RetryLimit: new(3)},
			[]float64{1, 2, 5.5, 11, 54}, true},
		{wire.Radio{Mode: "adhoc", Standard: "802.11g", RateMbps: new(11.0)}, []float64{1, 2, 5.5, 11}, true},
		{wire.Radio{Mode: "adhoc", Standard: "802.11b"}, []float64{1, 2, 5.5, 11}, false},
		{wire.Radio{Mode: "adhoc", Standard: "802.11a", RTSThresholdBytes: new(100)}, []float64{6, 12, 24}, false},
		{wire.Radio{Mode: "mesh", Standard: "802.11g", RateMbps: new(54.0)}, []float64{1, 2, 5.5, 11, 54}, false},
		{wire.Radio{Mode: "infrastructure", Standard: "802.11g"}, []float64{1, 2, 5.5, 11}, false},
	} {
		m := f.trialConfig(wire.Trial{Radio: c.radio})
		if !slices.Equal(m.BasicRatesMbps, c.basic) || m.LongSlot != c.long || m.RateMbps != 0 ||
			m.RTSThresholdBytes != 0 || m.ShortRetryLimit != 0 {
			t.Errorf("%+v: %+v", c.radio, m)
		}
		if emulated.trialConfig(wire.Trial{Radio: c.radio}).LongSlot != c.long {
			t.Errorf("%+v: the emulated radio has another slot", c.radio)
		}
	}
	// A rate that is fixed is one that the cell answers at: another one, another cell.
	at := func(mbps float64) medium.Config {
		return f.trialConfig(wire.Trial{Radio: wire.Radio{Standard: "802.11g", RateMbps: &mbps}})
	}
	if sameChannel(at(54), at(24)) || !sameChannel(at(54), at(54)) {
		t.Error("trials at 54 and 24 Mbit/s share a channel, or two at 54 do not")
	}
	in := func(mode string) medium.Config {
		return emulated.trialConfig(wire.Trial{Radio: wire.Radio{Mode: mode, Standard: "802.11g"}})
	}
	if sameChannel(in("adhoc"), in("mesh")) || !sameChannel(in("mesh"), in("mesh")) {
		t.Error("a mesh goes on in an ad hoc cell's slots, or two of a kind do not share a channel")
	}
}
