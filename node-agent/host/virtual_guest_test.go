//go:build e2e && guest

package host

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// besideDevice is made on the radio of device.
const besideDevice = "mesh0"

// beside is what a run on such a laptop begins with.
func beside(channel int) []change.Change {
	c := adhoc()
	c.Interface, c.Channel, c.RTSThresholdBytes, c.RetryLimit = besideDevice, channel, ptr(500), ptr(5)
	return []change.Change{
		change.Virtual{Interface: besideDevice, Beside: device, Mode: "adhoc", Channel: channel},
		change.Aside{Interface: besideDevice},
		sysctl("net.ipv6.conf."+besideDevice+".disable_ipv6", "1"), c,
		change.Link{Interface: besideDevice, Up: ptr(true)},
		change.Address{Interface: besideDevice, Prefix: netip.MustParsePrefix("10.77.0.1/24")},
	}
}

// besideCaps is what the agent reads of the radio that is shared.
func (f radioField) besideCaps(t *testing.T) wire.Caps {
	t.Helper()
	return f.capsOf(t, radio.NewKernelBeside(besideDevice, device))
}

// runBeside has a laptop stay in its owner's network, on channel 11, while an
// interface beside its own joins the trial's, carries data, and is gone
// afterwards: in order, and after the host process was killed. What cannot be
// beside its own is refused before anything is changed, with a cure.
func runBeside(t *testing.T, laptop, other radioField) {
	laptop.cfg.Interfaces, laptop.cfg.Beside = []string{besideDevice}, device
	laptop.ns.Run(t, "ip", "addr", "add", "192.168.9.2/24", "dev", device)
	laptop.radio.IW(t, "dev", device, "set", "power_save", "on")
	before, was := laptop.snapshot(t), power(t, laptop)
	if caps := laptop.besideCaps(t); caps.Mode != "" || caps.Channel != 0 || caps.Beside == nil ||
		caps.Beside.Channel != 11 || caps.Beside.Channels["adhoc"] != 1 {
		t.Errorf("before the run the agent sees %+v, beside %+v", caps, caps.Beside)
	}
	client, host := laptop.start(t, true)
	if err := client.Scan(t.Context(), device, 11); err != nil { // the one beside listens for the one that is not there
		t.Error(err)
	}
	peer, peers := other.start(t, true)
	want := beside(11)
	theirs := want[3].(change.Radio)
	theirs.Interface = device
	apply(t, peer, ScopeRun, []change.Change{sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"), theirs,
		address("10.77.0.2/24")})
	apply(t, client, ScopeRun, want)
	laptop.inBoth(t, want[3].(change.Radio))
	if made, err := client.Apply(t.Context(), ScopeRun, want); err != nil || len(made) != 0 {
		t.Errorf("applied again: %v, %v", made, err)
	}
	laptop.radio.IW(t, "dev", besideDevice, "del") // somebody's doing
	apply(t, client, ScopeRun, want)
	laptop.inBoth(t, want[3].(change.Radio))
	restoreAll(t, client)
	laptop.besidesGone(t, "in order", before, was)
	laptop.refusesBeside(t, client)
	terminate(t, host)
	terminate(t, peers)
	laptop.killedBeside(t, before, was)
}

// inBoth checks whether the laptop is in the trial's network and in its
// owner's.
func (f radioField) inBoth(t *testing.T, want change.Radio) {
	t.Helper()
	f.reaches(t, "10.77.0.2")
	f.reaches(t, "192.168.9.1")
	caps := f.besideCaps(t)
	judge(t, want, caps)
	if b := caps.Beside; b == nil || b.Interface != device || b.Mode != "managed" || b.Channel != 11 ||
		*caps.RTSThresholdBytes != 500 {
		t.Errorf("beside %+v, RTS threshold %d", b, *caps.RTSThresholdBytes)
	}
	if ps := f.radio.IW(t, "dev", device, "get", "power_save"); !strings.Contains(ps, "off") {
		t.Errorf("the radio may sleep: %s", ps)
	}
}

// besidesGone holds the laptop against what it was.
func (f radioField) besidesGone(t *testing.T, when, before, was string) {
	t.Helper()
	f.becomes(t, when, before)
	if !f.connected(t) {
		t.Errorf("%s: the laptop is not in its owner's network", when)
	}
	if is := power(t, f); is != was {
		t.Errorf("%s: the power is %q, it was %q", when, is, was)
	}
}

// killedBeside kills the host process as its journal names the interface, which
// may not be there yet, and when it is in the network.
func (f radioField) killedBeside(t *testing.T, before, was string) {
	t.Helper()
	for _, change := range []int{1, 6} {
		when := fmt.Sprintf("killed at change %d", change)
		c, cmd := f.start(t, true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = c.Apply(t.Context(), ScopeRun, beside(11)) // the host dies in it
		}()
		awaitEntries(t, filepath.Join(f.cfg.StateDir, "journal"), change)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // "signal: killed"
		<-done
		t.Logf("%s: %s", when, f.restoreByHand(t))
		f.besidesGone(t, when, before, was)
	}
}

// refusesBeside asks for what cannot be, and leaves everything as it is.
func (f radioField) refusesBeside(t *testing.T, client *Client) {
	t.Helper()
	refuses(t, client, beside(6), "wlan0 is in its own network on channel 11, the plan wants channel 6",
		"nmcli device disconnect wlan0")
	// Somebody's ad hoc interface on the radio, of which there can be one.
	f.radio.IW(t, "phy", f.radio.Phy, "interface", "add", besideDevice, "type", "ibss", "addr", "02:00:00:00:00:99")
	refuses(t, client, beside(11), "there is an interface mesh0 already", "iw dev mesh0 del")
	f.ns.Run(t, "ip", "link", "set", besideDevice, "name", "theirs")
	f.ns.Run(t, "ip", "link", "set", "theirs", "up")
	refuses(t, client, beside(11),
		"cannot be in adhoc mode beside theirs, which is adhoc: at once it can have #{ adhoc } <= 1",
		"; or plan mode mesh")
	f.radio.IW(t, "dev", "theirs", "del") // which nobody has taken away
}
