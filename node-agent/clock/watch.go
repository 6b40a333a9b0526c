package clock

import (
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// tellEvery is how often the wall clock's standing is recorded.
	tellEvery = 10 * time.Second
	// stepLeast is what counts as a step: ntpd steps above 128 ms, and less is
	// within what two readings on a busy machine may lie apart.
	// A slew is none, however fast: it moves the boot clock as well.
	stepLeast = 100 * time.Millisecond
)

// Watch is a source of samples of the wall clock: where it stands when a trial
// begins, every ten seconds, and at once when it was stepped.
type Watch struct {
	clk   Clock
	built time.Time
	gps   func() (bootMinusUTCNs int64, ok bool)
	sync  func() (Tracking, bool)

	mu       sync.Mutex
	offsetNs int64 // at the sample before
	seenNs   int64
	toldNs   int64
}

// NewWatch makes a watch. gps tells where GPS time stands against the boot
// clock, tracking what keeps the wall clock; either may be nil.
func NewWatch(clk Clock, built time.Time, gps func() (int64, bool), tracking func() (Tracking, bool)) *Watch {
	return &Watch{clk: clk, built: built, gps: gps, sync: tracking}
}

// Name names the source.
func (w *Watch) Name() string { return "wall clock" }

// Now is where the wall clock stands.
func (w *Watch) Now() wire.WallClock {
	offset, wall := w.read()
	out := wire.WallClock{OwnWallOffsetNs: offset, Unset: IsUnset(wall, w.built)}
	if w.gps != nil {
		if least, ok := w.gps(); ok {
			out.GPSOffsetNs, out.GPSUncertaintyNs = new(-least-offset), new(int64(wire.NMEATimeUncertaintyNs))
		}
	}
	if w.sync != nil {
		if t, ok := w.sync(); ok {
			t.fill(&out)
		}
	}
	return out
}

// read is the wall clock minus the boot clock: of a few readings the one that
// was interrupted least.
func (w *Watch) read() (offsetNs int64, wall time.Time) {
	width := int64(-1)
	for range 3 {
		before := w.clk.BootNs()
		now := w.clk.Wall()
		after := w.clk.BootNs()
		if d := after - before; width < 0 || d < width {
			width, offsetNs, wall = d, now.UnixNano()-(before+after)/2, now
		}
	}
	return offsetNs, wall
}

// Begin starts again: what was before is another trial's.
func (w *Watch) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seenNs = 0
}

// Sample looks for a step, and reports the clock when it is time to.
func (w *Watch) Sample(tBootNs int64) ([]wire.Body, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	offset, _ := w.read()
	step := offset - w.offsetNs
	first := w.seenNs == 0
	w.seenNs, w.offsetNs = tBootNs, offset
	stepped := !first && max(step, -step) > stepLeast.Nanoseconds()
	if !first && !stepped && tBootNs-w.toldNs < tellEvery.Nanoseconds() {
		return nil, nil
	}
	w.toldNs = tBootNs
	told := w.Now()
	if stepped {
		told.SteppedNs = &step
	}
	return []wire.Body{&told}, nil
}
