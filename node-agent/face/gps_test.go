package face

import (
	"errors"
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
		f := &Face{cfg: config.Config{GPSD: config.NoGPSD, AppKey: c.own}, gps: gps.NewPushed(clock.System{})}
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

// Whose GPS a node follows is in its records from the moment that it changes.
func TestAChangeOfTheFollowedPhoneIsRecorded(t *testing.T) {
	sp, err := spool.Open(t.TempDir(), "car", spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sp.Close() })
	clk, speed := &handClock{}, 13.9
	f := &Face{cfg: config.Config{GPSD: config.NoGPSD}, gps: gps.NewPushed(clk), clk: clk, spool: sp,
		engine: &trial.Engine{}}
	for i, by := range []string{"van", "van", "driver", "driver"} {
		clk.ns = int64(1+i) * 6e9
		fix := wire.Fix{Mode: 3, SpeedMps: &speed}
		if _, err := f.PushFix(api.Peer{Name: by, Role: wire.RoleApp, Pin: pinOf(by)}, fix); err != nil {
			t.Fatal(err)
		}
	}
	if err := sp.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines, _, err := sp.Read(0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, line := range lines {
		if strings.Contains(string(line), "this node is where driver says, and no more where van says") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the change is in %d of %d records, want 1", told, len(lines))
	}
}
