//go:build e2e && guest

package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/wireless"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

const cell = "02:11:22:33:44:55"

// adhoc is the change of a trial in the campaigns that ship.
func adhoc() change.Radio {
	return change.Radio{Interface: device, Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "fieldmesh",
		BSSID: cell, TxPowerDbm: ptr(12.0), Keep: netip.MustParsePrefix("10.77.0.0/24")}
}

// radioField is a namespace with a radio that has seen some use.
type radioField struct {
	field
	radio hwsim.Radio
}

func newRadioField(t *testing.T, r hwsim.Radio, label string) radioField {
	t.Helper()
	f := radioField{field: field{testnet.NewNS(t, label), fieldConfig(t)}, radio: r}
	f.radio.Move(t, f.ns, device)
	for _, line := range []string{
		"link set wlan0 up",
		"addr add 192.168.7.1/24 dev wlan0",
		"-6 addr add fd99::1/64 dev wlan0 nodad",
		"route add 172.16.0.0/16 via 192.168.7.2 dev wlan0 metric 50",
	} {
		f.ns.Run(t, "ip", strings.Fields(line)...)
	}
	return f
}

// varies are those lines of iw that change by themselves. The power of an
// interface in no network is that of the channel it was on last.
var varies = regexp.MustCompile(`(?m)^\s*(ifindex|multicast TXQ|qsz-byt|0\t|txpower).*\n`)

// snapshot adds the radio's settings. A link-local address of IPv6 comes some
// time after the link, so what is there is waited for.
func (f radioField) snapshot(t *testing.T) string {
	t.Helper()
	return f.field.snapshot(t) + varies.ReplaceAllString(f.radio.IW(t, "dev", device, "info"), "") +
		f.radio.IW(t, "dev", device, "get", "power_save") + retries.FindString(f.radio.IW(t, "phy", f.radio.Phy,
		"info"))
}

var retries = regexp.MustCompile(`(?m)(^\s*(RTS|Retry|Fragmentation).*\n)+`)

// becomes waits until the snapshot is what it was: duplicate detection of an
// address that the kernel made takes its time, and nothing else may.
func (f radioField) becomes(t *testing.T, when, before string) {
	t.Helper()
	mustEqual(t, when, before, testnet.Settled(20*time.Second, before, func() string { return f.snapshot(t) }))
}

// caps is what the agent reads of the radio.
func (f radioField) caps(t *testing.T) wire.Caps {
	t.Helper()
	return f.capsOf(t, radio.NewKernel(device))
}

func (f radioField) capsOf(t *testing.T, k *radio.Kernel) (caps wire.Caps) {
	t.Helper()
	f.ns.Do(t, func() error {
		read, err := k.Caps()
		if err == nil && read == nil {
			err = errors.New("the agent sees no radio")
		}
		if err == nil {
			caps = *read
		}
		return err
	})
	return caps
}

// stations is what the agent samples of the radio's peers.
func (f radioField) stations(t *testing.T) (out []*wire.Station) {
	t.Helper()
	f.ns.Do(t, func() error {
		bodies, err := radio.NewKernel(device).Sample(1)
		for _, b := range bodies {
			if s, ok := b.(*wire.Station); ok {
				out = append(out, s)
			}
		}
		return err
	})
	return out
}

