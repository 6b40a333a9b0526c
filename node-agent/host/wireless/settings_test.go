package wireless

import (
	"fmt"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// Whatever is asked for, the channel carries none of the rates of 802.11n, and
// a fixed rate is one that the whole cell has.
func TestNetworksHaveLegacyRatesOnly(t *testing.T) {
	for standard, want := range map[string]string{"802.11a": "[6 12 24 54]", "802.11b": "[1 2 5.5 11]",
		"802.11g": "[1 2 5.5 11 54]"} {
		r := Settings{Mode: "adhoc", Standard: standard, Channel: 6}
		rate := 54.0
		if standard == "802.11b" {
			rate = 11
		}
		r.RateMbps = &rate
		n := r.Network()
		if n.Width != "20 MHz (no HT)" || fmt.Sprint(n.BasicMbps) != want || fmt.Sprint(r.allowed()) !=
			fmt.Sprint([]float64{rate}) {
			t.Errorf("%s: %+v, allowed %v; want basic rates %s", standard, n, r.allowed(), want)
		}
	}
	if all := (Settings{Standard: "802.11g"}).allowed(); len(all) != 12 || all[11] != 54 {
		t.Errorf("802.11g has %v", all)
	}
}

// Nothing of an SSID can end its line, and no rate of 802.11n is announced.
func TestAccessPointsConfiguration(t *testing.T) {
	got := accessPointConfig(nl80211.Network{Mode: ModeAP, SSID: "a\"}\nctrl_interface=/x", MHz: 2462})
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
