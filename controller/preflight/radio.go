package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// settable is what radios call themselves whose mode and channel the agent
// sets; emulated is the rehearsal's, which the field sets.
const (
	settable = "nl80211"
	emulated = "medium"
)

func (j *judge) radios() []wire.Radio {
	var out []wire.Radio
	for _, t := range j.trials {
		known := slices.ContainsFunc(out, func(r wire.Radio) bool {
			return r.ModeAt(j.name) == t.Radio.ModeAt(j.name) && r.Standard == t.Radio.Standard && r.Channel ==
				t.Radio.Channel && fmt.Sprint(orZero(r.RateMbps)) == fmt.Sprint(orZero(t.Radio.RateMbps))
		})
		if t.Radio.Mode != "" && t.Radio.Mode != "none" && !known {
			out = append(out, t.Radio)
		}
	}
	return out
}

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// hotspot returns the plan's radio where phones keep and join a hotspot of Android's.
func (j *judge) hotspot() (wire.Radio, bool) {
	i := slices.IndexFunc(j.trials, func(t wire.Trial) bool { return t.Radio.Mode == wire.ModeHotspot })
	if i < 0 {
		return wire.Radio{}, false
	}
	return j.trials[i].Radio, true
}

// androidsRadio holds the phone's Android against the plan. What it will really do,
// only arming tells.
func (j *judge) androidsRadio(want wire.Radio) {
	api, keeps := j.st.Host.AndroidAPI, want.AccessPoint == j.name
	if j.st.InterfaceUp == nil && keeps { // with many phones it is there while the hotspot is
		j.open = slices.DeleteFunc(j.open, func(p wire.Problem) bool { return p.Need == "radio" })
	} else if j.problems("radio") {
		return
	}
	switch {
	case api == 0:
		j.unmet("radio", "the plan has phones keep and join a hotspot, and no Android runs on the node",
			"plan `radio: {mode: infrastructure}`, which laptops can do, or take a rooted phone")
	case api < wire.AndroidJoinsFromAPI:
		j.unmet("radio", fmt.Sprintf("its Android, of API level %d, lets no program join a network", api),
			"use Android 11 or newer, or join by hand and plan `radio: {mode: none}`")
	case keeps && api < wire.AndroidHotspotFromAPI:
		j.unmet("radio", fmt.Sprintf("its Android, of API level %d, lets no program start a hotspot", api),
			"have the other phone keep it (radio.access_point), or use Android 12 or newer")
	case keeps:
		j.met("radio", "Android of API level %d will keep the hotspot on %s", api, j.st.Interface)
	default:
		j.met("radio", "Android of API level %d will join the hotspot by %s", api, j.st.Interface)
	}
}

// radio holds modes and rates against the plan.
func (j *judge) radio() {
	if want, is := j.hotspot(); is && !j.withoutRoot() {
		j.androidsRadio(want)
		return
	}
	if j.problems("radio") {
		return
	}
	wanted, caps := j.radios(), j.st.Radio
	switch {
	case len(wanted) > 0 && j.withoutRoot():
		j.unmet("radio", "the plan sets its radio to "+wanted[0].ModeAt(j.name)+" mode, and "+noRoot+"leaves the "+
			"radio as it is",
			"join the network by hand and say `radio: {mode: none}` in the campaign; or "+haveRoot)
	case len(wanted) == 0 && j.st.InterfaceUp == nil && caps != nil && caps.Beside != nil:
		j.unmet("radio", fmt.Sprintf("the plan leaves %s as it is, and it is made beside %s only for a plan that "+
			"sets its radio", j.st.Interface, caps.Beside.Interface),
			fmt.Sprintf("say in the campaign which network it joins (`radio`), or name %s as `interface` in the "+
				"agent's configuration, without `phy_of`", caps.Beside.Interface))
	case len(wanted) == 0:
		j.put("radio", Unneeded, "the plan leaves "+j.st.Interface+" as it is", "")
	case caps == nil:
		j.unmet("radio", j.st.Interface+" is not a Wi-Fi interface", "correct `interface` in the agent's "+
			"configuration, or say `radio: {mode: none}` in the campaign")
	case caps.Driver == emulated:
		j.met("radio", "the emulated field sets it")
	default:
		j.realRadio(wanted, *caps)
	}
}