// reaches connects to a port on which nobody listens: the other's kernel says
// so, and frames have gone both ways.
func (f radioField) reaches(t *testing.T, to string) {
	t.Helper()
	f.ns.Do(t, func() error {
		conn, err := net.DialTimeout("tcp", to+":9", time.Minute)
		if err == nil {
			return errors.Join(errors.New("somebody listens on port 9"), conn.Close())
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		return nil
	})
}

func TestGuestJoinsReadBack(t *testing.T) {
	hwsim.NeedGuest(t)
	radios := hwsim.Load(t, 2)
	hwsim.Country(t, "US") // where channel 40 may be used
	a, b := newRadioField(t, radios[0], "a"), newRadioField(t, radios[1], "b")
	ca, hostA := a.start(t, true)
	cb, hostB := b.start(t, true)
	before, was := a.snapshot(t), power(t, a)
	for _, want := range []change.Radio{
		{Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "one", BSSID: cell, TxPowerDbm: ptr(12.0),
			RTSThresholdBytes: ptr(500), RetryLimit: ptr(5)},
		{Mode: "adhoc", Standard: "802.11a", Channel: 40, SSID: "two", BSSID: cell, RateMbps: ptr(24.0),
			TxPowerDbm: ptr(5.0)},
		{Mode: "mesh", Standard: "802.11b", Channel: 1, SSID: "three", RateMbps: ptr(5.5)},
	} {
		t.Run(want.SSID, func(t *testing.T) {
			want.Interface, want.Keep = device, netip.MustParsePrefix("10.77.0.0/24")
			for i, c := range []*Client{ca, cb} {
				apply(t, c, ScopeRun, []change.Change{sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"), want,
					address(fmt.Sprintf("10.77.0.%d/24", i+1))})
			}
			a.reaches(t, "10.77.0.2")
			judge(t, want, a.caps(t))
			judgeStations(t, want, a)
			info := a.radio.IW(t, "dev", device, "info") // what a tool that is not ours reads
			t.Logf("iw dev wlan0 info:\n%s", info)
			if !strings.Contains(info, fmt.Sprintf("channel %d (%d MHz), width: 20 MHz (no HT)", want.Channel,
				nl80211.Frequency(want.Channel))) {
				t.Errorf("iw has no channel %d without HT:\n%s", want.Channel, info)
			}
			if want.RetryLimit != nil && !strings.Contains(a.radio.IW(t, "phy", a.radio.Phy, "info"),
				fmt.Sprintf("RTS threshold: %d", *want.RTSThresholdBytes)) {
				t.Error("the RTS threshold is not in force")
			}
			for _, c := range []*Client{ca, cb} {
				restoreAll(t, c)
			}
			a.becomes(t, "after "+want.SSID, before)
			if is := power(t, a); want.Standard != "802.11a" && is != was {
				t.Errorf("the power is %q, it was %q", is, was)
			}
		})
	}
	terminate(t, hostA)
	terminate(t, hostB)
}

// A power that somebody has fixed stays so where the plan sets none.
func TestGuestAPowerThatThePlanLeavesAlone(t *testing.T) {
	hwsim.NeedGuest(t)
	f := newRadioField(t, hwsim.Load(t, 1)[0], "a")
	f.radio.IW(t, "dev", device, "set", "txpower", "fixed", "700")
	client, host := f.start(t, true)
	plan := adhoc()
	plan.TxPowerDbm = nil
	for _, when := range []string{"in the first run", "in the next"} {
		apply(t, client, ScopeRun, []change.Change{plan})
		if is := power(t, f); is != "txpower 7.00 dBm" {
			t.Errorf("%s it is %q", when, is)
		}
		restoreAll(t, client)
	}
	terminate(t, host)
}

func power(t *testing.T, f radioField) string {
	t.Helper()
	return regexp.MustCompile(`txpower .*`).FindString(f.radio.IW(t, "dev", device, "info"))
}

// judge holds what the agent read back against what was asked for.
func judge(t *testing.T, want change.Radio, got wire.Caps) {
	t.Helper()
	if got.Mode != want.Mode || got.Channel != want.Channel || got.Width != nl80211.WidthNoHT {
		t.Errorf("read back %+v, want %+v", got, want)
	}
	if want.TxPowerDbm != nil && (got.TxPowerDbm == nil || *got.TxPowerDbm != *want.TxPowerDbm) {
		t.Errorf("read back %+v, want a transmit power of %g dBm", got, *want.TxPowerDbm)
	}
	if want.Mode == "mesh" {
		return // the kernel tells neither its id nor its rates
	}
	if got.SSID != want.SSID || want.BSSID != "" && got.BSSID != want.BSSID || got.BSSID == "" {
		t.Errorf("in the cell %q with BSSID %s, want %q and %q", got.SSID, got.BSSID, want.SSID, want.BSSID)
	}
	if fmt.Sprint(got.BasicRatesMbps) != fmt.Sprint(wireless.Settings(want).Network().BasicMbps) {
		t.Errorf("basic rates %v, want %v", got.BasicRatesMbps, wireless.Settings(want).Network().BasicMbps)
	}
}

// judgeStations: no rate is one of 802.11n, and what is heard is as loud as
// the other's power makes it: hwsim's air takes 50 dB.
func judgeStations(t *testing.T, want change.Radio, f radioField) {
	t.Helper()
	const lossDb = 50
	seen := f.stations(t)
	if len(seen) != 1 {
		t.Errorf("%d stations are heard, want 1", len(seen))
		return
	}
	if want.TxPowerDbm != nil && (seen[0].SignalDbm == nil || *seen[0].SignalDbm != *want.TxPowerDbm-lossDb) {
		t.Errorf("heard at %v dBm, want %g", *seen[0].SignalDbm, *want.TxPowerDbm-lossDb)
	}
	f.ns.Do(t, func() error {
		c, err := nl80211.Open()
		if err != nil {
			return err
		}
		defer c.Close()
		i, err := c.Interface(device)
		if err != nil {
			return err
		}
		stations, err := c.Stations(i.Index)
		for _, s := range stations {
			if s.TxHT || s.RxHT || s.TxBitrateMbps == nil {
				t.Errorf("rates of 802.11n, or none: %+v", s)
			} else if r := *s.TxBitrateMbps; want.RateMbps != nil && r != *want.RateMbps || r > 54 {
				t.Errorf("sends at %g Mbit/s", r)
			}
		}
		return err
	})
}

// A host process that is killed at any of a trial's changes leaves nothing in
// force for long: the next life, or a restore by hand, puts everything back.
func TestGuestKilledAtEveryChange(t *testing.T) {
	hwsim.NeedGuest(t)
	f := newRadioField(t, hwsim.Load(t, 1)[0], "a")
	run := []change.Change{sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"), adhoc(),
		change.Link{Interface: device, Up: ptr(true)}, address("10.77.0.1/24")}
	trial := trialChanges()[:3]
	f.becomes(t, "before anything", f.snapshot(t))
	before := f.snapshot(t)
	inForce := 0
	steps := []int{2, 5} // the radio's change, and one of the trial's
	if os.Getenv("FIELDMESH_SOAK") != "" {
		steps = []int{1, 2, 3, 4, 5, 6, 7}
	}
	for _, step := range steps {
		c, cmd := f.start(t, true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := c.Apply(t.Context(), ScopeRun, run); err == nil {
				_, _ = c.Apply(t.Context(), ScopeTrial, trial) // the host dies in it
			}
		}()
		awaitEntries(t, filepath.Join(f.cfg.StateDir, "journal"), step)
		// Sometimes before the change is made, sometimes in it, sometimes after.
		time.Sleep(time.Duration(step%3) * 30 * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // "signal: killed"
		<-done
		if f.snapshot(t) != before {
			inForce++
		}
		if step%2 == 0 {
			f.restoreByHand(t)
		} else {
			_, next := f.start(t, true)
			terminate(t, next)
		}
		f.becomes(t, fmt.Sprintf("killed at change %d", step), before)
	}
	t.Logf("%d of %d kills left changes in force until the restore", inForce, len(steps))
	if inForce == 0 {
		t.Error("no kill hit a moment with changes in force")
	}
}

// awaitEntries waits until the journal names so many changes.
func awaitEntries(t *testing.T, path string, n int) {
	t.Helper()
	for until := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		files, _ := filepath.Glob(path + "*") // only a bad pattern is an error
		count := 0
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			count += strings.Count(string(text), statePrepared)
		}
		if count >= n {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the journal names %d changes after 60 s, want %d: %v", count, n, files)
		}
	}
}

