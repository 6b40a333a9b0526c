//go:build guest

package wireless

import (
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/process"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// An access point that sends beacons listens on its own channel, by which its power comes into force, and leaves it for
// no other. Linux 6.1 refuses either unless it is forced; Debian's 6.12.117 refuses neither.
func TestGuestAnAccessPointListensOnItsChannel(t *testing.T) {
	hwsim.NeedGuest(t)
	hwsim.Managers(t)
	d, err := Open(hwsim.Load(t, 1)[0].Interface)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Conn.Close()
	p := process.Daemon{Name: "wpa_supplicant", Binary: "/usr/sbin/wpa_supplicant", Dir: t.TempDir(),
		Interface: d.Interface.Name, Index: d.Interface.Index}
	defer func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}()
	err = d.BeginAccessPoint(nl80211.Network{Mode: ModeAP, SSID: "fieldmesh", MHz: 2437, Width: nl80211.WidthNoHT}, p)
	if err == nil {
		err = d.read(d.Interface.Name)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Scan(2437); err != nil {
		t.Error(err)
	}
	if err := d.Scan(2412); !Unsupported(err) {
		t.Errorf("on another channel: %v", err)
	}
}
