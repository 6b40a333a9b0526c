package manager

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// fakeNM is a NetworkManager with one device, whose methods D-Bus calls by their names.
type fakeNM struct {
	mu    sync.Mutex
	state uint32
	uuid  string // of the profile in use; empty: none
	heard []string
}

func (f *fakeNM) GetDeviceByIpIface(string) (dbus.ObjectPath, *dbus.Error) { return "/device", nil }

func (f *fakeNM) GetConnectionByUuid(uuid string) (dbus.ObjectPath, *dbus.Error) {
	return dbus.ObjectPath("/profile/" + uuid), nil
}

func (f *fakeNM) ActivateConnection(profile, _, _ dbus.ObjectPath) (dbus.ObjectPath, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, "use "+string(profile))
	f.state, f.uuid = nmActivated, filepath.Base(string(profile))
	return "/active", nil
}

func (f *fakeNM) Get(_, name string) (dbus.Variant, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	active := dbus.ObjectPath("/active")
	if f.uuid == "" {
		active = "/"
	}
	return dbus.MakeVariant(map[string]any{"State": f.state, "ActiveConnection": active, "Uuid": f.uuid}[name]), nil
}

func (f *fakeNM) Set(_, _ string, managed dbus.Variant) *dbus.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, "manage "+managed.String())
	if f.state == nmUnmanaged {
		f.state = nmDisconnected
	}
	return nil
}

// serve has it answer on a bus of its own.
func (f *fakeNM) serve(t *testing.T, m Managers) {
	t.Helper()
	config := m.bus + ".conf"
	if err := os.WriteFile(config, []byte("<busconfig><type>session</type><listen>unix:path="+m.bus+"</listen><policy "+
		"context=\"default\"><allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/></policy>"+
		"</busconfig>"), 0o600); err != nil {
		t.Fatal(err)
	}
	testnet.Need(t, "dbus-daemon")
	testnet.Start(t, exec.Command("dbus-daemon", "--nofork", "--config-file="+config))
	var conn *dbus.Conn
	testnet.Await(t, 20*time.Second, "the bus", func() (up bool) {
		var err error
		conn, err = dbus.Connect("unix:path=" + m.bus)
		return err == nil
	})
	t.Cleanup(func() { _ = conn.Close() })
	for iface, path := range map[string]dbus.ObjectPath{nmName: nmPath, nmSettings: nmPath + "/Settings"} {
		if err := conn.Export(f, path, iface); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []dbus.ObjectPath{"/device", "/active"} {
		if err := conn.Export(f, path, "org.freedesktop.DBus.Properties"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.RequestName(nmName, 0); err != nil {
		t.Fatal(err)
	}
}

// Who has meanwhile had NetworkManager take the interface back, and join another
// network, stays in that.
func TestNetworkManagerTakesBackWhatItHasNot(t *testing.T) {
	m, f := nobody(t), &fakeNM{}
	f.serve(t, m)
	for name, c := range map[string]struct {
		state      uint32
		uuid, want string
	}{
		"it leaves the interface alone":          {nmUnmanaged, "", "home"},
		"it could join no network the last time": {nmDisconnected, "", "home"},
		"it is in the network of before":         {nmActivated, "home", "home"},
		"it is in another one":                   {nmActivated, "cafe", "cafe"},
		"it is about to be in another one":       {40, "cafe", "cafe"},
	} {
		t.Run(name, func(t *testing.T) {
			f.state, f.uuid, f.heard = c.state, c.uuid, nil
			err := m.TakeBack(Held{Manager: NetworkManager, Interface: "wlan0", Connection: "home"})
			if err != nil || f.uuid != c.want {
				t.Errorf("it uses profile %q, want %q; it heard %q; %v", f.uuid, c.want, f.heard, err)
			}
		})
	}
}
