package quirk

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// htRates: the driver sends at rates of 802.11n or later on a channel that was
// set up without them.
func htRates() Quirk {
	return Quirk{
		Name: "ht_rates", Fatal: true,
		Cure: "fix a rate (`rate_mbps`), or use another radio",
		Look: func(s Seen) string {
			if s.Interface.Width != nl80211.WidthNoHT {
				return ""
			}
			for _, st := range s.Stations {
				if st.TxHT {
					return fmt.Sprintf("the driver sends to %s at a rate of 802.11n or later", st.MAC)
				}
			}
			return ""
		},
	}
}
