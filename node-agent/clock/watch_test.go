package clock

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// played is a clock that a test sets.
type played struct{ boot, wall int64 }

func (p *played) BootNs() int64   { return p.boot }
func (p *played) Wall() time.Time { return time.Unix(0, p.wall).UTC() }

func TestWatchTellsOfAStepOnce(t *testing.T) {
	const second = int64(time.Second)
	wall := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	clk := &played{boot: 500 * second, wall: wall}
	w := NewWatch(clk, time.Time{}, nil, nil)
	var steps []int64
	told := 0
	run := func(ticks int) {
		for range ticks {
			bodies, err := w.Sample(clk.boot)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bodies {
				told++
				if s := b.(*wire.WallClock).SteppedNs; s != nil {
					steps = append(steps, *s)
				}
			}
			clk.boot += second / 10
			clk.wall += second / 10
		}
	}
	run(105)
	if told != 2 || len(steps) != 0 {
		t.Fatalf("told %d times in 10.5 s, steps %v", told, steps)
	}
	clk.wall += 3600 * second
	run(50)
	clk.wall -= 3 * second / 10
	run(50)
	if len(steps) != 2 || steps[0] != 3600*second || steps[1] != -3*second/10 {
		t.Errorf("steps %v, want an hour forward and 0.3 s back", steps)
	}
	steps = nil
	clk.boot, clk.wall = clk.boot+600*second, clk.wall+630*second // suspended, and stepped on waking
	run(1)
	if len(steps) != 1 || steps[0] != 30*second {
		t.Errorf("steps %v, want 30 s forward", steps)
	}
	steps = nil
	// Between trials nobody looks: what came of it is in the next one's first record.
	clk.boot, clk.wall = clk.boot+60*second, clk.wall+120*second
	w.Begin()
	told = 0
	run(1)
	if len(steps) != 0 || told != 1 {
		t.Errorf("after a pause: told %d times, steps %v", told, steps)
	}
}

func TestWatchHoldsTheWallClockAgainstOthers(t *testing.T) {
	const second = int64(time.Second)
	built := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	clk := &played{boot: 500 * second, wall: built.Add(time.Hour).UnixNano()}
	// GPS says that it is 2 s later than the wall clock has it.
	gps := func() (int64, bool) { return clk.boot - (clk.wall + 2*second), true }
	kept := Tracking{Source: "PPS0", Synchronised: true, Offset: -time.Millisecond, Uncertainty: 3 * time.Millisecond,
		DriftPpm: 5}
	now := NewWatch(clk, built, gps, func() (Tracking, bool) { return kept, true }).Now()
	if now.Unset || *now.GPSOffsetNs != 2*second || *now.GPSUncertaintyNs != wire.NMEATimeUncertaintyNs ||
		now.OwnWallOffsetNs != clk.wall-clk.boot {
		t.Errorf("%+v", now)
	}
	if now.Sync != "synchronised" || now.SyncSource != "PPS0" || *now.SyncOffsetNs != -1e6 || *now.SyncUncertaintyNs !=
		3e6 || *now.SyncDriftPpm != 5 {
		t.Errorf("%+v", now)
	}
	clk.wall = 0
	lost := func() (Tracking, bool) { return Tracking{}, true }
	now = NewWatch(clk, built, func() (int64, bool) { return 0, false }, lost).Now()
	if !now.Unset || now.GPSOffsetNs != nil || now.Sync != "unsynchronised" || now.SyncOffsetNs != nil {
		t.Errorf("a clock that nobody has set: %+v", now)
	}
}

func TestTrackingOfChrony(t *testing.T) {
	// As chronyc 4.3 prints it: of a machine that follows a server; of one whose
	// clock gains 5 ppm and is its own reference; of one that has no reference yet.
	for text, want := range map[string]Tracking{
		"C0A83201,192.168.50.1,3,1795241186.758373683,-0.000012000,0.000003,0.000010,5.250,0.001,0.050,0.002000000,0.000500000,64.2,Normal\n": {
			Source: "192.168.50.1", Synchronised: true, Offset: -12 * time.Microsecond,
			Uncertainty: 1500 * time.Microsecond, DriftPpm: 5.25,
		},
		"7F7F0101,,8,1795241224.637987572,-0.000010000,0.000000000,0.000000000,5.000,0.000,0.000,0.000000000,0.000000000,0.0,Normal\n": {
			Source: "7F7F0101", Synchronised: true, Offset: -10 * time.Microsecond, DriftPpm: 5,
		},
		"00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised\n": {
			Source: "00000000", Uncertainty: 1500 * time.Millisecond,
		},
	} {
		got, err := parseTracking(text)
		if err != nil || got.Source != want.Source || got.Synchronised != want.Synchronised ||
			got.Offset != want.Offset || got.Uncertainty != want.Uncertainty || got.DriftPpm != want.DriftPpm {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "506 Cannot talk to daemon\n", "a,b,c,d,e,f,g,h,i,j,k,l,m,n\n"} {
		if got, err := parseTracking(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func FuzzTracking(f *testing.F) {
	f.Add("C0A83201,192.168.50.1,3,1795241186.758373683,-0.000012,0.000003,0.00001,5.25,0.001,0.05,0.002,0.0005,64.2,Normal\n")
	fuzz.Run(f, func(_ *testing.T, text string) { _, _ = parseTracking(text) })
}

func TestChronyIsAskedByItsProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chronyc")
	const script = "#!/bin/sh\n[ \"$*\" = '-n -c tracking' ] && echo 'A,b,2,1,0.5,0,0,1,0,0,0.2,0.1,64,Normal'\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := NewChrony(path).ask(t.Context()); err != nil || got.Offset != 500*time.Millisecond ||
		got.Uncertainty != 200*time.Millisecond {
		t.Errorf("%+v, %v", got, err)
	}
	c := NewChrony(filepath.Join(t.TempDir(), "absent"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Run(ctx)
	if got, known := c.Tracking(); known {
		t.Errorf("without chrony %+v is known", got)
	}
}

func TestSkewedClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock.json")
	write := func(s Skew) {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", text, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewSkewed(path); err == nil {
		t.Error("a file that is not there was read")
	}
	const second = int64(time.Second)
	from := System{}.BootNs() - 1000*second
	write(Skew{BootOffsetNs: -40 * second, WallOffsetNs: 5 * second, DriftPpm: 50, FromBootNs: from})
	c, err := NewSkewed(path)
	if err != nil {
		t.Fatal(err)
	}
	boot, wall := System{}.BootNs(), System{}.Wall()
	gained := 50e-6 * float64(boot-from)
	if off := float64(c.BootNs()-boot) + 40e9 - gained; math.Abs(off) > 1e9 {
		t.Errorf("the boot clock is %.0f ns off", off)
	}
	if off := float64(c.Wall().Sub(wall)) - 5e9 - gained; math.Abs(off) > 1e9 {
		t.Errorf("the wall clock is %.0f ns off", off)
	}
	write(Skew{BootOffsetNs: -40 * second, WallOffsetNs: 3600 * second, DriftPpm: 50, FromBootNs: from})
	for until := time.Now().Add(10 * time.Second); c.Wall().Sub(System{}.Wall()) <
		1000*time.Second; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the step is not seen")
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * lookAgain)
	if c.Wall().Sub(System{}.Wall()) < 1000*time.Second {
		t.Error("a half-written file has put the clock back")
	}
}
