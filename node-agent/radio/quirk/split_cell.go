package quirk

import "fmt"

// recentMs is how long ago a cell was heard at most that is on the air: ten
// beacons of 102.4 ms, some of which are lost, and one scan's absence.
const recentMs = 3000

// splitCell: cells of one SSID on one channel that did not become one (IEEE
// 802.11-2020, 11.1.4 has the younger join the older). No frame of one is
// taken in the other, though both are strong.
func splitCell() Quirk {
	return Quirk{
		Name: "split_cell", Fatal: true,
		Cure: "give the plan a fixed `bssid`; where it has one, the other node's driver ignores it: use another " +
			"radio there",
		Look: func(s Seen) string {
			if s.Cell == nil || !s.Cell.IBSS() {
				return ""
			}
			for _, c := range s.Cells {
				if c.IBSS() && c.SSID == s.Cell.SSID && c.MHz == s.Cell.MHz && c.BSSID != s.Cell.BSSID && c.SeenMsAgo <=
					recentMs {
					return fmt.Sprintf("%q is on the air twice: here with BSSID %s, and with %s", s.Cell.SSID,
						s.Cell.BSSID, c.BSSID)
				}
			}
			return ""
		},
	}
}