func (j *judge) realRadio(wanted []wire.Radio, caps wire.Caps) {
	fine := true
	for _, r := range wanted {
		mode := r.ModeAt(j.name)
		switch {
		case r.Emulated():
			fine = false
			j.unmet("radio", r.Standard+" is for rehearsals only: the agent sets no radio to its rates",
				"plan 802.11a, 802.11b or 802.11g")
		case caps.Driver == settable && len(caps.Modes) > 0 && !slices.Contains(caps.Modes, mode):
			fine = false
			j.unmet("radio", fmt.Sprintf("its driver has no mode %s, only %s", mode, strings.Join(caps.Modes, ", ")),
				"take another radio, or another mode in the campaign (`infrastructure` is for radios that can be an "+
					"access point or a station only)")
		case caps.Beside != nil && caps.Beside.Channels[mode] == 0:
			fine = false
			found, cure := cannotBeBeside(mode, caps)
			j.unmet("radio", found, cure)
		case caps.Driver != settable && caps.Mode != "" && caps.Mode != mode:
			fine = false
			j.unmet("radio", fmt.Sprintf("it is in mode %s, and the agent cannot set it", caps.Mode),
				"set it to "+mode+" by what serves its feedback socket")
		case caps.Driver == settable && mode == "ap" && j.st.Tools["wpa_supplicant"] == "":
			fine = false
			j.unmet("radio", "there is no wpa_supplicant, which makes it an access point",
				"install it (apt-get install wpasupplicant), name its place as `binaries`, or choose another "+
					"radio.access_point in the campaign")
		case r.RateMbps != nil && len(caps.RatesMbps) > 0 && !slices.Contains(caps.RatesMbps, *r.RateMbps):
			fine = false
			j.unmet("radio", fmt.Sprintf("it has no rate of %g Mbit/s", *r.RateMbps),
				fmt.Sprintf("choose one of %v, or leave rate_mbps out", caps.RatesMbps))
		}
	}
	if fine && caps.Beside != nil {
		j.met("radio", "%s: %s, made beside %s for the run", caps.Driver, j.st.Interface, caps.Beside.Interface)
	} else if fine {
		j.met("radio", "%s: %s", caps.Driver, cmp.Or(strings.Join(caps.Modes, ", "), caps.Mode))
	}
}

// cannotBeBeside says why the radio cannot be in a mode while it is the machine's own too.
func cannotBeBeside(mode string, caps wire.Caps) (found, cure string) {
	own := caps.Beside
	cure = fmt.Sprintf("name %s itself as `interface` in the agent's configuration, without `phy_of`: it leaves its "+
		"own network for the run; or give the node a second radio", own.Interface)
	for _, instead := range []string{"adhoc", "mesh"} {
		if own.Channels[instead] > 0 {
			cure += "; or plan mode " + instead
		}
	}
	return fmt.Sprintf("its radio cannot be in %s mode beside %s, which is %s: at once it can have %s",
		mode, own.Interface, own.Mode, cmp.Or(strings.Join(caps.Combinations, "; "), "one interface only")), cure
}