// refuses asks for changes that cannot be.
func refuses(t *testing.T, client *Client, changes []change.Change, reason, cure string) {
	t.Helper()
	_, err := client.Apply(t.Context(), ScopeRun, changes)
	var refused *change.Refused
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, reason) || !strings.Contains(refused.Cure, cure) {
		t.Errorf("got %v, want a refusal because %q with the cure %q", err, reason, cure)
	} else {
		t.Log(err)
	}
}

// What cannot be done is refused before anything is changed, with a cure.
func TestGuestRefusals(t *testing.T) {
	hwsim.NeedGuest(t)
	radios := hwsim.Load(t, 2)
	hwsim.Country(t, "US")
	plain := hwsim.Plain(t, "plain") // a radio without ad hoc mode and mesh
	f, g, other := newRadioField(t, radios[0], "a"), newRadioField(t, plain, "p"), newRadioField(t, radios[1], "u")
	with := func(spoil func(*change.Radio)) change.Change {
		c := adhoc()
		spoil(&c)
		return c
	}
	refuse := func(name string, f radioField, c change.Change, reason, cure string) {
		t.Run(name, func(t *testing.T) {
			before := f.snapshot(t)
			client, host := f.start(t, true)
			refuses(t, client, []change.Change{c}, reason, cure)
			terminate(t, host)
			f.becomes(t, "after the refusal", before)
		})
	}
	refuse("no such mode", g, adhoc(), ", not adhoc", "use a radio whose driver has this mode")
	refuse("forbidden channel", f, with(func(r *change.Radio) { r.Channel = 13 }), "channel 13 (2472 MHz) is "+
		"forbidden in the regulatory domain US", "iw reg set XX")
	refuse("no such channel", f, with(func(r *change.Radio) { r.Standard, r.Channel = "802.11a", 177 }), "channel 177",
		"plan one of the channels")
	refuse("not a channel", f, with(func(r *change.Radio) { r.Channel = 36 }), "channel 36 is none of 802.11g", "")
	refuse("no radio", f, with(func(r *change.Radio) { r.Interface = "lo" }), `interface "lo" is not among those`,
		"agent.yaml")
	inUse(t, other)
	refuse("in use", other, adhoc(), "wlan0 is in use as ap", "nmcli device set wlan0 managed no")
	killSwitch(t, f, "1")
	refuse("switched off", f, adhoc(), "wlan0 is switched off (rfkill, soft)", "rfkill unblock wlan")
	killSwitch(t, f, "0")
}

