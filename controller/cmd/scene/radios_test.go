package scene

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/radios"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// The rates and channels that a campaign may plan with a radio by name are those that the emulated radio has.
func TestPlannedRatesAreTheEmulatedRadios(t *testing.T) {
	for _, r := range radios.Known() {
		for _, standard := range r.Standards {
			rates, channels := radios.Rates(standard), radios.Channels(standard)
			if r.Rates != nil {
				rates = r.Rates
			}
			if r.Channels != nil {
				channels = r.Channels
			}
			if standard == phy.Standard80211g {
				rates = radios.Rates("802.11a") // the emulated one has OFDM only
			}
			for _, channel := range append(slices.Clone(channels), 165) {
				p, err := phy.New(phy.Config{Standard: standard, Radio: r.Name, Channel: int(channel)})
				if wide := r.Name == "ht40" || r.Name == "vht80"; (err != nil) != (wide && channel == 165) {
					t.Errorf("%s %s on channel %g: %v", r.Name, standard, channel, err)
				} else if err == nil && !slices.Equal(p.RatesMbps(), rates) {
					t.Errorf("%s %s: rates %v, a campaign may plan %v", r.Name, standard, p.RatesMbps(), rates)
				}
			}
		}
	}
}

// HELLOs of AODV and AOMDV have an interval where no radio reports lost frames: on a road, and over the kernel's own
// radios. The emulated radio reports them, and a rehearsal with it is refused.
func TestHellosThatTheEmulatedRadioStandsForAreRefused(t *testing.T) {
	path := filepath.Join("..", "..", "..", "campaigns", "velocity.yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for routing, refused := range map[string]bool{
		"{protocol: aodv, hello_s: 1}":                     true,
		"{protocol: aomdv, hello_s: 1, link_feedback: on}": true,
		"{protocol: aodv, hello_s: 1, link_feedback: off}": false,
		"{protocol: aodv}":                                 false,
		"{protocol: olsr, hello_s: 1, link_feedback: on}":  false,
	} {
		text := strings.Replace(string(raw), "routing: {protocol: none}", "routing: "+routing, 1)
		c, err := plan.Parse(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		trials, err := c.Schedule()
		if err != nil || trials[0].Routing.Protocol == "none" {
			t.Fatalf("%s: protocol %s, %v", routing, trials[0].Routing.Protocol, err)
		}
		_, err = Radios(c, trials, "")
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "link_feedback: off") {
			t.Errorf("%s: %v", routing, err)
		}
		if _, err := Radios(c, trials, archive.RadioMAC80211); err != nil {
			t.Errorf("%s, over the kernel's radios: %v", routing, err)
		}
		if r := Rehearsal(c); r.Refused != nil || refused != (r.Flags == "--clock virtual --radio mac80211") {
			t.Errorf("%s: %+v", routing, r)
		}
	}
}

// A campaign may ask for what only the emulated radio cannot be, in some of its trials. That is refused before anything
// is made; what the kernel's own radios can be is not refused with them.
func TestWhatTheEmulatedRadioCannotBeIsRefused(t *testing.T) {
	const power, factors = "tx_power_dbm: 20", "factors:"
	const heights = "  propagation: two_ray_ground\n  antenna_height_m: 1.5"
	for _, v := range []struct {
		name, from, to string
		want           string // in the refusal; empty: none
		byKernel       bool   // whether the kernel's own radios are refused with the same words
	}{
		{"rate of 802.11b", power, power + "\n    rate_mbps: 11", "trial 1: radio.rate_mbps 11: ", false},
		{"as a factor", factors, factors + "\n  rate: {key: radio.rate_mbps, levels: [54, 24, 5.5]}", "rate_mbps 5.5: ",
			false},
		{"rate of OFDM", power, power + "\n    rate_mbps: 54", "", false},
		{"rate of 802.11b in its own standard", "standard: 802.11g", "standard: 802.11b\n    rate_mbps: 11", "", false},
		{"short bursts", heights, heights + "\n  channel_error: {mean: 0.6, burst_frames: 1}",
			"bursts of 1 frames cannot give a mean of 0.6: those of 1.5 or more can", true},
		{"short bursts in some trials", factors, factors + "\n  bursts: {key: conditions.channel_error.burst_frames, " +
			"levels: [2, 1]}\n  errors: {key: conditions.channel_error.mean, levels: [0.6]}",
			"bursts of 1 frames cannot give a mean of 0.6", true},
		{"longer bursts", heights, heights + "\n  channel_error: {mean: 0.6, burst_frames: 1.5}", "", false},
		{"reference within a metre", heights, "  propagation: log_distance\n  reference_m: 0.5",
			"reference distance 0.5 m is below 1 m", true},
		{"reference at a metre", heights, "  propagation: log_distance\n  reference_m: 1", "", false},
		{"better than no noise", heights, heights + "\n  unit_noise_offset_db: {laptop-1: -15}",
			"noise figure -5 dB is negative", true},
		{"no noise of its own", heights, heights + "\n  unit_noise_offset_db: {laptop-1: -10}", "", false},
	} {
		c := changed(t, "velocity.yaml", v.from, v.to)
		trials, err := c.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := Config(c)
		if err != nil {
			t.Fatal(err)
		}
		placed := !slices.ContainsFunc(trials, func(trial wire.Trial) bool {
			_, err := field.NewSketch(cfg, trial, 0)
			return err != nil
		})
		_, err = Radios(c, trials, "")
		if placed != (v.want == "") || placed != (err == nil) || err != nil && !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: %v, and that all trials can be placed is %t", v.name, err, placed)
		}
		_, byKernel := Radios(c, trials, archive.RadioMAC80211)
		if v.byKernel != (byKernel != nil) || v.byKernel && !strings.Contains(byKernel.Error(), v.want) {
			t.Errorf("%s, by the kernel's radios: %v", v.name, byKernel)
		}
		r := Rehearsal(c)
		if v.byKernel != (r.Refused != nil) || (err != nil) != (r.Flags != "") {
			t.Errorf("%s: a rehearsal is %+v", v.name, r)
		}
	}
}

