package trial

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A radio that goes in the window fails the attempt, whether it is this machine's agent that had it join or somebody
// before it, though no packet has a way then, as in an outage. A station out of reach is an outage.
func TestARadioThatGoesInTheWindowIsNoOutage(t *testing.T) {
	cell := wire.Caps{Driver: realDriver, Mode: "adhoc", Channel: 6, SSID: "m"}
	client := wire.Caps{Driver: realDriver, Mode: "managed", Channel: 6, SSID: "m"}
	up := link.State{Up: true, Carrier: true, Address: true}
	for name, c := range map[string]struct {
		mode    string
		was, is wire.Caps // the radio, before the window and in it
		state   link.State
		want    string // empty: accepted
	}{
		"flight mode":    {"adhoc", cell, cell, link.State{Address: true}, "radio_gone: lo was set down"},
		"joined by hand": {"none", cell, cell, link.State{Address: true}, "radio_gone: lo was set down"},
		"its address is gone": {"adhoc", cell, cell, link.State{Up: true, Carrier: true},
			"radio_gone: lo lost its address"},
		"made managed": {"adhoc", cell, wire.Caps{Driver: realDriver, Mode: "managed"}, up,
			"radio_gone: the mode of lo went from adhoc to managed"},
		"a station out of reach": {"none", client, wire.Caps{Driver: realDriver, Mode: "managed"},
			link.State{Up: true}, ""},
		"a cable that was pulled": {"none", wire.Caps{}, wire.Caps{}, link.State{Up: true, Address: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			car, road, plan := pair(t, 1)
			k := wire.TrialKey{Trial: 1, Attempt: 1}
			plan.Trials[0].DurationS, plan.Trials[0].Traffic[0].DurationS = 0.3, 0.3
			plan.Trials[0].Radio = wire.Radio{Mode: c.mode, Channel: 6, SSID: "m"}
			opened := func() bool { return len(car.spool.kinds(k, "window")) > 0 }
			car.cfg.Interface = "lo" // which is there
			car.deps.Radio = func() (*wire.Caps, error) {
				if opened() {
					return &c.is, nil
				}
				return &c.was, nil
			}
			car.deps.Link = func(string, netip.Addr) (link.State, error) {
				if opened() {
					return c.state, nil
				}
				return up, nil
			}
			car.deps.Way = func(netip.Addr) (string, error) {
				if opened() && c.state != up {
					return "", unix.ENETUNREACH
				}
				return "lo", nil
			}
			road.cfg.Interface = "lo"
			road.deps.Radio = func() (*wire.Caps, error) { return &c.was, nil }
			for _, r := range []*rig{road, car} {
				if _, err := r.Load(ctx, holder, plan); err != nil {
					t.Fatal(err)
				}
			}
			keepFirst(t, car, road, plan)
			v, err := car.View(ctx, plan.Run, 0)
			if err != nil {
				t.Fatal(err)
			}
			last := v.Trials[0].Attempts[0]
			if got := last.Reason.String(); (c.want == "") != (last.Outcome == wire.Accepted) ||
				!strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %q, want %q", last.Outcome, got, c.want)
			}
		})
	}
}