// inUse makes an interface somebody's access point.
func inUse(t *testing.T, f radioField) {
	t.Helper()
	f.ns.Run(t, "ip", "link", "set", device, "down")
	f.radio.IW(t, "dev", device, "set", "type", "__ap")
	f.ns.Run(t, "ip", "link", "set", device, "up")
}

// killSwitch works the radio's switch where the radio is: elsewhere sysfs does
// not show it.
func killSwitch(t *testing.T, f radioField, state string) {
	t.Helper()
	f.ns.Run(t, "sh", "-ec", "for s in /sys/class/ieee80211/"+f.radio.Phy+"/rfkill*; do echo "+state+" >$s/soft; done")
}

func (f radioField) hears(t *testing.T, when string, caps wire.Caps) {
	t.Helper()
	if !slices.ContainsFunc(caps.Heard, func(c wire.HeardCell) bool {
		return c.SSID == "neighbours" && c.BSSID == "02:11:22:33:44:77" && c.Channel == 6 && c.SignalDbm != nil &&
			c.AgeMs < 20_000
	}) {
		t.Errorf("%s it heard %+v, want the neighbours", when, caps.Heard)
	}
}

// Who else uses the channel is heard, on demand and before the join, and told.
func TestGuestHearsOthers(t *testing.T) {
	hwsim.NeedGuest(t)
	radios := hwsim.Load(t, 2)
	f, other := newRadioField(t, radios[0], "a"), newRadioField(t, radios[1], "o")
	other.ns.Run(t, "ip", "link", "set", device, "down")
	other.radio.IW(t, "dev", device, "set", "type", "ibss")
	other.ns.Run(t, "ip", "link", "set", device, "up")
	other.radio.IW(t, "dev", device, "ibss", "join", "neighbours", "2437", "NOHT", "fixed-freq", "02:11:22:33:44:77")
	hwsim.Await(t, time.Minute, "the other network", func() bool {
		return strings.Contains(other.radio.IW(t, "dev", device, "info"), "channel 6")
	})
	before := f.snapshot(t)
	client, host := f.start(t, true)
	if err := client.Scan(t.Context(), device, 6); err != nil {
		t.Error(err)
	}
	f.hears(t, "on demand", f.caps(t))
	f.becomes(t, "after a scan", before)
	var refused *change.Refused
	if err := client.Scan(t.Context(), device, 34); !errors.As(err, &refused) ||
		!strings.Contains(refused.Reason, "no channel 34") {
		t.Errorf("a channel that is none: %v", err)
	}
	apply(t, client, ScopeRun, []change.Change{adhoc()})
	caps := f.caps(t)
	t.Logf("heard %+v; can be at once: %q", caps.Heard, caps.Combinations)
	f.hears(t, "before the join", caps)
	if len(caps.Combinations) == 0 {
		t.Error("nothing is reported of what the radio can be at once")
	}
	restoreAll(t, client)
	terminate(t, host)
	f.becomes(t, "in the end", before)
}
