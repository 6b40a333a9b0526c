package scene

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/radios"
	"fieldmesh.dev/fieldmesh/controller/plan/show"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// hotspotDbm is what an access point in a hotspot's place and its stations send with: all that
// the kernel's radios may at 2.4 GHz.
const hotspotDbm = 20.0

// Radios gives trials the radios of a rehearsal, by archive.RunInfo's name of them, and refuses
// what those cannot be. A hotspot is Android's, and a rehearsal has none: over the kernel's own
// radios it becomes an access point with its stations. What is returned says in what the
// rehearsal is then not as the road.
func Radios(c *plan.Campaign, trials []wire.Trial, radio string) (deviations []string, err error) {
	cfg, err := Config(c)
	if err != nil {
		return nil, err
	}
	if radio != archive.RadioMAC80211 {
		return nil, cmp.Or(checkNetworks(trials), checkHellos(trials), checkRates(trials), checkChannels(cfg, trials))
	}
	for i := range trials {
		if r := &trials[i].Radio; r.Mode == wire.ModeHotspot {
			*r = ofLinux(*r)
			if deviations == nil { // a run has one hotspot
				deviations = notAndroid(*r)
			}
		}
	}
	if err := field.CheckKernelRadios(cfg, trials); err != nil {
		return deviations, err
	}
	ratesApart := slices.Clone(trials) // they are the kernel's
	for i := range ratesApart {
		ratesApart[i].Radio.RateMbps = nil
	}
	return deviations, checkChannels(cfg, ratesApart)
}

// checkNetworks refuses trials whose network the emulated radio cannot be: in it all stations are equal and send to
// each other, and none forwards for the others.
func checkNetworks(trials []wire.Trial) error {
	for _, t := range trials {
		if !t.Radio.HasAccessPoint() {
			continue
		}
		return fmt.Errorf("trial %d: its radio's mode is %s, and the emulated radio is an ad hoc one only, in "+
			"which no frame goes by way of an access point: what it carried would be another network's; add "+
			"--clock virtual --radio mac80211, for the kernel's own radios, or rehearse a copy with `radio: {mode: "+
			"adhoc, …}`", t.Number, t.Radio.Mode)
	}
	return nil
}

// checkRates refuses the rates of 802.11g that the emulated radio has in 802.11b only.
func checkRates(trials []wire.Trial) error {
	ofdm := radios.Rates(phy.Standard80211a)
	for _, t := range trials {
		rate := t.Radio.RateMbps
		if rate == nil || field.RadioOf(t.Radio).Standard != phy.Standard80211g || slices.Contains(ofdm, *rate) {
			continue
		}
		return fmt.Errorf("trial %d: radio.rate_mbps %g: an emulated 802.11g has only OFDM's rates, %v; rehearse a "+
			"copy with one of these, or of 802.11b with one of its own, or add --clock virtual --radio mac80211, "+
			"whose 802.11g has those of 802.11b too", t.Number, *rate, ofdm)
	}
	return nil
}

// checkChannels refuses trials whose channel the emulated radio cannot be; it would refuse them when they are placed.
func checkChannels(cfg field.Config, trials []wire.Trial) error {
	known := map[string]bool{}
	for _, t := range trials {
		key, err := json.Marshal([]any{t.Radio, t.Conditions})
		if err != nil {
			return fmt.Errorf("name the channel of trial %d: %w", t.Number, err)
		}
		if known[string(key)] {
			continue
		}
		known[string(key)] = true
		if err := field.CheckChannel(cfg, t); err != nil {
			return fmt.Errorf("trial %d: no emulated channel is as the campaign's field, trial.radio and "+
				"trial.conditions have it: %w", t.Number, err)
		}
	}
	return nil
}

// checkHellos refuses an interval of HELLOs that would not be in force: the emulated radio's reports
// stand for those of AODV and AOMDV.
func checkHellos(trials []wire.Trial) error {
	for _, t := range trials {
		r := t.Routing
		if r.HelloS == nil || r.Protocol != "aodv" && r.Protocol != "aomdv" || !r.BreaksByLostFrames() {
			continue
		}
		return fmt.Errorf("trial %d: routing.hello_s is not in force with %s, which sends no HELLOs where the radio "+
			"reports lost frames, as the emulated radio does; rehearse a copy without it or with link_feedback: off, "+
			"or add --clock virtual --radio mac80211, whose radios report none", t.Number, r.Protocol)
	}
	return nil
}

// ofLinux is what the kernel's own radios have in the place of a hotspot: a network of its name
// on its channel, with the rates that every phone knows.
func ofLinux(hotspot wire.Radio) wire.Radio {
	hotspot.Mode, hotspot.TxPowerDbm = wire.ModeInfrastructure, new(hotspotDbm)
	hotspot.Standard = phy.Standard80211g
	if !slices.Contains(radios.Channels(hotspot.Standard), float64(hotspot.Channel)) {
		hotspot.Standard = phy.Standard80211a
	}
	return hotspot
}

func notAndroid(r wire.Radio) []string {
	return []string{
		fmt.Sprintf("The hotspot and those who join it are rehearsed as an access point and stations of Linux: %s on "+
			"channel %d at %g dBm, without encryption.", r.Standard, r.Channel, *r.TxPowerDbm),
		"What Android's own hotspot chooses is not in it: standard, rates, power and power save, before Android 14 " +
			"the channel too; nor how Android joins again.",
		"All nodes of a rehearsal are Linux with root. Whether a phone's Android can keep or join a hotspot, " +
			"`fieldmesh preflight` finds out; a laptop cannot.",
	}
}

// Rehearsal is what a rehearsal makes of a campaign, as far as its file says by itself, without
// the field being worked out.
func Rehearsal(c *plan.Campaign) (r show.Rehearsal) {
	var settings field.Settings
	trials, err := c.Schedule()
	if err == nil {
		settings, err = Settings(c)
	}
	if err == nil {
		if _, refused := Radios(c, trials, ""); refused != nil {
			r.Flags = "--clock virtual --radio mac80211"
			r.Deviations, err = Radios(c, trials, archive.RadioMAC80211)
			if err != nil && !slices.ContainsFunc(trials, func(t wire.Trial) bool { return t.Radio.HasAccessPoint() }) {
				err = refused // which has the cures
			}
		}
	}
	if err == nil {
		err = moved(trials, settings)
	}
	r.Refused = err
	return r
}
