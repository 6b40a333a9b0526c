package trial

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/node-agent/trial/needs"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func words(changes []change.Change) (out []string) {
	for _, c := range changes {
		out = append(out, c.String())
	}
	return out
}

// An interface beside the machine's own is made before everything else, and as
// the run's first network needs it, whichever of the run's trials asks.
func TestTheRadioIsTheFirstOfARunsChanges(t *testing.T) {
	adhoc := wire.Radio{Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "m"}
	mesh := wire.Radio{Mode: "mesh", Standard: "802.11g", Channel: 11, SSID: "m"}
	joins := `radio wlan0 adhoc "m" 802.11g channel 6`
	before := []string{"managers of wlan0 aside", "sysctl net.ipv6.conf.wlan0.disable_ipv6=1"}
	after := []string{"link wlan0 up", "address 10.77.0.1/24 on wlan0", "look-up of 10.77.0.0/24 in main first"}
	for name, c := range map[string]struct {
		beside     string
		radios     []wire.Radio // of the run's trials
		run, trial []string
	}{
		"one radio for all": {"", []wire.Radio{adhoc, adhoc}, slices.Concat(before, []string{joins}, after), nil},
		"one for each":      {"", []wire.Radio{adhoc, mesh}, slices.Concat(before, after), []string{joins}},
		"beside": {"wlan9", []wire.Radio{adhoc, adhoc},
			slices.Concat([]string{"interface wlan0 beside wlan9"}, before, []string{joins}, after), nil},
		"beside, for each": {"wlan9", []wire.Radio{{Mode: "none"}, mesh, adhoc},
			slices.Concat([]string{"interface wlan0 beside wlan9"}, before, after), []string{joins}},
	} {
		plan := wire.RunPlan{Nodes: []wire.PlanNode{{Name: "car", MeshPrefix: "10.77.0.1/24"}}}
		for _, r := range c.radios {
			plan.Trials = append(plan.Trials, wire.Trial{Car: "car", Radio: r, Routing: wire.Routing{Protocol: "none"}})
		}
		at := slices.IndexFunc(plan.Trials, func(t wire.Trial) bool { return t.Radio.Mode == "adhoc" })
		run, trial, err := needs.Changes(plan, plan.Trials[at], tcp.Profile{Kernel: "reno"}, "car", "wlan0")
		if err != nil {
			t.Fatal(err)
		}
		run, trial = withRadio(plan, plan.Trials[at],
			Config{Node: "car", Interface: "wlan0", Beside: c.beside}, run, trial)
		if got := words(run); !slices.Equal(got, c.run) {
			t.Errorf("%s: the run's are %q, want %q", name, got, c.run)
		}
		isRadio := func(c change.Change) bool { _, is := c.(change.Radio); return is }
		got := words(trial)
		if c.trial != nil && !strings.HasPrefix(got[0], c.trial[0]) ||
			c.trial == nil && slices.ContainsFunc(trial, isRadio) {
			t.Errorf("%s: the trial's are %q, want %q first", name, got, c.trial)
		}
		made, first := run[0], c.radios[max(0, slices.IndexFunc(c.radios, setByPlan))]
		want := change.Virtual{Interface: "wlan0", Beside: c.beside, Mode: first.Mode, Channel: first.Channel}
		if c.beside != "" && made != want {
			t.Errorf("%s: made as %+v, want as for the first network, %+v", name, made, want)
		}
	}
}

// Before a run the interface beside another is not there, and that is no fault;
// without its radio, or in a plan that joins no network, it is.
func TestTheRadioBesideIsLookedFor(t *testing.T) {
	adhoc := wire.Radio{Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "m"}
	for name, c := range map[string]struct {
		beside string
		caps   *wire.Caps
		want   wire.Radio
		err    string // in it; empty: none
	}{
		"a radio":   {"lo", &wire.Caps{Driver: realDriver}, adhoc, ""},
		"no radio":  {"lo", nil, adhoc, "lo is not a radio; correct `phy_of`"},
		"not there": {"wlan9", nil, adhoc, "wlan9 is not there; plug it in"},
		"left as it is": {"lo", &wire.Caps{Driver: realDriver}, wire.Radio{Mode: "none"},
			"is there only while a plan sets its radio"},
		"none beside, not there": {"", nil, adhoc, "mesh9 is not there"},
		"none beside, left":      {"", nil, wire.Radio{Mode: "none"}, ""},
		"none beside, of no radio": {"", &wire.Caps{Driver: "medium", Mode: "mesh"}, adhoc,
			"the mode of mesh9 is mesh"},
	} {
		e := &Engine{cfg: Config{Node: "car", Interface: "mesh9", Beside: c.beside}}
		e.deps.Radio = func() (*wire.Caps, error) { return c.caps, nil }
		_, err := e.findRadio(t.Context(), c.want)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// A radio that cannot be read is not one that is not there: it is asked again for a
// while, and then the reason says why it could not be read.
func TestARadioThatCannotBeReadIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		unread time.Duration // for how long it cannot be
		ended  bool          // the attempt, meanwhile
		err    string        // in it; empty: none
	}{
		"soon read":  {radioAnswers - radioAsked, false, ""},
		"never read": {time.Hour, false, "it cannot be seen what lo is set to: the kernel does not answer"},
		"broken off": {time.Hour, true, context.DeadlineExceeded.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			e := &Engine{cfg: Config{Node: "car", Interface: "mesh9", Beside: "lo"}}
			e.deps.Radio = func() (*wire.Caps, error) {
				if time.Since(began) < c.unread {
					return nil, errors.New("the kernel does not answer")
				}
				return &wire.Caps{Driver: realDriver}, nil
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if c.ended {
				ctx, stop = context.WithTimeout(ctx, radioAnswers/2)
				defer stop()
			}
			caps, err := e.findRadio(ctx, wire.Radio{Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "m"})
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || (err == nil) !=
				setsRadio(caps) {
				t.Errorf("%s: %+v, %v, want %q", name, caps, err, c.err)
			}
			if took := time.Since(began); took > radioAnswers+radioAsked {
				t.Errorf("%s: it was asked for %s", name, took)
			}
		})
	}
}

