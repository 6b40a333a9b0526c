package face

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/gps"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/node-agent/trial"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Whoever has no fix is told where it should come from: gpsd, or the phone's app.
func TestGPSProblem(t *testing.T) {
	const gpsd = "127.0.0.1:2947"
	for name, c := range map[string]struct {
		gpsd        string
		gps         *wire.GPS
		found, cure string // in the words; "": there is no problem
	}{
		"no gpsd": {gpsd, nil, "gpsd does not answer at " + gpsd, "start gpsd"},
		"gpsd has no fix": {gpsd, &wire.GPS{Connected: true, Mode: 1}, "no fix (mode 1)",
			"the receiver a view of the sky"},
		"gpsd's fix":     {gpsd, &wire.GPS{Connected: true, Mode: 3, FixAgeMs: new(900.0)}, "", ""},
		"no app":         {config.NoGPSD, &wire.GPS{}, "no app tells where", `"Use this phone's GPS"`},
		"the app is new": {config.NoGPSD, nil, "no app tells where", `"Use this phone's GPS"`},
		"the app is indoors": {config.NoGPSD, &wire.GPS{Connected: true, Mode: 1}, "from the app",
			"the phone a view of the sky"},
		"the app's is old": {config.NoGPSD, &wire.GPS{Connected: true, Mode: 3, FixAgeMs: new(3001.0)}, "from the app",
			"again"},
		"the app's fix": {config.NoGPSD, &wire.GPS{Connected: true, Mode: 3, FixAgeMs: new(900.0)}, "", ""},
	} {
		found, cure := gpsProblem(c.gpsd, c.gps)
		if !strings.Contains(found, c.found) || !strings.Contains(cure, c.cure) || (found == "") != (c.found == "") ||
			(cure == "") != (found == "") {
			t.Errorf("%s: %q, %q", name, found, cure)
		}
	}
}

// Where only one half was started again after an edit of agent.yaml, arming would be refused for what the other has.
func TestHalvesOfDifferentConfigurationsAreTold(t *testing.T) {
	f := &Face{cfg: config.Config{Interface: "enp3s0"}}
	before := config.Config{Interface: "wlan0"}.HostSettings()
	const want = `the privileged half began with "interface: wlan0", what faces the network with "interface: enp3s0"`
	if found := f.beganOtherwise(wire.HostStatus{Settings: before}); !strings.Contains(found, want) {
		t.Errorf("it says %q", found)
	}
	for name, st := range map[string]wire.HostStatus{"the same": {Settings: f.cfg.HostSettings()},
		"an agent that does not tell": {}, "another version's": {Settings: before[1:]}} {
		if found := f.beganOtherwise(st); found != "" {
			t.Errorf("%s: it says %q", name, found)
		}
	}
}

// A node has one track: another phone's fix is refused, and says whose it has.
//
//attack:phone another phone gives its own position as this node's
func TestAnotherPhonesFixIsRefused(t *testing.T) {
	lat, lon := -26.682, 27.092
	for name, c := range map[string]struct {
		own, followed, other, says string
	}{
		"a laptop's":   {"", "b", "a", "this node is where b says"},
		"on the phone": {pinOf("a"), "a", "b", "this node is a phone, whose own app tells"},
	} {
		f := &Face{cfg: config.Config{GPSD: config.NoGPSD, AppKey: c.own}, gps: gps.NewPushed(clock.System{}),
			engine: &trial.Engine{}}
		push := func(by string, speed float64) (wire.GPS, error) {
			return f.PushFix(api.Peer{Name: by, Role: wire.RoleApp, Pin: pinOf(by)},
				wire.Fix{Mode: 3, LatDeg: &lat, LonDeg: &lon, SpeedMps: &speed})
		}
		if is, err := push(c.followed, 13.9); err != nil || *is.SpeedMps != 13.9 {
			t.Errorf("%s: of %s: %+v, %v", name, c.followed, is, err)
		}
		_, err := push(c.other, 0)
		var refused *wire.Error
		if !errors.As(err, &refused) || refused.Code != wire.CodeConflict ||
			!strings.Contains(refused.Message, c.says) {
			t.Errorf("%s: of %s: %v", name, c.other, err)
		}
		if is, _ := f.gps.Last(); *is.SpeedMps != 13.9 {
			t.Errorf("%s: the node's speed is %g m/s", name, *is.SpeedMps)
		}
	}
}

// handClock stands until it is set.
type handClock struct {
	clock.System
	ns int64
}

func (c *handClock) BootNs() int64 { return c.ns }

// Whose GPS a node follows is in its records from the moment that it changes, in the attempt that is under way.
func TestAChangeOfTheFollowedPhoneIsRecorded(t *testing.T) {
	sp, err := spool.Open(t.TempDir(), "car", spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sp.Close() })
	clk, speed := &handClock{}, 13.9
	f := &Face{cfg: config.Config{GPSD: config.NoGPSD}, gps: gps.NewPushed(clk), clk: clk, spool: sp,
		engine: &trial.Engine{}}
	push := func(s int64, by string, fix wire.Fix, k wire.TrialKey) {
		t.Helper()
		clk.ns = s * 1e9
		if _, err := f.follow(by, fix, k, wire.StateRunning); err != nil {
			t.Fatal(err)
		}
	}
	fix, none := wire.Fix{Mode: 3, SpeedMps: &speed}, wire.Fix{Mode: 1}
	key := wire.TrialKey{Trial: 7, Attempt: 2}
	push(6, "van", fix, wire.TrialKey{})
	push(12, "van", fix, key)
	for s := range int64(10) {
		push(18+2*s, "driver", none, key)
	}
	push(38, "driver", fix, key)
	push(40, "driver", fix, key)
	push(46, "van", fix, wire.TrialKey{})
	if err := sp.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines, _, err := sp.Read(0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, line := range lines {
		var r wire.Record
		if err := r.UnmarshalJSON(line); err != nil {
			t.Fatal(err)
		}
		if e, is := r.Body.(*wire.Event); is {
			told = append(told, fmt.Sprintf("%d.%d at %d s: %s", r.Trial, r.Attempt, r.TBootNs/1e9, e.Text))
		}
	}
	if want := []string{"7.2 at 38 s: gps: this node is where driver says, and no more where van says",
		"0.0 at 46 s: gps: this node is where van says, and no more where driver says"}; !slices.Equal(told, want) {
		t.Errorf("recorded is\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

// A phone that has lost its fix gives way before a window, and not in one.
func TestAWindowKeepsItsPhone(t *testing.T) {
	key, speed := wire.TrialKey{Trial: 7, Attempt: 1}, 13.9
	fix, none := wire.Fix{Mode: 3, SpeedMps: &speed}, wire.Fix{Mode: 1}
	for state, keeps := range map[wire.State]bool{"": false, wire.StateArmed: false, wire.StateRunning: true} {
		sp, err := spool.Open(t.TempDir(), "car", spool.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sp.Close() })
		clk := &handClock{ns: 1e9}
		f := &Face{gps: gps.NewPushed(clk), clk: clk, spool: sp, engine: &trial.Engine{}}
		_, err = f.follow("van", fix, key, state)
		clk.ns = 60e9
		if _, again := f.follow("van", none, key, state); err != nil || again != nil {
			t.Fatal(err, again)
		}
		var refused *wire.Error
		_, err = f.follow("bystander", fix, key, state)
		if keeps != (errors.As(err, &refused) && refused.Code == wire.CodeConflict) || !keeps && err != nil {
			t.Errorf("a bystander's fix while the van's phone has none, in state %q: %v", state, err)
		}
	}
}
