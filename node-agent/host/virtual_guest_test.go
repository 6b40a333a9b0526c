//go:build e2e && guest

package host

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/testnet/hwsim"
	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// besideDevice is made on the radio of device.
const besideDevice = "mesh0"

// besides are a laptop that is in its owner's network on channel 11 and makes an
// interface beside that, and another node.
func besides(t *testing.T) (laptop, other radioField) {
	t.Helper()
	hwsim.Managers(t) // the owner's access point is a wpa_supplicant
	radios := hwsim.Load(t, 3)
	laptop, other = newRadioField(t, radios[0], "a"), newRadioField(t, radios[1], "b")
	home := newRadioField(t, radios[2], "h")
	hwsim.Home(t, home.ns, device, "home", "192.168.9.1/24")
	laptop.cfg.Interfaces, laptop.cfg.Beside = []string{besideDevice}, device
	laptop.ns.Run(t, "ip", "addr", "add", "192.168.9.2/24", "dev", device)
	laptop.radio.IW(t, "dev", device, "set", "power_save", "on")
	laptop.radio.IW(t, "dev", device, "connect", "home", "2462")
	hwsim.Await(t, time.Minute, "the laptop in its owner's network", func() bool { return laptop.connected(t) })
	laptop.reaches(t, "192.168.9.1")
	return laptop, other
}

// beside is what a run on such a laptop begins with.
func beside(mode string, channel int) []Change {
	c := adhoc()
	c.Radio.Interface, c.Radio.Mode, c.Radio.Channel, c.Radio.RTSThresholdBytes, c.Radio.RetryLimit = besideDevice, mode, channel, ptr(500), ptr(5)
	if mode != "adhoc" {
		c.Radio.BSSID = ""
	}
	return []Change{
		{Virtual: &Virtual{Interface: besideDevice, Beside: device, Mode: mode, Channel: channel}},
		{Aside: &Aside{Interface: besideDevice}},
		sysctl("net.ipv6.conf."+besideDevice+".disable_ipv6", "1"), c,
		{Link: &Link{Interface: besideDevice, Up: ptr(true)}},
		{Address: &Address{Interface: besideDevice, Prefix: netip.MustParsePrefix("10.77.0.1/24")}},
	}
}

// besideCaps is what the agent reads of the radio that is shared.
func (f radioField) besideCaps(t *testing.T) (caps wire.Caps) {
	t.Helper()
	f.ns.Do(t, func() error {
		var ok bool
		if caps, ok = radio.NewKernelBeside(besideDevice, device).Caps(); !ok {
			return errors.New("the agent sees no radio")
		}
		return nil
	})
	return caps
}

