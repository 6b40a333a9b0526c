//go:build e2e

package android

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A plan that sets the radio of a dongle leaves the phone's own Wi-Fi on, by which
// its controller and its app may reach it; one of the phone's own radio has it off
// for the run.
func TestE2EOnlyThePhonesOwnRadioTakesItsWiFiAway(t *testing.T) {
	f := testnet.NewPair(t, "10.98.0", [2]string{"alpha", "bravo"})
	p := newPhone(t, f.Nodes["alpha"], magisk)
	testnet.Veth(t, p.ns, "wlan1", "", f.Nodes["bravo"], "wlan1", "")
	p.mustRoot(t, "cp", termux+"/bin/fieldmesh-agent", "/data/local/fieldmesh-agent")
	for iface, during := range map[string]bool{"wlan1": true, "wlan0": false} {
		t.Run(iface, func(t *testing.T) {
			p.write(t, home+"/agent.yaml", fmt.Sprintf("node: alpha\ninterface: %s\nstate_dir: %s/%[1]s\nkeys_dir: "+
				"%[2]s/keys\nface_user: \"%d:%d\"\n", iface, home, user, inet), 0o644)
			agent := testnet.Start(t, p.command(nil, "/data/local/fieldmesh-agent", "host", "--config",
				home+"/agent.yaml"))
			agent.Says(t, "host process is ready")
			client := host.Dial(p.path(home + "/" + iface + "/host/host.sock"))
			aside := []change.Change{change.Aside{Interface: iface}}
			if _, err := client.Apply(t.Context(), host.ScopeRun, aside); err != nil {
				t.Fatal(err)
			}
			if is := p.wifi(t).Enabled; is != during {
				t.Errorf("for the run Android's Wi-Fi is on: %v, want %v", is, during)
			}
			if _, err := client.Restore(t.Context(), ""); err != nil {
				t.Error(err)
			}
			testnet.Await(t, time.Minute, "Android's Wi-Fi", func() bool { return p.wifi(t).Enabled })
		})
	}
}

// wifi is the state of Android's Wi-Fi.
func (p phone) wifi(t *testing.T) (w androidWiFi) {
	t.Helper()
	f, err := os.Open(p.path(wifiState))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH) // a command that writes it holds it
	if err == nil {
		err = json.NewDecoder(f).Decode(&w)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (p phone) setWiFi(t *testing.T, w androidWiFi) {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, wifiState, string(text), 0o600)
}
