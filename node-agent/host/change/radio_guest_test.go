//go:build guest

//guest:kernel 6.12

package change

import (
	"log/slog"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/wireless"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/test/testnet"
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

// A station does not sleep, whatever the interface was before and whoever has let it sleep since; then it is as it was.
func TestGuestAStationDoesNotSleep(t *testing.T) {
	hwsim.NeedGuest(t)
	hwsim.Managers(t)
	k, err := NewKernel(t.TempDir(), nil, 0, "", slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	radios := hwsim.Load(t, 2)
	home := testnet.NewNS(t, "home")
	radios[0].Move(t, home, "wlan0")
	hwsim.Home(t, home, "wlan0", "fieldmesh", "192.168.9.1/24")
	station := Radio{Interface: radios[1].Interface, Mode: wireless.ModeStation, Standard: "802.11g", Channel: 11,
		SSID: "fieldmesh"}
	sleeps := func(when string, want bool) {
		t.Helper()
		said := radios[1].IW(t, "dev", station.Interface, "get", "power_save")
		if strings.Contains(said, "on") != want {
			t.Errorf("%s: %s", when, said)
		}
	}
	told := func(when string, want bool) { // of a station, by the agent
		t.Helper()
		sleeps(when, want)
		if caps, err := radio.NewKernel(station.Interface).Caps(); err != nil || caps == nil || caps.PowerSave == nil ||
			*caps.PowerSave != want {
			t.Errorf("%s: the agent reads %+v, %v", when, caps, err)
		}
	}
	for i, mode := range []string{"managed", "ibss"} {
		radios[1].IW(t, "dev", station.Interface, "set", "type", "managed")
		radios[1].IW(t, "dev", station.Interface, "set", "power_save", "on")
		radios[1].IW(t, "dev", station.Interface, "set", "type", mode)
		sleeps(mode+", before", true)
		u, err := k.Prepare(uint64(i), station)
		if err == nil {
			err = k.Apply(station, u)
		}
		if err != nil {
			t.Fatal(err)
		}
		told(mode+", as a station", false)
		radios[1].IW(t, "dev", station.Interface, "set", "power_save", "on") // somebody's doing
		told(mode+", let sleep", true)
		if err := k.Apply(station, u); err != nil {
			t.Error(err)
		}
		told(mode+", in the network already", false)
		if _, err := k.Revert(u); err != nil {
			t.Error(err)
		}
		sleeps(mode+", put back", true)
		if info := radios[1].IW(t, "dev", station.Interface, "info"); !strings.Contains(info, "type "+
			map[string]string{"managed": "managed", "ibss": "IBSS"}[mode]) {
			t.Errorf("%s: put back as\n%s", mode, info)
		}
	}
}
