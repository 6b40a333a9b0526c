package measure

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// handClock moves only when told: by sleeping on it, or by slow sources.
type handClock struct{ ns int64 }

func (c *handClock) BootNs() int64   { return c.ns }
func (c *handClock) Wall() time.Time { return time.Time{} }

// scripted is a source that takes some time and fails at some beats.
type scripted struct {
	clk   *handClock
	takes []time.Duration // by call; beyond: nothing
	fails []error
	at    []int64
}

func (s *scripted) Name() string { return "scripted" }

func (s *scripted) Sample(t int64) ([]wire.Body, error) {
	call := len(s.at)
	s.at = append(s.at, t)
	if call < len(s.takes) {
		s.clk.ns += int64(s.takes[call])
	}
	if call < len(s.fails) && s.fails[call] != nil {
		return nil, s.fails[call]
	}
	return []wire.Body{&wire.Interface{Name: "x"}}, nil
}

// runFor runs a sampler on a hand clock, whose sleeps end late by oversleep.
func runFor(t *testing.T, clk *handClock, source *scripted, beats int, oversleep time.Duration) (*Sampler,
	[]wire.Body) {
	t.Helper()
	var bodies []wire.Body
	s := NewSampler(clk, 100*time.Millisecond, []Source{source}, func(_ int64, b wire.Body) error {
		bodies = append(bodies, b)
		return nil
	})
	s.sleep = func(ctx context.Context, d time.Duration) error {
		if len(source.at) >= beats {
			return context.Canceled
		}
		clk.ns += int64(d + oversleep)
		return nil
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, bodies
}

func TestBeatsAreAbsoluteAndLatenessDoesNotAddUp(t *testing.T) {
	clk := &handClock{ns: 5e9}
	source := &scripted{clk: clk}
	s, _ := runFor(t, clk, source, 50, 3*time.Millisecond)
	for i, at := range source.at {
		late := int64(3e6)
		if i == 0 {
			late = 0
		}
		if want := 5e9 + int64(i)*100e6 + late; at != want {
			t.Fatalf("beat %d at %d, want %d", i, at, want)
		}
	}
	got := s.Lateness(5e9+1, 5e9+4e9)
	if got.Events != 39 || got.MeanUs != 3000 || got.WorstUs != 3000 || got.P99Us != 3000 || got.Source != "sampler" ||
		got.WindowS < 3.99 {
		t.Errorf("lateness %+v", got)
	}
	if d := got.SumS - 39*0.003; d > 1e-9 || d < -1e-9 {
		t.Errorf("behind for %v s", got.SumS)
	}
}

func TestASlowBeatSkipsThoseThatItCovers(t *testing.T) {
	clk := &handClock{}
	source := &scripted{clk: clk, takes: []time.Duration{0, 350 * time.Millisecond}}
	s, _ := runFor(t, clk, source, 4, 0)
	// Beat 1 at 100 ms ends at 450 ms: beat 2 comes at 450, 3 is covered by it, 4 is due at once.
	want := []int64{0, 100e6, 450e6, 450e6}
	for i := range want {
		if source.at[i] != want[i] {
			t.Fatalf("beats at %v, want %v", source.at, want)
		}
	}
	got := s.Lateness(0, 450e6)
	if got.Events != 5 || got.WorstUs != 250e3 || got.MeanUs != (250e3+150e3+50e3)/5. {
		t.Errorf("lateness %+v", got)
	}
	if got.SumS != 0.3 {
		t.Errorf("behind for %v s, want 0.25 + 0.05 (the skipped beat lies within the first)", got.SumS)
	}
	if empty := s.Lateness(1e12, 2e12); empty.Events != 0 || empty.WorstUs != 0 {
		t.Errorf("lateness of a window without beats: %+v", empty)
	}
}

// For what a sampler without sources was late, its process did not run: within the
// span, whether it began or ended there or not.
func TestAStandstillIsTold(t *testing.T) {
	s := NewSampler(&handClock{}, 50*time.Millisecond, nil, nil)
	second := int64(1e9)
	// Stopped from 4.01 s to 8 s, of which the machine slept 2 s; and from 9.95 s on.
	for due := int64(0); due <= 10*second; due += 50e6 {
		k := tick{dueNs: due, lateNs: 1e6}
		if due > 4*second {
			k.asleepNs = 2 * second
		}
		if due > 4*second && due < 8*second {
			k.lateNs, k.skipped = 8*second-due, due > 4*second+50e6
		}
		if due >= 9950e6 {
			k.lateNs = 3 * second
		}
		s.note(k)
	}
	for _, c := range []struct {
		from, to         int64
		worstMs, sleptMs float64
	}{
		{0, 10 * second, 3950, 2000}, {0, 4 * second, 1, 0}, {6 * second, 10 * second, 2000, 0},
		{0, 5 * second, 950, 2000},
		{9 * second, 10 * second, 50, 0},
	} {
		got := s.Standstill(c.from, c.to)
		if got.Source != "agent" || got.WorstUs != c.worstMs*1e3 || got.SuspendedMs == nil ||
			*got.SuspendedMs != c.sleptMs {
			t.Errorf("from %d to %d: %+v, want %g ms, asleep for %g", c.from, c.to, got, c.worstMs, c.sleptMs)
		}
	}
	if got := s.Standstill(20*second, 30*second); got.Events != 0 || got.SuspendedMs != nil {
		t.Errorf("nothing is known of a span without beats: %+v", got)
	}
}

// A machine that is suspended between two beats of a window was asleep for so long,
// though the time asleep is read after late beats only.
func TestASuspendedMachineIsTold(t *testing.T) {
	clk, asleepNs, beats := &handClock{}, int64(40e6), 0
	s := NewSampler(clk, 50*time.Millisecond, nil, nil)
	s.asleepNs = func() int64 { return asleepNs }
	s.sleep = func(_ context.Context, d time.Duration) error {
		if beats++; beats > 100 {
			return context.Canceled
		}
		clk.ns += int64(d) + 200e3
		if beats == 30 { // at 1.5 s
			clk.ns, asleepNs = clk.ns+700e6, asleepNs+700e6
		}
		return nil
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ fromNs, toNs, wantMs float64 }{{0, 4e9, 700}, {0, 1.4e9, 0}, {2.4e9, 4e9, 0}} {
		got := s.Standstill(int64(c.fromNs), int64(c.toNs))
		if got.SuspendedMs == nil || *got.SuspendedMs != c.wantMs {
			t.Errorf("from %g to %g ns: %+v, want %g ms asleep", c.fromNs, c.toNs, got, c.wantMs)
		}
	}
}

// A clock that is slewed is told by how far it went within the span; beats at which it
// could not be read tell nothing.
func TestASlewedClockIsTold(t *testing.T) {
	clk, beats := &handClock{}, 0
	s := NewSampler(clk, 50*time.Millisecond, nil, nil)
	s.sleep = func(_ context.Context, d time.Duration) error {
		if beats++; beats > 100 {
			return context.Canceled
		}
		clk.ns += int64(d)
		return nil
	}
	s.slewedNs = func() (int64, bool) { // slow from 2 s on
		return 7e9 - max(clk.ns-2e9, 0)/10, beats%10 != 5
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ fromNs, toNs, wantMs float64 }{{0, 2e9, 0}, {0, 4.02e9, 200}, {3e9, 4.02e9, 100}} {
		got := s.Standstill(int64(c.fromNs), int64(c.toNs))
		if got.SlewedMs == nil || *got.SlewedMs != c.wantMs {
			t.Errorf("from %g to %g ns: %+v, want %g ms", c.fromNs, c.toNs, got, c.wantMs)
		}
	}
	s.slewedNs = func() (int64, bool) { return 0, false }
	s.ticks, beats = nil, 0
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Standstill(0, clk.ns); got.SlewedMs != nil {
		t.Errorf("a clock that could not be read was slewed by %g ms", *got.SlewedMs)
	}
}

// While a sampler rests it asks its first source at each beat and the others seldom,
// and from the end of the rest all of them; whoever is woken before asks them at once.
func TestARestingSamplerAsksSeldom(t *testing.T) {
	const began, end = 5e9, 9e9
	for name, c := range map[string]struct {
		busy    int
		untilNs int64
		wokenNs int64 // 0: never
		first   int   // how often the first source is asked up to the end
		second  []int64
	}{
		"one goes on": {busy: 1, untilNs: began + 2.25e9, first: 41,
			second: []int64{0, 1000, 2000, 2250, 2350, 2450, 2550, 2650, 2750, 2850, 2950, 3050, 3150, 3250, 3350, 3450,
				3550, 3650, 3750, 3850, 3950}},
		"none goes on": {untilNs: began + 2.25e9, first: 21,
			second: []int64{0, 1000, 2000, 2250, 2350, 2450, 2550, 2650, 2750, 2850, 2950, 3050, 3150, 3250, 3350, 3450,
				3550, 3650, 3750, 3850, 3950}},
		"woken": {busy: 1, untilNs: began + 1e12, wokenNs: began + 3.7e9, first: 41,
			second: []int64{0, 1000, 2000, 3000, 3700, 3800, 3900}},
	} {
		clk := &handClock{ns: began}
		first, second := &scripted{clk: clk}, &scripted{clk: clk}
		s := NewSampler(clk, 100*time.Millisecond, []Source{first, second},
			func(int64, wire.Body) error { return nil })
		s.Rest(c.untilNs, time.Second, c.busy)
		s.sleep = func(ctx context.Context, d time.Duration) error {
			if clk.ns += int64(d); clk.ns >= end {
				return context.Canceled
			}
			if c.wokenNs > 0 && clk.ns >= c.wokenNs {
				s.Wake()
				<-ctx.Done()
				c.wokenNs = 0
				return ctx.Err()
			}
			return nil
		}
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ms []int64
		for _, at := range second.at {
			ms = append(ms, (at-began)/1e6)
		}
		if len(first.at) < c.first-1 || len(first.at) > c.first+1 || !slices.Equal(ms, c.second) {
			t.Errorf("%s: the first was asked %d times, want %d; the second after %v ms, want %v", name, len(first.at),
				c.first, ms, c.second)
		}
	}
}

// A source that is paced is told both beats.
func TestARestingSamplerTellsItsPace(t *testing.T) {
	clk := &handClock{}
	source := &paced{scripted: scripted{clk: clk}}
	s := NewSampler(clk, 100*time.Millisecond, []Source{source},
		func(int64, wire.Body) error { return nil })
	s.Rest(3e9, time.Second, 0)
	s.sleep = func(_ context.Context, d time.Duration) error {
		if clk.ns += int64(d); clk.ns > 4e9 {
			return context.Canceled
		}
		return nil
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{time.Second, 100 * time.Millisecond, 0}; !slices.Equal(source.told, want) {
		t.Errorf("it was told %v, want %v", source.told, want)
	}
}

func TestATroubledSourceIsToldOfOnce(t *testing.T) {
	clk := &handClock{}
	gone := errors.New("no such device")
	source := &scripted{clk: clk, fails: []error{nil, gone, gone, errors.New("other"), nil}}
	_, bodies := runFor(t, clk, source, 6, 0)
	var events []string
	for _, b := range bodies {
		if e, ok := b.(*wire.Event); ok {
			events = append(events, e.Level+" "+e.Text)
		}
	}
	want := "warning source scripted: no such device|warning source scripted: other|info source scripted gives " +
		"samples again"
	if strings.Join(events, "|") != want {
		t.Errorf("events %q", events)
	}
	if len(bodies)-len(events) != 3 {
		t.Errorf("%d samples, want 3", len(bodies)-len(events))
	}
}

func TestLoopEndsWithItsContextOrAFailedEmit(t *testing.T) {
	clk := &handClock{}
	full := errors.New("spool is full")
	err := Loop(t.Context(), clk, time.Second, []Source{&scripted{clk: clk}}, func(int64, wire.Body) error {
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("failed emit: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var last wire.Body
	err = Loop(ctx, clk, time.Second, []Source{&scripted{clk: clk}}, func(_ int64, b wire.Body) error {
		last = b
		cancel()
		return nil
	})
	if l, ok := last.(*wire.Lateness); err != nil || !ok || l.Source != "sampler" {
		t.Errorf("ended context: %v, last record %#v", err, last)
	}
	if Loop(t.Context(), clk, 0, nil, nil) == nil {
		t.Error("an interval of 0 was taken")
	}
}

// A log that goes on for longer than beats are kept tells its lateness in parts, which together hold every beat: also
// one of the first hour, and one before which the machine slept for longer than beats are kept.
func TestALongLogTellsAllOfItsLateness(t *testing.T) {
	const kept = 3900
	for name, c := range map[string]struct {
		stood  time.Duration // after half an hour
		worstS float64
		beats  int // in all records, and seconds of their windows
		told   int // records
	}{
		"two hours and a half":     {0, 0, 9000, 3},
		"20 s late in the first":   {20 * time.Second, 20, 9020, 3},
		"three hours late at once": {3 * time.Hour, 3 * 3600, 9000 + kept, 5},
	} {
		clk := &handClock{ns: 7e9}
		source := &scripted{clk: clk, takes: slices.Repeat([]time.Duration{time.Second}, 9000)} // it never waits
		source.takes[1800] += c.stood
		ctx, cancel := context.WithCancel(t.Context())
		var worst, windows float64
		beats, told := 0, 0
		err := Loop(ctx, clk, time.Second, []Source{source}, func(_ int64, b wire.Body) error {
			if len(source.at) == len(source.takes) {
				cancel()
			}
			if l, is := b.(*wire.Lateness); is {
				worst, windows = max(worst, l.WorstUs/1e6), windows+l.WindowS
				beats, told = beats+int(l.Events), told+1
			}
			return nil
		})
		cancel()
		if err != nil || worst != c.worstS || math.Abs(windows-float64(c.beats)) > 1.5 || beats < c.beats-1 ||
			beats > c.beats || told != c.told {
			t.Errorf("%s: %v; %d records of %g s and %d beats, worst %g s; want %d of %d s, %g s", name, err, told,
				windows, beats, worst, c.told, c.beats, c.worstS)
		}
	}
}

// paced is a source that is told how often it will be asked.
type paced struct {
	scripted
	told []time.Duration
}

func (p *paced) Pace(interval time.Duration) { p.told = append(p.told, interval) }

func TestASourceIsToldHowOftenItWillBeAsked(t *testing.T) {
	clk := &handClock{}
	source := &paced{scripted: scripted{clk: clk}}
	s := NewSampler(clk, time.Second, []Source{&scripted{clk: clk}, source}, func(int64, wire.Body) error {
		return nil
	})
	s.sleep = func(context.Context, time.Duration) error {
		if want := []time.Duration{time.Second}; !slices.Equal(source.told, want) {
			t.Errorf("while it is asked it was told %v, want %v", source.told, want)
		}
		return context.Canceled
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{time.Second, 0}; !slices.Equal(source.told, want) {
		t.Errorf("it was told %v, want %v", source.told, want)
	}
}

func TestTheAccountIsOfTheLongestWindow(t *testing.T) {
	s := NewSampler(&handClock{}, time.Second, nil, nil)
	const kept = 3600 + 300
	for i := range 2*kept + 7 {
		s.note(tick{dueNs: int64(i), lateNs: 1})
	}
	if got := s.Lateness(0, 1<<62); got.Events != kept || len(s.ticks) != kept {
		t.Errorf("%d ticks are kept", got.Events)
	}
	if got := s.Lateness(2*kept, 1<<62); got.Events != 7 {
		t.Errorf("%d of the newest 7 are there", got.Events)
	}
}
