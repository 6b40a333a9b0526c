//go:build guest

//guest:kernel 6.12

package change

import (
	"log/slog"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/wireless"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// The power of an access point and of its station is in force. Linux 6.12 tells a card
// that has one channel, as these have, only when the channel is set next.
func TestGuestPowerInAnInfrastructure(t *testing.T) {
	hwsim.NeedGuest(t)
	hwsim.Managers(t)
	k, err := NewKernel(t.TempDir(), map[string]string{supplicant: "/usr/sbin/wpa_supplicant"}, 0, "",
		slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	radios := hwsim.Load(t, 2)
	conn, err := nl80211.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i, mode := range []string{wireless.ModeAP, wireless.ModeStation} {
		c := Radio{Interface: radios[i].Interface, Mode: mode, Standard: "802.11g", Channel: 6, SSID: "fieldmesh",
			TxPowerDbm: new(12.0)}
		u, err := k.Prepare(uint64(i), c)
		if err == nil {
			defer func() {
				if _, err := k.Revert(u); err != nil {
					t.Error(err)
				}
			}()
			err = k.Apply(c, u)
		}
		if err != nil {
			t.Fatal(err)
		}
		is, err := conn.Interface(c.Interface)
		switch {
		case err != nil || is == nil || is.TxPowerDbm == nil:
			t.Errorf("as %s: read back %+v, %v", mode, is, err)
		case *is.TxPowerDbm != *c.TxPowerDbm:
			t.Errorf("as %s: read back %g dBm, want %g dBm", mode, *is.TxPowerDbm, *c.TxPowerDbm)
		}
	}
}