// besides reports what the machine's own network does to the plan's channels,
// where the radio is in both at once; true when it cannot be.
func (j *judge) besides(wanted []wire.Radio, caps wire.Caps) (cannot bool) {
	own := caps.Beside
	if own == nil || own.Channel == 0 {
		return false
	}
	leave := fmt.Sprintf("leave that network for the run: nmcli device disconnect %s", own.Interface)
	for _, r := range wanted {
		switch {
		case own.Channel == r.Channel:
			j.put("channel", Unknown, fmt.Sprintf("%s is in its own network on channel %d too: what that sends is in "+
				"the same air", own.Interface, own.Channel), leave+"; or let little go over it")
		case own.Channels[r.ModeAt(j.name)] == 1:
			cannot = true
			j.unmet("channel", fmt.Sprintf("%s is in its own network on channel %d, the plan wants channel %d, and "+
				"the radio can be on one channel only", own.Interface, own.Channel, r.Channel),
				fmt.Sprintf("set that network's access point to channel %d, or plan channel %d; or %s", r.Channel,
					own.Channel, leave))
		case own.Channels[r.ModeAt(j.name)] > 1:
			j.put("channel", Unknown, fmt.Sprintf("%s is in its own network on channel %d, the plan wants channel "+
				"%d: the radio shares its time between the two, and hears nothing of the one while it is on the other",
				own.Interface, own.Channel, r.Channel),
				leave+fmt.Sprintf("; or set its access point to channel %d", r.Channel))
		}
	}
	return cannot
}

// channel holds the channels against the law of the place, as the kernel
// knows it, and against others who use them.
func (j *judge) channel() {
	if want, is := j.hotspot(); is {
		why := fmt.Sprintf("Android knows whether it may use channel %d, and says so when it starts the hotspot",
			want.Channel)
		j.put("regulatory", Unknown, why, "try it at a table first")
		j.put("channel", Unknown, "who else uses it is not known", "look with an app that lists networks")
		return
	}
	wanted, caps := j.radios(), j.st.Radio
	if len(wanted) == 0 || caps == nil || caps.Driver == emulated {
		why := "the field is emulated"
		switch {
		case len(wanted) == 0:
			why = "the plan sets no channel"
		case caps == nil:
			why = j.st.Interface + " is not a Wi-Fi interface"
		}
		j.put("regulatory", Unneeded, why, "")
		j.put("channel", Unneeded, why, "")
		return
	}
	for _, r := range wanted {
		if len(caps.Channels) > 0 && !slices.Contains(caps.Channels, r.Channel) {
			j.unmet("regulatory", fmt.Sprintf("no network may be begun on channel %d in domain %s, only on %v",
				r.Channel, cmp.Or(caps.Country, "unknown"), caps.Channels),
				"set the country where the radio is (iw reg set), if it is wrong; else choose one of these channels")
		} else {
			j.met("regulatory", "domain %s has channel %d", cmp.Or(caps.Country, "unknown"), r.Channel)
		}
	}
	if j.besides(wanted, *caps) {
		return
	}
	if others := heardOn(wanted, *caps); others != "" {
		j.put("channel", Unknown, "also used by "+others, "choose a channel that nobody else uses, or a place "+
			"farther from them; what they cost is not known")
		return
	}
	switch {
	case j.told.Scanned:
		j.met("channel", "nobody else was heard on it in a scan just now")
	case j.told.ScanErr != nil:
		p := Unreached(j.told.ScanErr)
		j.put("channel", Unknown, "it could not be scanned: "+p.Found, p.Cure)
	default:
		j.put("channel", Unknown, "nobody else was heard lately, and nobody may have looked",
			"have the nodes listen: `fieldmesh preflight --scan` with the same file")
	}
}

// overlapping is how far apart two channels of 2.4 GHz are that share part of
// their 20 MHz; channels of 5 GHz do not overlap.
const overlapping = 4

// heardOn lists the networks of others that a radio has heard on the wanted
// channels, or beside them.
func heardOn(wanted []wire.Radio, caps wire.Caps) string {
	var out []string
	for _, h := range caps.Heard {
		if slices.ContainsFunc(wanted, func(r wire.Radio) bool {
			apart := max(h.Channel-r.Channel, r.Channel-h.Channel)
			return h.SSID != r.SSID && (apart == 0 || apart <= overlapping && h.Channel <= 14 && r.Channel <= 14)
		}) {
			text := fmt.Sprintf("%q on channel %d", h.SSID, h.Channel)
			if h.SignalDbm != nil {
				text += fmt.Sprintf(" at %.0f dBm", *h.SignalDbm)
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}
