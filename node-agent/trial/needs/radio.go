package needs

import (
	"fmt"
	"strconv"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// CompareRadio says in what the radio of a node's interface is not what the plan wants.
func CompareRadio(iface, node string, want wire.Radio, is wire.Caps) error {
	// What is not reported cannot be held against the plan; the records say what was.
	for _, c := range []struct{ what, want, is string }{
		{"mode", want.ModeAt(node), is.Mode}, {"standard", want.Standard, is.Standard},
		{"channel", number(want.Channel), number(is.Channel)},
		{"SSID", want.SSID, is.SSID}, {"BSSID", want.BSSID, is.BSSID},
		{"RTS threshold", whole(want.RTSThresholdBytes), whole(is.RTSThresholdBytes)},
		{"short retry limit", whole(want.RetryLimit), whole(is.ShortRetryLimit)},
		{"long retry limit", whole(want.RetryLimit), whole(is.LongRetryLimit)},
	} {
		if c.want != "" && c.is != "" && c.want != c.is {
			return fmt.Errorf("radio: the %s of %s is %s, the plan wants %s; join the network as the plan says", c.what,
				iface, c.is, c.want)
		}
	}
	return nil
}

// whole is n as a word, empty where nothing is wanted or told.
func whole(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// number is n as a word, empty for 0, which stands for absent.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
