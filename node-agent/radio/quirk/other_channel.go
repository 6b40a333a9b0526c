package quirk

import "fmt"

// otherChannel: the driver follows a cell to its channel, or makes the channel
// wider than it was told.
func otherChannel() Quirk {
	return Quirk{
		Name: "other_channel", Fatal: true,
		Cure: "choose a channel without other cells of this SSID, or use another radio",
		Look: func(s Seen) string {
			switch w, i := s.Want, s.Interface; {
			case w == nil || i.MHz == 0:
				return ""
			case i.MHz != w.MHz:
				return fmt.Sprintf("the driver is on %d MHz, %d was asked for", i.MHz, w.MHz)
			case i.Width != w.Width:
				return fmt.Sprintf("the driver made the channel %q wide, %q was asked for", i.Width, w.Width)
			}
			return ""
		},
	}
}
