package host

import (
	"net"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

func TestVirtualsThatNoPolicyAllows(t *testing.T) {
	p := policy{interfaces: []string{"mesh0"}, beside: "wlan0"}
	good := Virtual{Interface: "mesh0", Beside: "wlan0", Mode: "adhoc", Channel: 6}
	if refused := p.check(good); refused != nil {
		t.Fatalf("a good one: %v", refused)
	}
	for want, spoil := range map[string]func(*Virtual){
		`"wlan0" is not among`:             func(v *Virtual) { v.Interface = "wlan0" },
		`beside wlan0, not beside "eth0"`:  func(v *Virtual) { v.Beside = "eth0" },
		`beside wlan0, not beside "../x"`:  func(v *Virtual) { v.Beside = "../x" },
		`mode "monitor" is none of adhoc,`: func(v *Virtual) { v.Mode = "monitor" },
		"channel 15 is none of":            func(v *Virtual) { v.Channel = 15 },
	} {
		v := good
		spoil(&v)
		if refused := p.check(v); refused == nil || !strings.Contains(refused.Error(), want) {
			t.Errorf("%s: %v, want %q", v, refused, want)
		}
	}
	if refused := (policy{interfaces: []string{"mesh0"}}).check(good); refused == nil ||
		!strings.Contains(refused.Cure, "as phy_of in agent.yaml") {
		t.Errorf("where none is named: %v", refused)
	}
	// The machine's own interface may be asked for its place only.
	if refused := p.check(Link{Interface: "wlan0", Up: ptr(false)}); refused == nil {
		t.Error("the machine's own interface may be changed")
	}
}

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
		reason, cure string // in them; empty: it can
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

func TestAddressesBesideAnother(t *testing.T) {
	mac := func(text string) net.HardwareAddr {
		m, err := net.ParseMAC(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct{ own, taken, want string }{
		{"00:1b:2c:00:00:07", "", "1e:1b:2c:00:00:07"},
		{"00:1b:2c:00:00:07", "1e:1b:2c:00:00:07", "1a:1b:2c:00:00:07"},
		{"02:00:00:00:00:00", "", "1e:00:00:00:00:00"},
		{"1e:00:00:00:00:00", "", "02:00:00:00:00:00"}, // a local one already
	} {
		var taken []net.HardwareAddr
		if c.taken != "" {
			taken = append(taken, mac(c.taken))
		}
		got, err := localAddress(mac(c.own), taken)
		if err != nil || got.String() != c.want {
			t.Errorf("beside %s: %s, %v; want %s", c.own, got, err, c.want)
		}
	}
	var taken []net.HardwareAddr
	for range shifts { // each is another one, local, and of a station
		m, err := localAddress(mac("00:1b:2c:00:00:07"), taken)
		if err != nil || m[0]&1 != 0 || m[0]&localBit == 0 {
			t.Fatalf("%s, %v", m, err)
		}
		taken = append(taken, m)
	}
	if m, err := localAddress(mac("00:1b:2c:00:00:07"), taken); err == nil {
		t.Errorf("%s is free, and all are taken", m)
	}
	if m, err := localAddress(nil, nil); err == nil {
		t.Errorf("%s beside none", m)
	}
}