func TestAPowerThatIsNotThePlansIsRecorded(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.cfg.Interface = "lo" // which is there
	road.plan.Trials[0].Radio = wire.Radio{Mode: "adhoc", Channel: 6, TxPowerDbm: new(20.0)}
	road.deps.Radio = func() (*wire.Caps, error) {
		return &wire.Caps{Driver: realDriver, Mode: "adhoc", Channel: 6, TxPowerDbm: new(14.0)}, nil
	}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	told := road.spool.kinds(k, "event")
	if len(told) != 1 || !strings.Contains(told[0].Body.(*wire.Event).Text, "lo tells a transmit power of 14 dBm") {
		t.Errorf("told %+v", told)
	}
	if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: k, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	await(t, "kept", func() bool { return road.kept(k) })
}

// A station that may sleep is warned about, and what its radio is set to is recorded, though the plan leaves it as
// it is.
func TestAStationThatMaySleepIsRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		may   *bool
		notes int
	}{"it may": {new(true), 1}, "it may not": {new(false), 0}, "nobody tells": {nil, 0}} {
		_, road, plan := pair(t, 1)
		road.deps.Radio = func() (*wire.Caps, error) {
			return &wire.Caps{Driver: realDriver, Mode: "managed", Channel: 6, PowerSave: c.may}, nil
		}
		k := wire.TrialKey{Trial: 1, Attempt: 1}
		if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
		told := road.spool.kinds(k, "event")
		if len(told) != c.notes || c.notes > 0 && !strings.Contains(told[0].Body.(*wire.Event).Text,
			"a station whose power save is on") {
			t.Errorf("%s: told %+v", name, told)
		}
		was := road.spool.kinds(k, "provenance")
		if len(was) != 1 || was[0].Body.(*wire.Provenance).Radio == nil ||
			!reflect.DeepEqual(was[0].Body.(*wire.Provenance).Radio.PowerSave, c.may) {
			t.Errorf("%s: recorded %+v", name, was)
		}
		if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: k, Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		await(t, "kept", func() bool { return road.kept(k) })
	}
}

// With a phone's hotspot Android has the interface up and IPv6 as it needs it: the
// run's changes begin with the hotspot, and leave both alone. Every node makes the
// same passphrase of the run's key, another run another.
func TestAHotspotIsTheFirstOfARunsChanges(t *testing.T) {
	radio := wire.Radio{Mode: wire.ModeHotspot, Channel: 6, SSID: "m", AccessPoint: "road"}
	plan := wire.RunPlan{Key: []byte("0123456789abcdef0123456789abcdef"),
		Nodes: []wire.PlanNode{{Name: "car", MeshPrefix: "10.77.0.1/24"}, {Name: "road", MeshPrefix: "10.77.0.2/24"}},
		Trials: []wire.Trial{{Car: "car", Roadside: "road", Sender: "car", Receiver: "road", Radio: radio,
			Routing: wire.Routing{Protocol: "none"}}}}
	phrases := map[string]bool{}
	for node, want := range map[string][]string{
		"car": {`hotspot "m" on channel 6, joined by wlan0`, "address 10.77.0.1/24 on wlan0",
			"look-up of 10.77.0.0/24 in main first"},
		"road": {`hotspot "m" on channel 6, kept on wlan0`, "address 10.77.0.2/24 on wlan0",
			"look-up of 10.77.0.0/24 in main first"},
	} {
		run, _, err := needs.Changes(plan, plan.Trials[0], tcp.Profile{Kernel: "reno"}, node, "wlan0")
		if err != nil {
			t.Fatal(err)
		}
		run = withHotspot(plan, plan.Trials[0], Config{Node: node, Interface: "wlan0"}, run)
		if got := words(run); !slices.Equal(got, want) {
			t.Errorf("%s: the run's are %q, want %q", node, got, want)
		}
		c := run[0].(change.Hotspot)
		phrases[c.Passphrase] = true
		if c.Network.String() != "10.77.0.0/24" || strings.Contains(strings.Join(words(run), ""), c.Passphrase) {
			t.Errorf("%s: %+v", node, c.Network)
		}
	}
	plan.Key[0]++
	phrases[passphrase(plan)] = true
	if len(phrases) != 2 {
		t.Errorf("two nodes of a run and one of another have the passphrases %v", phrases)
	}
}