// A laptop stays in its owner's network while an interface beside its own joins
// the trial's, carries data, and is gone afterwards: in order, when somebody took
// it away, and after the host process was killed at any moment.
func TestGuestBesideTheOwnNetwork(t *testing.T) {
	hwsim.NeedGuest(t)
	laptop, other := besides(t)
	t.Logf("%s", laptop.radio.IW(t, "phy", laptop.radio.Phy, "info"))
	before, was := laptop.snapshot(t), power(t, laptop)
	if caps := laptop.besideCaps(t); caps.Mode != "" || caps.Channel != 0 || caps.Beside == nil || caps.Beside.Channel != 11 || caps.Beside.Channels["adhoc"] != 1 {
		t.Errorf("before the run the agent sees %+v, beside %+v", caps, caps.Beside)
	}
	client, host := laptop.start(t, true)
	peer, peers := other.start(t, true)
	for _, mode := range []string{"adhoc", "mesh"} {
		want := beside(mode, 11)
		theirs := *want[3].Radio
		theirs.Interface = device
		apply(t, peer, ScopeRun, []Change{sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"), {Radio: &theirs}, address("10.77.0.2/24")})
		apply(t, client, ScopeRun, want)
		laptop.reaches(t, "10.77.0.2")
		laptop.reaches(t, "192.168.9.1")
		if made, err := client.Apply(t.Context(), ScopeRun, want); err != nil || len(made) != 0 {
			t.Errorf("applied again: %v, %v", made, err)
		}
		caps := laptop.besideCaps(t)
		judge(t, *want[3].Radio, caps)
		if ps := laptop.radio.IW(t, "dev", device, "get", "power_save"); !strings.Contains(ps, "off") {
			t.Errorf("the radio may sleep: %s", ps)
		}
		if b := caps.Beside; b == nil || b.Interface != device || b.Mode != "managed" || b.Channel != 11 || *caps.RTSThresholdBytes != 500 {
			t.Errorf("beside %+v, RTS threshold %d", b, *caps.RTSThresholdBytes)
		}
		if mode == "mesh" { // somebody is quicker
			laptop.radio.IW(t, "dev", besideDevice, "del")
		}
		restoreAll(t, client)
		restoreAll(t, peer)
		laptop.besidesGone(t, mode, before, was)
	}
	terminate(t, host)
	terminate(t, peers)
	laptop.killedBeside(t, before, was)
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

// killedBeside kills the host process as its journal names a change: right then,
// and when it is in force.
func (f radioField) killedBeside(t *testing.T, before, was string) {
	t.Helper()
	for _, at := range []struct {
		change int
		after  time.Duration
	}{{1, 0}, {1, 300 * time.Millisecond}, {4, 0}, {6, 100 * time.Millisecond}} {
		when := fmt.Sprintf("killed %s after change %d", at.after, at.change)
		c, cmd := f.start(t, true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = c.Apply(t.Context(), ScopeRun, beside("adhoc", 11)) // the host dies in it
		}()
		awaitEntries(t, filepath.Join(f.cfg.StateDir, "journal"), at.change)
		time.Sleep(at.after)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // "signal: killed"
		<-done
		if out, err := f.command(t, "restore").CombinedOutput(); err != nil {
			t.Fatalf("%s: restore by hand: %v\n%s", when, err, out)
		} else {
			t.Logf("%s: %s", when, out)
		}
		f.besidesGone(t, when, before, was)
	}
}

// What cannot be beside the machine's own interface is refused before anything
// is changed, with a cure; nobody else's interface is taken away.
func TestGuestBesideRefusals(t *testing.T) {
	hwsim.NeedGuest(t)
	laptop, other := besides(t)
	plain := hwsim.Plain(t, "plain")
	other.cfg.Interfaces, other.cfg.Beside = []string{besideDevice}, device
	poor := newRadioField(t, plain, "p")
	poor.cfg.Interfaces, poor.cfg.Beside = []string{besideDevice}, device
	other.ns.Run(t, "ip", "link", "set", device, "down")
	other.radio.IW(t, "dev", device, "set", "type", "ibss")
	other.ns.Run(t, "ip", "link", "set", device, "up")
	refuse := func(f radioField, client *Client, changes []Change, reason, cure string) {
		t.Helper()
		before := f.snapshot(t)
		_, err := client.Apply(t.Context(), ScopeRun, changes)
		var refused *Refused
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, reason) || !strings.Contains(refused.Cure, cure) {
			t.Errorf("got %v, want a refusal because %q with the cure %q", err, reason, cure)
		} else {
			t.Log(err)
		}
		f.becomes(t, "after the refusal", before)
	}
	client, host := laptop.start(t, true)
	refuse(laptop, client, beside("adhoc", 6), "wlan0 is in its own network on channel 11, the plan wants channel 6", "nmcli device disconnect wlan0")
	laptop.radio.IW(t, "phy", laptop.radio.Phy, "interface", "add", besideDevice, "type", "mp")
	refuse(laptop, client, beside("adhoc", 11), "there is an interface mesh0 already", "iw dev mesh0 del")
	terminate(t, host)
	if !strings.Contains(laptop.radio.IW(t, "dev"), "Interface "+besideDevice) {
		t.Error("somebody else's interface has gone")
	}
	client, host = other.start(t, true)
	refuse(other, client, beside("adhoc", 11), "cannot be in adhoc mode beside wlan0, which is adhoc: at once it can have", "name wlan0 itself as `interface`")
	other.radio.Unplug(t, other.ns)
	if _, err := client.Apply(t.Context(), ScopeRun, beside("adhoc", 11)); err == nil || !strings.Contains(err.Error(), "wlan0") || !strings.Contains(err.Error(), "plug the radio in") {
		t.Errorf("without the machine's own: %v", err)
	}
	terminate(t, host)
	client, host = poor.start(t, true)
	refuse(poor, client, beside("adhoc", 11), ", not adhoc", "use a radio whose driver has this mode")
	terminate(t, host)
}
