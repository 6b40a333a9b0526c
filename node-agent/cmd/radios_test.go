package cmd

import (
	"strings"
	"testing"
)

func TestRadioLines(t *testing.T) {
	for _, c := range []struct {
		radio radioOf
		want  string
	}{
		{radioOf{Interface: "wlan0", Driver: "ath9k", Modes: []string{"managed", "adhoc", "mesh"}, Channels: []int{1}},
			"wlan0       ath9k: can be a node: ad hoc (IBSS), 802.11s mesh"},
		{radioOf{Radio: "phy1", Modes: []string{"mesh"}, Channels: []int{1}},
			"phy1        of an unknown driver: can be a node: 802.11s mesh"},
		{radioOf{Interface: "wlan0", Driver: "iwlwifi", Modes: []string{"managed", "adhoc"}},
			"cannot be a node: no channel is allowed here"},
		{radioOf{Modes: []string{"managed", "ap"}, Channels: []int{1}}, "can be the access point, or a station"},
		{radioOf{Modes: []string{"managed"}, Channels: []int{1}}, "can be a station"},
		{radioOf{Modes: []string{"monitor"}, Channels: []int{1}}, "cannot be a node: its driver offers monitor"},
	} {
		got := radioLines([]radioOf{c.radio}, "")
		if len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("of %+v: %q, want %q", c.radio, got, c.want)
		}
		if can := strings.Contains(c.want, "can be a node:"); c.radio.canBeNode() != can {
			t.Errorf("%+v can be a node: %t", c.radio, !can)
		}
	}
	if got := radioLines(nil, "not permitted"); len(got) != 1 || got[0] != "radio       unknown: not permitted" {
		t.Errorf("of unknown radios: %q", got)
	}
	if got := radioLines(nil, ""); len(got) != 1 || !strings.Contains(got[0], "plug in a Wi-Fi adapter") {
		t.Errorf("of no radio: %q", got)
	}
}