// What neither the emulated radio nor the kernel's own can be is refused as the emulated one refuses it, with its cure.
func TestWhatNoRadioCanBeIsRefusedAsTheEmulatedOneDoes(t *testing.T) {
	r := Rehearsal(changed(t, "velocity.yaml", "    tx_power_dbm: 20", "    rate_mbps: 11"))
	for _, want := range []string{"an emulated 802.11g has only OFDM's rates", "[6 9 12 18 24 36 48 54]", "802.11b",
		"--clock virtual --radio mac80211"} {
		if r.Refused == nil || !strings.Contains(r.Refused.Error(), want) {
			t.Errorf("it does not say %q: %v", want, r.Refused)
		}
	}
}

// Keys of the field that a campaign is refused for, since they change nothing, change nothing in the emulated field;
// and beside what they are for they do.
func TestIdleKeysChangeNothingInTheEmulatedField(t *testing.T) {
	const heights = "  propagation: two_ray_ground\n  antenna_height_m: 1.5\n  nmea_hz: 10"
	const g, b, a = "standard: 802.11g\n    channel: 6",
		"standard: 802.11b\n    channel: 6\n    rate_mbps: 11", "standard: 802.11a\n    channel: 36"
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "campaigns", "velocity.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	type found struct {
		field.Sketch
		field.Saturation
	}
	find := func(radio, settings string) (f found) {
		text := strings.NewReplacer(heights, "  "+settings, g, radio, "\n  bravo:",
			"\n  third: {mesh_address: 10.77.0.3/24}\n  bravo:").Replace(string(raw))
		c, err := plan.ParseArchived("velocity.yaml", []byte(text), plan.FullScale)
		if err != nil {
			t.Fatal(err)
		}
		cfg, trials := expanded(t, c)
		if f.Sketch, err = field.NewSketch(cfg, trials[0], 0); err != nil {
			t.Fatal(err)
		}
		if f.Saturation, err = field.SaturateApart(cfg, trials[0], 100, 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, v := range []struct {
		radio, without, with string
		idle                 bool
	}{
		{g, "propagation: log_distance", "antenna_height_m: 6", true},
		{g, "propagation: free_space", "antenna_height_m: 6", true},
		{g, "propagation: two_ray_ground\n  tx_power_dbm: 5", "antenna_height_m: 0.5", false},
		{g, "propagation: log_distance", "short_preamble: true", true},
		{a, "propagation: log_distance", "short_preamble: true", true},
		{b, "propagation: free_space", "short_preamble: true", false},
		{b, "propagation: free_space", "long_slot: false", true},
		{a, "propagation: log_distance", "long_slot: true", true},
		{g, "propagation: free_space", "long_slot: false", false},
		{g, "mobility: {model: chain, spacing_m: 50}", "spacing_m: 300", true},
		{g, "propagation: free_space", "spacing_m: 300", false},
	} {
		same := reflect.DeepEqual(find(v.radio, v.without), find(v.radio, v.without+"\n  "+v.with))
		if same != v.idle {
			t.Errorf("%s, %s, %s: that it changes nothing is %t", v.radio, v.without, v.with, same)
		}
	}
}
