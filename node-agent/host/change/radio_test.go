package change

import (
	"errors"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/wireless"
)

func TestRadiosThatNoPolicyAllows(t *testing.T) {
	good := func() Radio {
		return Radio{Interface: "wlan0", Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "mesh",
			BSSID: "02:11:22:33:44:55"}
	}
	p := Policy{Interfaces: []string{"wlan0"}}
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
		"65 Mbit/s is not a rate": func(r *Radio) { r.RateMbps = new(65.0) },
		"54 Mbit/s is not a rate": func(r *Radio) { r.Standard, r.RateMbps = "802.11b", new(54.0) },
		"31 dBm is outside":       func(r *Radio) { r.TxPowerDbm = new(31.0) },
		"-1 dBm is outside":       func(r *Radio) { r.TxPowerDbm = new(-1.0) },
		"threshold 2348":          func(r *Radio) { r.RTSThresholdBytes = new(2348) },
		"retry limit 0":           func(r *Radio) { r.RetryLimit = new(0) },
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

func TestAnAccessPointNeedsAProgram(t *testing.T) {
	k := &Kernel{dir: "/state", binaries: map[string]string{}}
	var refused *Refused
	if _, err := k.prepareAccessPoint(7, Radio{Mode: wireless.ModeAP}, 3); !errors.As(err, &refused) ||
		!strings.Contains(refused.Cure, "apt-get install wpasupplicant") {
		t.Errorf("without wpa_supplicant: %v", err)
	}
	if p, err := k.prepareAccessPoint(7, Radio{Mode: wireless.ModeStation}, 3); p != nil || err != nil {
		t.Errorf("a station: %+v, %v", p, err)
	}
}
