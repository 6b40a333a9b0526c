package scene

import (
	"cmp"
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
	if radio != archive.RadioMAC80211 {
		return nil, cmp.Or(field.CheckRadios(trials), checkHellos(trials))
	}
	for i := range trials {
		if r := &trials[i].Radio; r.Mode == wire.ModeHotspot {
			*r = ofLinux(*r)
			if deviations == nil { // a run has one hotspot
				deviations = notAndroid(*r)
			}
		}
	}
	cfg, err := Config(c)
	if err != nil {
		return nil, err
	}
	return deviations, field.CheckKernelRadios(cfg, trials)
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
		}
	}
	if err == nil {
		err = moved(trials, settings)
	}
	r.Refused = err
	return r
}
