package quirk

import (
	"fmt"
	"time"
)

// deadAfter is how long nothing is heard from a network before that is told: a
// hundred beacons.
const deadAfter = 10 * time.Second

// deadCell: the driver offers the mode, says that it has joined, and neither
// sends beacons nor takes frames. What is heard in that case is nothing, as
// when nobody is in reach: so it is told, and ends no trial.
func deadCell() Quirk {
	return Quirk{
		Name: "dead_cell",
		Cure: "when the others are in reach, the driver offers this mode without doing it: use another radio",
		Look: func(s Seen) string {
			if mode := s.Interface.Mode; mode != "adhoc" && mode != "mesh" || s.Interface.MHz == 0 ||
				s.Joined < deadAfter {
				return ""
			}
			for _, st := range s.Stations {
				if st.InactiveMs == nil || *st.InactiveMs < float64(deadAfter.Milliseconds()) {
					return ""
				}
			}
			return fmt.Sprintf("nothing was heard from the network for %.0f s", deadAfter.Seconds())
		},
	}
}
