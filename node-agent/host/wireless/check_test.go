package wireless

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

func TestWhatARadioCannotBeBesideTheMachinesOwn(t *testing.T) {
	own := nl80211.Interface{Name: "wlan0", Mode: "managed", MHz: 2462}
	phy := func(channels int, modes ...string) nl80211.Phy {
		return nl80211.Phy{Name: "phy0", Modes: []string{"adhoc", "mesh", "managed"},
			Combinations: []nl80211.Combination{
				{Interfaces: 2, Channels: channels, Limits: []nl80211.Limit{{Interfaces: 1, Modes: []string{"managed"}},
					{Interfaces: 1, Modes: modes}}}}}
	}
	for name, c := range map[string]struct {
		phy          nl80211.Phy
		channel      int
		other        nl80211.Interface
		reason, cure string // In them; empty: it can
	}{
		"on the own network's channel": {phy(1, "adhoc"), 11, own, "", ""},
		"on another": {phy(1, "adhoc"), 6, own, "wlan0 is in its own network on channel 11, " +
			"the plan wants channel 6, and the radio (phy0) can be on one channel only", "set that network's access " +
			"point to channel 6, plan channel 11, or leave the network"},
		"on another, where it can be both": {phy(2, "adhoc"), 6, own, "", ""},
		"in no network": {phy(1, "adhoc"), 6, nl80211.Interface{Name: "wlan0", Mode: "managed"}, "",
			""},
		"outside 2.4 and 5 GHz": {phy(1, "adhoc"), 6, nl80211.Interface{Name: "wlan0", Mode: "managed", MHz: 5955},
			"on 5955 MHz", "nmcli device disconnect wlan0"},
		"a mesh only": {phy(1, "mesh"), 11, own, "the radio (phy0) cannot be in adhoc mode beside wlan0, " +
			"which is managed: at once it can have #{ managed } <= 1, #{ mesh } <= 1", "; or plan mode mesh"},
		"neither": {phy(1, "ap"), 11, own, "cannot be in adhoc mode", "name wlan0 itself as `interface`"},
		"one interface only": {nl80211.Phy{Name: "phy0", Modes: []string{"adhoc"}}, 11, own,
			"at once it can have one interface only", "a second radio"},
	} {
		reason, cure := sharedBy(c.phy, "adhoc", c.channel, c.other)
		if !strings.Contains(reason, c.reason) || !strings.Contains(cure, c.cure) || (reason == "") !=
			(c.reason == "") {
			t.Errorf("%s: %q (%s), want %q (%s)", name, reason, cure, c.reason, c.cure)
		}
	}
	if _, cure := sharedBy(phy(1, "ap"), "adhoc", 11, own); strings.Contains(cure, "plan mode") {
		t.Errorf("the cure names a mode that it cannot have: %s", cure)
	}
}
