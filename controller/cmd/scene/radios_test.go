package scene

import (
	"slices"
	"testing"

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
