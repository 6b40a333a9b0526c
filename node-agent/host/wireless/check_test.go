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

// A radio is not taken out of a network that it could not join again.
func TestANetworkThatCouldNotBeJoinedAgainIsNotLeft(t *testing.T) {
	const noHT = nl80211.WidthNoHT
	is := func(mode, width string) nl80211.Interface {
		return nl80211.Interface{Name: "wlan0", Mode: mode, MHz: 2437, Width: width}
	}
	for name, c := range map[string]struct {
		is           nl80211.Interface
		cell         *nl80211.BSS
		reason, cure string // in them; empty: it may be left
	}{
		"a mesh":         {is("mesh", noHT), nil, "wlan0 is in use: it is in a mesh", "`iw dev wlan0 mesh leave`"},
		"an open cell":   {is("adhoc", "20 MHz"), &nl80211.BSS{Capability: 2}, "", ""},
		"an unseen cell": {is("adhoc", noHT), nil, "", ""},
		"a cell with a key": {is("adhoc", noHT), &nl80211.BSS{SSID: "m", Capability: 0x12}, `the cell "m", whose key`,
			"`iw dev wlan0 ibss leave`"},
		"a wide cell": {is("adhoc", "40 MHz"), &nl80211.BSS{Capability: 2}, `an ad hoc cell of width "40 MHz"`,
			"`iw dev wlan0 ibss leave`"},
	} {
		reason, cure := notRejoined(c.is, c.cell)
		if !strings.Contains(reason, c.reason) || !strings.Contains(cure, c.cure) || (reason == "") !=
			(c.reason == "") {
			t.Errorf("%s: %q (%s), want %q (%s)", name, reason, cure, c.reason, c.cure)
		}
	}
	d := &Device{Interface: nl80211.Interface{Name: "wlan0", Mode: "mesh"}}
	if reason, _ := d.checkUse(Settings{Interface: "wlan0"}); reason != "" {
		t.Errorf("a mesh interface that is in no mesh: %s", reason)
	}
	d.Interface.MHz = 2437
	if reason, _ := d.checkUse(Settings{Interface: "wlan0"}); reason == "" {
		t.Error("a mesh is left that could not be joined again")
	}
}

// The kernel takes the most that a channel allows for whatever is more, and says yes.
func TestMorePowerThanAChannelAllowsIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		want   *float64
		most   float64
		reason string // in it; empty: none
	}{
		"more":        {new(27.0), 20, "wlan0 may send with 20 dBm at most on channel 6"},
		"the most":    {new(20.0), 20, ""},
		"less":        {new(5.0), 20, ""},
		"none wanted": {nil, 20, ""},
		"no limit":    {new(27.0), 0, ""},
	} {
		reason, _ := checkPower(Settings{Interface: "wlan0", Channel: 6, TxPowerDbm: c.want}, c.most, "DE")
		if !strings.Contains(reason, c.reason) || (reason == "") != (c.reason == "") {
			t.Errorf("%s: %q, want %q", name, reason, c.reason)
		}
	}
}
