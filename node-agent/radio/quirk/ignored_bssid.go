package quirk

import "fmt"

// ignoredBSSID: the driver makes up a BSSID of its own, or takes that of the
// first cell with the SSID, where the plan fixed one. Two such radios end in
// two cells.
func ignoredBSSID() Quirk {
	return Quirk{
		Name: "ignored_bssid", Fatal: true,
		Cure: "use another radio, or leave `bssid` out and have the nodes join one after the other",
		Look: func(s Seen) string {
			if s.Want == nil || s.Want.BSSID == "" || s.Cell == nil || s.Cell.SSID != s.Want.SSID || s.Cell.BSSID ==
				s.Want.BSSID {
				return ""
			}
			return fmt.Sprintf("the driver joined %q with BSSID %s, %s was asked for", s.Cell.SSID, s.Cell.BSSID,
				s.Want.BSSID)
		},
	}
}
