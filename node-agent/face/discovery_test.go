package face

import (
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/config"
)

// Apps may ask over whichever interface leads to control, and over no other.
func TestOverWhichInterfacesAnAppFindsTheNode(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   config.Config
		iface string
		finds bool
	}{
		{"any", config.Config{Interface: "wlan0"}, "usb0", true},
		{"under test", config.Config{Interface: "wlan0"}, "wlan0", false},
		{"under test, as it stands", config.Config{Interface: "wlan0", Privileges: config.NoPrivileges}, "wlan0", true},
		{"the radio's other interface", config.Config{Interface: "mesh0", PhyOf: "wlan0"}, "wlan0", true},
		{"control's own", config.Config{Interface: "wlan0", ControlInterface: "usb0"}, "usb0", true},
		{"beside control's own", config.Config{Interface: "wlan0", ControlInterface: "usb0"}, "eth0", false},
	} {
		if finds := (&Face{cfg: c.cfg}).controlled(c.iface); finds != c.finds {
			t.Errorf("%s: over %s: %t", c.name, c.iface, finds)
		}
	}
}
