package trial

import (
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A node whose packets to a peer leave by another interface does not arm, and says
// by which.
func TestANodeWithAnotherWayToAPeerDoesNotArm(t *testing.T) {
	for name, c := range map[string]struct {
		iface string
		err   error
		want  string // empty: it arms
	}{
		"by the one under test": {"wlan0", nil, ""},
		"by another":            {"rmnet0", nil, "packets to road at 127.0.0.2 leave by rmnet0, not by wlan0"},
		"none":                  {"", errors.New("network is unreachable"), "no way to road at 127.0.0.2: network"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "car", t.TempDir(), 0)
			r.deps.Way = func(netip.Addr) (string, error) { return c.iface, c.err }
			r.start(t)
			plan := twoNodePlan(1, 0, 0)
			if _, err := r.Lease(t.Context(), holder, wire.Lease{Holder: "desk", TTLS: 30}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Load(t.Context(), holder, plan); err != nil {
				t.Fatal(err)
			}
			_, err := r.Arm(t.Context(), holder, plan.Run, wire.TrialKey{Trial: 1, Attempt: 1})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("armed: %v, want %q", err, c.want)
			}
		})
	}
}

// An attempt within whose window packets to the flow's other end come to leave by
// another interface, for a moment or to its end, is not accepted. A routing daemon's
// ways are its own.
func TestAWayThatChangesInTheWindowFailsTheAttempt(t *testing.T) {
	const own = "wlan0"
	type way struct {
		iface string
		err   error
	}
	// Where the car's is a phone: the network that its Android is in once the window has
	// opened, "-" for none, and whether it keeps the hotspot.
	phones := map[string]struct {
		network string
		keeps   bool
	}{
		"Android's outage": {"m", false}, "elsewhere by Android": {"m", false}, "out of reach": {"-", false},
		"in another network": {"cafe", false}, "a hotspot has ended": {"-", true},
	}
	for name, c := range map[string]struct {
		protocol string
		then     way
		from, to float64 // of the window: meanwhile the way is another
		away     bool    // the interface has no carrier
		want     string
	}{
		"stays":                  {"none", way{own, nil}, 0, 2, false, ""},
		"elsewhere":              {"none", way{"tun0", nil}, 0, 2, false, "misrouted: packets to road"},
		"elsewhere for a moment": {"none", way{"tun0", nil}, 0.1, 0.9, false, "misrouted: packets to road"},
		"none":                   {"none", way{"", unix.ENETUNREACH}, 0, 2, false, "misrouted: there is no way"},
		"an outage":              {"none", way{"", unix.ENETUNREACH}, 0.1, 0.9, true, ""},
		"elsewhere in an outage": {"none", way{"tun0", nil}, 0.1, 0.9, true, "misrouted: packets to road"},
		"a daemon's device":      {"babeld", way{"fieldmesh0", nil}, 0, 2, false, ""},
		"a daemon has none":      {"babeld", way{"", unix.EHOSTUNREACH}, 0, 2, false, ""},
		"elsewhere by a daemon":  {"babeld", way{"rmnet0", nil}, 0, 2, false, "misrouted: packets to road"},
		"not known":              {"babeld", way{"", unix.EMFILE}, 0, 2, false, "misrouted: there is no way"},
		"Android's outage":       {"none", way{"rmnet0", nil}, 0.1, 0.9, true, ""},
		"elsewhere by Android":   {"none", way{"rmnet0", nil}, 0.1, 0.9, false, "misrouted: packets to road"},
		"out of reach":           {"none", way{"rmnet0", nil}, 0.1, 2, true, ""},
		"in another network":     {"none", way{"rmnet0", nil}, 0.1, 2, true, `radio_gone: wlan0 is in network "cafe" now`},
		"a hotspot has ended":    {"none", way{own, nil}, 0, 2, false, "radio_gone: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			car, road, plan := pair(t, 1)
			k := wire.TrialKey{Trial: 1, Attempt: 1}
			plan.Trials[0].DurationS, plan.Trials[0].Routing.Protocol = 0.5, c.protocol
			plan.Trials[0].Traffic[0].DurationS = 0.5
			phone, hotspot := phones[name]
			if hotspot {
				ap := map[bool]string{true: "car", false: "road"}[phone.keeps]
				plan.Trials[0].Radio = wire.Radio{Mode: wire.ModeHotspot, Channel: 6, SSID: "m", AccessPoint: ap}
			}
			road.host.wifi = func() (wire.Caps, error) { return wire.Caps{SSID: "m"}, nil }
			car.host.wifi = func() (wire.Caps, error) {
				switch {
				case len(car.spool.kinds(k, "window")) == 0:
					return wire.Caps{SSID: "m"}, nil
				case phone.network == "-":
					return wire.Caps{}, &change.Refused{Reason: "Android is in none"}
				}
				return wire.Caps{SSID: phone.network}, nil
			}
			var asked atomic.Int32
			car.deps.Link = func(string, netip.Addr) (link.State, error) {
				return link.State{Up: true, Address: true, Carrier: !c.away}, nil
			}
			car.deps.Way = func(netip.Addr) (string, error) {
				opened := car.spool.kinds(k, "window")
				if len(opened) == 0 {
					return own, nil
				}
				asked.Add(1)
				w := opened[0].Body.(*wire.Window)
				at := float64(car.deps.Clock.BootNs()-w.OpenBootNs) / float64(w.CloseBootNs-w.OpenBootNs)
				if at < c.from || at > c.to {
					return own, nil
				}
				return c.then.iface, c.then.err
			}
			for _, r := range []*rig{road, car} {
				if _, err := r.Load(ctx, holder, plan); err != nil {
					t.Fatal(err)
				}
				if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
					t.Fatal(err)
				}
			}
			await(t, "kept", func() bool { return car.kept(k) })
			v, err := car.View(ctx, plan.Run, 0)
			if err != nil {
				t.Fatal(err)
			}
			last := v.Trials[0].Attempts[0]
			if got := last.Reason.String(); (c.want == "") != (last.Outcome == wire.Accepted) ||
				!strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %s, want %q", last.Outcome, got, c.want)
			}
			if asked.Load() == 0 {
				t.Error("no way was read in the window")
			}
		})
	}
}
