//go:build e2e

package android

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// hotspotOn is the interface of the phone's hotspot, which is not there before.
const hotspotOn = "ap0"

// twoPhones are alpha, which joins the hotspot of bravo. Their agents are started by
// Termux's service, by su in the manner of Magisk and of KernelSU.
func twoPhones(t *testing.T, campaign string) (alpha, bravo *field) {
	t.Helper()
	testnet.Need(t, "ip", "tc", "iperf3")
	alpha = &field{Pair: testnet.NewPair(t, "10.98.0", [2]string{"alpha", "bravo"}), dir: testnet.Folder(t),
		name: "alpha", iface: "wlan0"}
	bravo = &field{Pair: alpha.Pair, dir: alpha.dir, name: "bravo", iface: hotspotOn}
	alpha.Nodes["bravo"].Run(t, "ip", "link", "set", "wlan0", "down")
	alpha.Nodes["bravo"].Run(t, "ip", "link", "set", "wlan0", "name", parked)
	alpha.Nodes["alpha"].Run(t, "ip", "address", "add", "192.168.1.20/24", "dev", "wlan0")
	alpha.Nodes["alpha"].Run(t, "ip", "route", "add", "192.168.1.0/24", "dev", "wlan0", "table", "1001")
	air := testnet.Folder(t)
	alpha.phone = newPhoneOnAir(t, alpha.Nodes["alpha"], magisk, air)
	bravo.phone = newPhoneOnAir(t, alpha.Nodes["bravo"], kernelSU, air)
	alpha.phone.setWiFi(t, androidWiFi{API: firstAPI, Enabled: true, Joined: homeSSID,
		Saved: []savedNetwork{{ID: 3, SSID: homeSSID}}})
	bravo.phone.setWiFi(t, androidWiFi{API: firstAPI, Enabled: true, HotspotOn: hotspotOn})
	alpha.fieldmesh(t, "keys", "init", "--dir", alpha.path("fleet"))
	for _, name := range []string{"alpha", "bravo"} {
		alpha.fieldmesh(t, "keys", "issue", name, "--dir", alpha.path("fleet"), "--address", alpha.API(name))
	}
	if err := os.WriteFile(alpha.path("campaign.yaml"), []byte(campaign), 0o644); err != nil {
		t.Fatal(err)
	}
	return alpha, bravo
}

// hotspotCampaign is one trial by way of bravo's hotspot.
var hotspotCampaign = strings.Replace(campaign, "radio: {mode: none}",
	"radio: {mode: hotspot, access_point: bravo, channel: 6, ssid: fieldmesh}", 1)

// asHome fails the test unless a phone's Wi-Fi is as its owner had it.
func (f *field) asHome(t *testing.T, was androidWiFi) {
	t.Helper()
	// As Android itself does, it notices what is in reach when it is asked.
	f.phone.must(t, nil, "/system/bin/cmd", "wifi", "status")
	is := f.phone.wifi(t)
	is.Ignored = nil
	if a, b := fmt.Sprintf("%+v", is), fmt.Sprintf("%+v", was); a != b {
		t.Errorf("the Wi-Fi of %s is %s, and was %s", f.name, a, b)
	}
}

// Two phones, one of which keeps the hotspot that the other joins, measure over it, and
// are as they were afterwards: the one in its home network again.
func TestE2ETwoPhonesMeasureOverAHotspot(t *testing.T) {
	alpha, bravo := twoPhones(t, hotspotCampaign)
	was := map[*field]androidWiFi{alpha: alpha.phone.wifi(t), bravo: bravo.phone.wifi(t)}
	for _, f := range []*field{alpha, bravo} {
		f.startPhone(t)
	}
	run := alpha.begin(t, "hotspot")
	run.Says(t, "measuring")
	if is := alpha.phone.wifi(t); is.Joined != "fieldmesh" || len(is.Ignored) > 0 {
		t.Errorf("while it measures, alpha's Wi-Fi is %+v", is)
	}
	kept := bravo.phone.wifi(t).Hotspot
	if kept == nil {
		t.Fatal("while it measures, bravo keeps no hotspot")
	}
	passphrase := kept.Passphrase
	said := alpha.end(t, run)
	accepted(t, said)
	alpha.isRecorded(t, "hotspot", map[string]string{"alpha": "managed", "bravo": "ap"})
	for _, f := range []*field{alpha, bravo} {
		f.tellsNoSecret(t, passphrase, said)
	}
	for _, f := range []*field{alpha, bravo} {
		f.stopPhone(t)
		f.asHome(t, was[f])
	}
}

// isRecorded fails the test unless each node's radio in force is on record, as Android
// tells it.
func (f *field) isRecorded(t *testing.T, run string, modes map[string]string) {
	t.Helper()
	for node, mode := range modes {
		files, err := filepath.Glob(f.path(filepath.Join("runs", run, "trials", "*", "provenance", node+".json")))
		if err != nil || len(files) == 0 {
			t.Fatalf("of %s there is no provenance: %v", node, err)
		}
		for _, name := range files {
			var is wire.Provenance
			text, err := os.ReadFile(name)
			if err == nil {
				err = json.Unmarshal(text, &is)
			}
			if err != nil || is.Radio == nil {
				t.Fatalf("%s: no radio, %v", name, err)
			}
			if r := is.Radio; r.Driver != wire.AndroidDriver || r.Mode != mode || r.SSID != "fieldmesh" || r.BSSID !=
				bssidOfAP || r.Channel != 6 {
				t.Errorf("recorded of %s is %+v", node, r)
			}
		}
	}
}

