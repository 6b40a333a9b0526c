package verdict

import (
	"math"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A comparison of clocks says less the older it is: they drift apart by up to
// 200 ppm. Between two they drift steadily.
func TestAnOldComparisonOfClocksIsLessSure(t *testing.T) {
	compared := func(s, ms float64) wire.Record {
		return at("car", s, &wire.Clock{Peer: "roadside", UncertaintyNs: int64(ms * 1e6)})
	}
	const goMs = 0.9
	for name, c := range map[string]struct {
		clocks []wire.Record
		wantMs float64
		source string
	}{
		"just before":                  {[]wire.Record{compared(0, 1)}, 1 + 10*0.2 + goMs, "clocks ± 3 ms"},
		"half a minute before":         {[]wire.Record{compared(-30, 1)}, 1 + 40*0.2 + goMs, "clocks ± 9 ms"},
		"ten minutes before":           {[]wire.Record{compared(-600, 1)}, goMs, "by GO alone"},
		"ten minutes before and after": {[]wire.Record{compared(-600, 1), compared(610, 1)}, 1 + goMs, "clocks ± 1 ms"},
		"before and after":             {[]wire.Record{compared(0, 1), compared(10, 1)}, 1 + goMs, "clocks ± 1 ms"},
		"a sure old and an unsure new": {[]wire.Record{compared(-600, 0.1), compared(0, 4)}, 4.07 + goMs, "clocks"},
		"unsure and fresh":             {[]wire.Record{compared(0, 30)}, 30 + 10*0.2 + goMs, "clocks ± 32 ms"},
	} {
		records := append(without(good(), isKind("clock")), c.clocks...)
		m := Measure(trial(), records)
		if m.ClockErrorMs == nil || math.Abs(*m.ClockErrorMs-c.wantMs) > 0.02 ||
			!strings.HasPrefix(m.ClockSource, c.source) {
			t.Errorf("%s: %.3f (%s), want %g (%s)", name, *m.ClockErrorMs, m.ClockSource, c.wantMs, c.source)
		}
	}
}

// The controller's laptop went flat in the window. What it compares after its start, or another
// laptop that resumes the run, is against a boot clock that began hours later.
func TestAControllerThatWasRebootedIsAnotherObserver(t *testing.T) {
	const hour = 3600e9
	compared := func(epoch string, wallNs *int64, s float64, bootedNs int64) (out []wire.Record) {
		for _, peer := range []string{"car", "roadside"} {
			r := at("controller", s, &wire.Clock{Peer: peer, OffsetNs: bootedNs, UncertaintyNs: 1e6,
				OwnWallOffsetNs: wallNs})
			r.Epoch, r.TBootNs = epoch, r.TBootNs-bootedNs
			out = append(out, r)
		}
		return out
	}
	const wallNs = 1_790_000_000e9
	one := compared("one", new(int64(wallNs)), 0, 0)
	for name, c := range map[string]struct {
		after  []wire.Record
		wantMs float64
	}{
		"rebooted":                       {compared("two", new(int64(wallNs+3*hour)), 12, 3*hour), 2*(1+10*0.2) + 0.9},
		"rebooted, and nothing of walls": {compared("two", nil, 12, 3*hour), 2*(1+10*0.2) + 0.9},
		"started again":                  {compared("two", new(int64(wallNs+5e6)), 10, 0), 2 + 0.9},
		"the same process":               {compared("one", nil, 10, 0), 2 + 0.9},
	} {
		records := append(append(without(good(), isKind("clock")), one...), c.after...)
		m := Measure(trial(), records)
		if m.ClockErrorMs == nil || math.Abs(*m.ClockErrorMs-c.wantMs) > 0.02 {
			t.Errorf("%s: %.3f (%s), want %g", name, *m.ClockErrorMs, m.ClockSource, c.wantMs)
		}
	}
}

// The roadside node was switched off after the attempt, or before it, and on again. What it is compared with in another
// boot says nothing of the clock that it had then.
func TestANodeThatWasRebootedIsAnotherClock(t *testing.T) {
	const (
		wallNs = int64(1_790_000_000e9)
		hour   = int64(3600e9)
	)
	compared := func(peer string, s float64, bootedNs, wallNs int64) wire.Record {
		r := at("controller", s, &wire.Clock{Peer: peer, OffsetNs: -bootedNs, UncertaintyNs: 1e6,
			WallOffsetNs: wallNs - bootedNs, OwnWallOffsetNs: new(int64(0))})
		r.Epoch, r.TBootNs = "one", r.TBootNs+bootedNs // s is by the peer's own clock
		return r
	}
	own := func(offsetNs int64, unset bool) []wire.Record {
		return []wire.Record{at("car", 0, &wire.WallClock{OwnWallOffsetNs: offsetNs, Unset: unset}),
			at("roadside", 0, &wire.WallClock{OwnWallOffsetNs: offsetNs, Unset: unset})}
	}
	both := func(s float64, bootedNs, wallNs int64) []wire.Record {
		return []wire.Record{compared("car", s, bootedNs, wallNs), compared("roadside", s, bootedNs, wallNs)}
	}
	const goMs = 0.9
	before := both(0, 0, wallNs)
	for name, c := range map[string]struct {
		clocks []wire.Record
		own    []wire.Record
		wantMs float64
	}{
		"after the attempt":          {both(20, 5*hour, wallNs+5*hour), own(wallNs, false), goMs},
		"before it":                  {both(-20, -5*hour, wallNs-5*hour), own(wallNs, false), goMs},
		"compared in both":           {append(both(20, 5*hour, wallNs+5*hour), before...), own(wallNs, false), 6.9},
		"its wall clock is not told": {both(-3000, 5*hour, wallNs+5*hour), nil, goMs},
		"its clock was put right":    {append(both(10, 0, wallNs+30e9), before...), own(wallNs, false), 2 + goMs},
		"its clock was set at last":  {append(both(10, 0, wallNs), before...), own(0, true), 2 + goMs},
		"it is the boot of the time": {before, own(wallNs+5e6, false), 6 + goMs},
		"it booted hours after":      {both(10, 5*hour, wallNs), own(wallNs, false), 6 + goMs}, // who compares
		"it booted hours before":     {both(10, -5*hour, wallNs), own(wallNs, false), 6 + goMs},
	} {
		records := append(append(without(good(), isKind("clock")), c.own...), c.clocks...)
		m := Measure(trial(), records)
		if m.ClockErrorMs == nil || math.Abs(*m.ClockErrorMs-c.wantMs) > 0.02 {
			t.Errorf("%s: %.3f (%s), want %g", name, *m.ClockErrorMs, m.ClockSource, c.wantMs)
		}
	}
}
