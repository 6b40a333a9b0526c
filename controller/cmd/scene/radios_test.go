package scene

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/radios"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// The rates and channels that a campaign may plan with a radio by name are those that the emulated radio has.
func TestPlannedRatesAreTheEmulatedRadios(t *testing.T) {
	for _, r := range radios.Known() {
		for _, standard := range r.Standards {
			rates, channels := radios.Rates(standard), radios.Channels(standard)
			if r.Rates != nil {
				rates = r.Rates
			}
			if r.Channels != nil {
				channels = r.Channels
			}
			if standard == phy.Standard80211g {
				rates = radios.Rates("802.11a") // the emulated one has OFDM only
			}
			for _, channel := range append(slices.Clone(channels), 165) {
				p, err := phy.New(phy.Config{Standard: standard, Radio: r.Name, Channel: int(channel)})
				if wide := r.Name == "ht40" || r.Name == "vht80"; (err != nil) != (wide && channel == 165) {
					t.Errorf("%s %s on channel %g: %v", r.Name, standard, channel, err)
				} else if err == nil && !slices.Equal(p.RatesMbps(), rates) {
					t.Errorf("%s %s: rates %v, a campaign may plan %v", r.Name, standard, p.RatesMbps(), rates)
				}
			}
		}
	}
}

// HELLOs of AODV and AOMDV have an interval where no radio reports lost frames: on a road, and over the kernel's own
// radios. The emulated radio reports them, and a rehearsal with it is refused.
func TestHellosThatTheEmulatedRadioStandsForAreRefused(t *testing.T) {
	path := filepath.Join("..", "..", "..", "campaigns", "velocity.yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for routing, refused := range map[string]bool{
		"{protocol: aodv, hello_s: 1}":                     true,
		"{protocol: aomdv, hello_s: 1, link_feedback: on}": true,
		"{protocol: aodv, hello_s: 1, link_feedback: off}": false,
		"{protocol: aodv}":                                 false,
		"{protocol: olsr, hello_s: 1, link_feedback: on}":  false,
	} {
		text := strings.Replace(string(raw), "routing: {protocol: none}", "routing: "+routing, 1)
		c, err := plan.Parse(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		trials, err := c.Schedule()
		if err != nil || trials[0].Routing.Protocol == "none" {
			t.Fatalf("%s: protocol %s, %v", routing, trials[0].Routing.Protocol, err)
		}
		_, err = Radios(c, trials, "")
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "link_feedback: off") {
			t.Errorf("%s: %v", routing, err)
		}
		if _, err := Radios(c, trials, archive.RadioMAC80211); err != nil {
			t.Errorf("%s, over the kernel's radios: %v", routing, err)
		}
		if r := Rehearsal(c); r.Refused != nil || refused != (r.Flags == "--clock virtual --radio mac80211") {
			t.Errorf("%s: %+v", routing, r)
		}
	}
}