// tellsNoSecret fails the test if a hotspot's passphrase is in what an agent or the
// controller said, or in the archive.
func (f *field) tellsNoSecret(t *testing.T, passphrase, said string) {
	t.Helper()
	if len(passphrase) != 32 || strings.Contains(said+f.service.Said(), passphrase) {
		t.Errorf("the passphrase has %d characters, or is said", len(passphrase))
	}
	err := filepath.WalkDir(f.path("runs"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), passphrase) {
			t.Errorf("%s has the passphrase", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A whole small velocity campaign, with a moving client and a moving server, by a
// generated track.
func TestE2EVelocityByTwoPhones(t *testing.T) {
	text, err := os.ReadFile("../../campaigns/velocity-phones.yaml")
	if err != nil {
		t.Fatal(err)
	}
	small := strings.NewReplacer("levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: [2.8, 5.6]",
		"repetitions: 2", "repetitions: 1", "duration_s: 10", "duration_s: 3", "attempts_max: 3",
		"attempts_max: 10").Replace(string(text))
	alpha, bravo := twoPhones(t, small)
	was := map[*field]androidWiFi{alpha: alpha.phone.wifi(t), bravo: bravo.phone.wifi(t)}
	alpha.gpsd = "127.0.0.1:2947"
	gps := testnet.Start(t, alpha.phone.ns.Command(t.Context(), filepath.Join(programs, "fieldmesh-agent"),
		"simulate-gps", "--speeds-mps", "2.8,5.6"))
	gps.Says(t, "simulated GPS at")
	for _, f := range []*field{alpha, bravo} {
		f.startPhone(t)
	}
	run := alpha.begin(t, "velocity")
	err = run.Wait(t, 6*time.Minute)
	said := run.Said()
	t.Logf("run: %v\n%s", err, said)
	if got := strings.Count(said, ": accepted"); err != nil || got != 4 {
		t.Errorf("%d of 4 trials were accepted, %v", got, err)
	}
	_ = gps.Stop(t, syscall.SIGTERM)
	for _, f := range []*field{alpha, bravo} {
		f.stopPhone(t)
		f.asHome(t, was[f])
	}
}

// An agent that is killed while Android does what it was told, before or after it has
// had its effect, leaves nothing changed: not when it is told to begin, nor when it is
// told to put back.
func TestE2EAKilledAgentLeavesThePhonesWiFiAsItWas(t *testing.T) {
	for _, c := range []struct {
		command string
		ap, on  bool // the phone keeps the hotspot; its Wi-Fi is on before
	}{
		{"start-softap", true, true}, {"stop-softap", true, true}, {"start-softap", true, false},
		{"connect-network", false, true}, {"forget-network", false, true}, {"set-wifi-enabled", false, false},
		{"connect-network", false, false},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(fmt.Sprintf("%s %s, on %v", c.command, when, c.on), func(t *testing.T) {
				alpha, bravo := twoPhones(t, hotspotCampaign)
				f := alpha
				if c.ap {
					f = bravo
				}
				w := f.phone.wifi(t)
				if w.Enabled = c.on; !c.on && !c.ap {
					f.phone.ns.Run(t, "ip", "-4", "address", "flush", "dev", "wlan0")
					f.phone.ns.Run(t, "ip", "route", "flush", "table", "1001")
					w.Joined = ""
				}
				f.phone.setWiFi(t, w)
				f.isKilledAt(t, c.command+" "+when, c.ap)
				f.asHome(t, w)
			})
		}
	}
}

// isKilledAt has the phone's agent keep or join a hotspot, and kills it in one of
// Android's commands; then it is started again and has to put everything back.
func (f *field) isKilledAt(t *testing.T, command string, ap bool) {
	t.Helper()
	before := testnet.Snapshot(t, f.phone.ns.Name)
	agent := f.startHost(t)
	if !ap { // the other phone's hotspot
		text, err := json.Marshal(softAP{SSID: "fieldmesh", Passphrase: secret, MHz: 2437})
		if err != nil {
			t.Fatal(err)
		}
		f.phone.write(t, airHotspot, string(text), 0o600)
	}
	stops := strings.HasPrefix(command, "stop") || strings.HasPrefix(command, "forget")
	apply := func() error { return f.applyHotspot(t, ap) }
	if stops {
		if err := apply(); err != nil {
			t.Fatal(err)
		}
	}
	f.phone.write(t, wifiStall, command, 0o644)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if stops {
			_ = f.restoreHost(t)
		} else {
			_ = apply()
		}
	}()
	testnet.Await(t, 20*time.Second, command, func() bool {
		_, err := os.Stat(f.phone.path(wifiStalled))
		return err == nil
	})
	for _, pid := range f.agents() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-done
	_ = agent.Stop(t, syscall.SIGKILL)
	f.phone.mustRoot(t, "rm", wifiStall, wifiStalled)
	again := f.startHost(t)
	_ = again.Stop(t, syscall.SIGTERM)
	if after := testnet.Snapshot(t, f.phone.ns.Name); after != before {
		t.Errorf("the phone is not as it was:\n%s", testnet.Diff(before, after))
	}
	if left := f.agents(); len(left) > 0 || slices.Contains(f.phone.wifi(t).Ignored, "-f") {
		t.Errorf("left are %v, ignored was %v", left, f.phone.wifi(t).Ignored)
	}
	_ = os.Remove(f.phone.path(airHotspot))
}

// Wi-Fi that its owner switches on while the phone keeps the hotspot, which leaves Wi-Fi alone, stays on.
func TestE2EWiFiThatTheOwnerSwitchesOnBesideTheHotspotStaysOn(t *testing.T) {
	_, f := twoPhones(t, hotspotCampaign)
	w := f.phone.wifi(t)
	w.Enabled = false
	f.phone.setWiFi(t, w)
	agent := f.startHost(t)
	if err := f.applyHotspot(t, true); err != nil {
		t.Fatal(err)
	}
	if f.phone.wifi(t).Enabled {
		t.Error("the hotspot has switched Wi-Fi on")
	}
	w.Enabled = true
	f.phone.must(t, nil, "/system/bin/cmd", "wifi", "set-wifi-enabled", "enabled")
	if err := f.restoreHost(t); err != nil {
		t.Error(err)
	}
	_ = agent.Stop(t, syscall.SIGTERM)
	f.asHome(t, w)
}

// Each phone that cannot is refused, with what to do, and is left as it was.
func TestE2EAPhoneThatCannotIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		ap    bool
		spoil func(*androidWiFi)
		want  string
	}{
		"a hotspot of its owner's": {true, func(w *androidWiFi) { w.Hotspot = &softAP{SSID: "mine", MHz: 2437} },
			`keeps a hotspot, "mine", already`},
		"a saved network of that name": {false, func(w *androidWiFi) {
			w.Saved = append(w.Saved, savedNetwork{ID: 9, SSID: "fieldmesh"})
		}, `has saved a network "fieldmesh"`},
		"another channel":   {true, func(w *androidWiFi) { w.API = 33 }, "has the hotspot on channel 11 (2462 MHz)"},
		"another interface": {true, func(w *androidWiFi) { w.HotspotOn = "swlan0" }, "write `interface: swlan0`"},
		"Android 11":        {true, func(w *androidWiFi) { w.API = 30 }, "lets no program start a hotspot"},
	} {
		t.Run(name, func(t *testing.T) {
			alpha, bravo := twoPhones(t, hotspotCampaign)
			f := alpha
			if c.ap {
				f = bravo
			}
			w := f.phone.wifi(t)
			c.spoil(&w)
			f.phone.setWiFi(t, w)
			agent := f.startHost(t)
			if err := f.applyHotspot(t, c.ap); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if said := agent.Said(); strings.Contains(said, secret) {
				t.Errorf("the agent says the passphrase:\n%s", said)
			}
			if name != "a hotspot of its owner's" {
				f.asHome(t, w)
			}
		})
	}
}

