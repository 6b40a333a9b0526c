package host

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

func TestRadiosThatNoPolicyAllows(t *testing.T) {
	good := func() Radio {
		return Radio{Interface: "wlan0", Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "mesh",
			BSSID: "02:11:22:33:44:55"}
	}
	p := policy{interfaces: []string{"wlan0"}}
	if reason, _ := good().check(p); reason != "" {
		t.Fatalf("a good one: %s", reason)
	}
	for want, spoil := range map[string]func(*Radio){
		`"eth0" is not among`:     func(r *Radio) { r.Interface = "eth0" },
		"none of adhoc, mesh":     func(r *Radio) { r.Mode = "monitor" },
		"its own address":         func(r *Radio) { r.Mode = "ap" },
		"none of 802.11a":         func(r *Radio) { r.Standard = "802.11n" },
		"channel 36 is none of":   func(r *Radio) { r.Channel = 36 },
		"channel 15 is none of":   func(r *Radio) { r.Channel = 15 },
		"channel 6 is none of":    func(r *Radio) { r.Standard = "802.11a" },
		"an SSID of 0 bytes":      func(r *Radio) { r.SSID = "" },
		"an SSID of 33 bytes":     func(r *Radio) { r.SSID = strings.Repeat("x", 33) },
		"65 Mbit/s is not a rate": func(r *Radio) { r.RateMbps = ptr(65.0) },
		"54 Mbit/s is not a rate": func(r *Radio) { r.Standard, r.RateMbps = "802.11b", ptr(54.0) },
		"31 dBm is outside":       func(r *Radio) { r.TxPowerDbm = ptr(31.0) },
		"-1 dBm is outside":       func(r *Radio) { r.TxPowerDbm = ptr(-1.0) },
		"threshold 2348":          func(r *Radio) { r.RTSThresholdBytes = ptr(2348) },
		"retry limit 0":           func(r *Radio) { r.RetryLimit = ptr(0) },
		"address of a group":      func(r *Radio) { r.BSSID = "01:00:5e:00:00:01" },
		`"home" is not a BSSID`:   func(r *Radio) { r.BSSID = "home" },
		"a mesh has no BSSID":     func(r *Radio) { r.Mode = "mesh" },
	} {
		r := good()
		spoil(&r)
		if reason, _ := r.check(p); !strings.Contains(reason, want) {
			t.Errorf("refused because %q, want %q", reason, want)
		}
	}
}

// Whatever is asked for, the channel carries none of the rates of 802.11n, and
// a fixed rate is one that the whole cell has.
func TestNetworksHaveLegacyRatesOnly(t *testing.T) {
	for standard, want := range map[string]string{"802.11a": "[6 12 24 54]", "802.11b": "[1 2 5.5 11]",
		"802.11g": "[1 2 5.5 11 54]"} {
		r := Radio{Mode: "adhoc", Standard: standard, Channel: 6}
		rate := 54.0
		if standard == "802.11b" {
			rate = 11
		}
		r.RateMbps = &rate
		n := r.network()
		if n.Width != "20 MHz (no HT)" || fmt.Sprint(n.BasicMbps) != want || fmt.Sprint(r.allowed()) !=
			fmt.Sprint([]float64{rate}) {
			t.Errorf("%s: %+v, allowed %v; want basic rates %s", standard, n, r.allowed(), want)
		}
	}
	if all := (Radio{Standard: "802.11g"}).allowed(); len(all) != 12 || all[11] != 54 {
		t.Errorf("802.11g has %v", all)
	}
}

// Nothing of an SSID can end its line, and no rate of 802.11n is announced.
func TestAccessPointsConfiguration(t *testing.T) {
	got := accessPointConfig(nl80211.Network{Mode: modeAP, SSID: "a\"}\nctrl_interface=/x", MHz: 2462})
	for _, want := range []string{"ssid=61227d0a6374726c5f696e746572666163653d2f78\n", "frequency=2462\n",
		"disable_ht=1\n", "mode=2\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "ctrl_interface") {
		t.Errorf("it can be spoken to:\n%s", got)
	}
}

func TestAnAccessPointNeedsAProgram(t *testing.T) {
	k := &kernel{dir: "/state", binaries: map[string]string{}}
	var refused *Refused
	if _, err := k.prepareAccessPoint(7, Radio{Mode: modeAP}, 3); !errors.As(err, &refused) ||
		!strings.Contains(refused.Cure, "apt-get install wpasupplicant") {
		t.Errorf("without wpa_supplicant: %v", err)
	}
	if p, err := k.prepareAccessPoint(7, Radio{Mode: modeStation}, 3); p != nil || err != nil {
		t.Errorf("a station: %+v, %v", p, err)
	}
}
