//go:build e2e

package android

import (
	"os"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Preflight finds on a phone, before anything begins, what would spoil each trial there.
func TestE2EPreflightFindsWhatIsWrongOnAPhone(t *testing.T) {
	f := newFieldWithoutAgent(t, magisk)
	f.phone.setWiFi(t, androidWiFi{API: 30, Enabled: true}) // Android 11
	f.startPhone(t)
	// The phone's home network, by which it can be reached, too.
	for node, address := range map[string]string{"alpha": "192.168.1.20/24", "bravo": "192.168.1.21/24"} {
		f.Nodes[node].Run(t, "ip", "address", "add", address, "dev", "wlan0")
	}
	f.phone.ns.Run(t, "ip", "route", "add", "192.168.1.0/24", "dev", "wlan0", "table", "97")
	f.before = testnet.Snapshot(t, f.phone.ns.Name)
	none := func() {}
	rule := func(what string) func() {
		return func() { f.phone.ns.Run(t, "ip", "rule", what, "pref", "9000", "to", "10.77.0.0/16", "lookup", "1003") }
	}
	const temporary = home + "/state/face/traffic"
	keeps := func(node string) []string {
		return []string{"radio: {mode: none}", "radio: {mode: hotspot, channel: 6, ssid: fieldmesh, access_point: " +
			node + "}"}
	}
	for _, c := range []struct {
		name        string
		changes     []string // of the campaign
		home        bool     // the controller reaches the phone by its own Wi-Fi
		spoil, mend func()
		says        string // empty: every need is met
	}{
		{"nothing", nil, false, none, none, ""},
		{"no way to the peer", nil, false, rule("add"), rule("del"),
			"packets to 10.77.0.2 leave by rmnet0 and not by wlan0: the kernel has a route to 0.0.0.0/0 in table 1003"},
		{"no temporary folder", nil, false,
			func() { f.phone.mustRoot(t, "mount", "-t", "tmpfs", "-o", "ro", "tmpfs", temporary) },
			func() { f.phone.mustRoot(t, "umount", temporary) }, "make a temporary folder for iperf3: "},
		{"control by the Wi-Fi that is switched", keeps("bravo"), true, none, none,
			"it is reached by wlan0, and wlan0 leaves its own network for the run"},
		{"a mode that it has not", append(keeps("alpha"), "sender: alpha", "sender: bravo", "receiver: bravo",
			"receiver: alpha"), false, none, none,
			"its Android, of API level 30, lets no program start a hotspot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spoil()
			ok, said := f.preflight(t, c.home, c.changes...)
			c.mend()
			if ok != (c.says == "") || !strings.Contains(said, c.says) {
				t.Errorf("every need is met: %v; it does not say %q:\n%s", ok, c.says, said)
			}
		})
	}
	// The agent of a service that nobody supervises any more does not live on unseen.
	if err := f.service.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, time.Minute, "the end of the agent", func() bool { return len(f.agents()) == 0 })
	const away = "ask status at 10.98.0.11:7443: connection refused"
	if ok, said := f.preflight(t, false); ok || !strings.Contains(said, away) {
		t.Errorf("without a supervisor every need is met: %v:\n%s", ok, said)
	}
	f.isAsBefore(t)
}

// preflight checks the campaign, with changes. The controller may reach the phone by its own Wi-Fi.
func (f *field) preflight(t *testing.T, byWiFi bool, changes ...string) (ok bool, said string) {
	t.Helper()
	fleet, err := os.ReadFile(f.path("fleet/fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if byWiFi {
		fleet = []byte(strings.Replace(string(fleet), f.API("alpha"), "192.168.1.20:7443\n    netns: "+
			f.Nodes["bravo"].Name, 1))
	}
	for name, text := range map[string]string{"checked.yaml": strings.NewReplacer(changes...).Replace(campaign),
		"fleet/checked.yaml": string(fleet)} {
		if err := os.WriteFile(f.path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := f.controller("preflight", f.path("checked.yaml"), "--fleet", f.path("fleet/checked.yaml"))
	out, err := check.CombinedOutput()
	return err == nil, string(out)
}