// secret is a passphrase.
const secret = "0123456789abcdef0123456789abcdef"

// startHost starts the phone's privileged half alone.
func (f *field) startHost(t *testing.T) *testnet.Running {
	t.Helper()
	p := f.phone
	p.mustRoot(t, "cp", termux+"/bin/fieldmesh-agent", "/data/local/fieldmesh-agent")
	p.write(t, home+"/agent.yaml", fmt.Sprintf("node: %s\ninterface: %s\nstate_dir: %s/state\nkeys_dir: %[3]s/keys\n"+
		"face_user: \"%d:%d\"\n", f.name, f.iface, home, user, inet), 0o644)
	agent := testnet.Start(t, p.command(nil, "/data/local/fieldmesh-agent", "host", "--config", home+"/agent.yaml"))
	agent.Says(t, "host process is ready")
	return agent
}

func (f *field) host() *host.Client { return host.Dial(f.phone.path(home + "/state/host/host.sock")) }

// applyHotspot has the phone keep or join the hotspot, with the plan's address beside
// Android's.
func (f *field) applyHotspot(t *testing.T, ap bool) error {
	own := netip.MustParsePrefix("10.77.0.1/24")
	_, err := f.host().Apply(t.Context(), host.ScopeRun, []change.Change{
		change.Hotspot{Interface: f.iface, AccessPoint: ap, SSID: "fieldmesh", Channel: 6, Passphrase: secret,
			Network: own.Masked()},
		change.Address{Interface: f.iface, Prefix: own}, change.Rule{Network: own.Masked()}})
	return err
}

func (f *field) restoreHost(t *testing.T) error {
	_, err := f.host().Restore(t.Context(), "")
	return err
}
