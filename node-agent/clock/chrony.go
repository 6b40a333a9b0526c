package clock

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Tracking is what chrony says of the machine's clock (chronyc(1), tracking).
type Tracking struct {
	Source       string        // what it follows; empty when it follows nothing
	Synchronised bool          //
	Offset       time.Duration // true time − wall clock
	Uncertainty  time.Duration // half the root delay and all of the root dispersion
	DriftPpm     float64       // by which the clock would gain, were it left alone
}

func (t Tracking) fill(out *wire.WallClock) {
	out.Sync = "unsynchronised"
	if !t.Synchronised {
		return
	}
	out.Sync, out.SyncSource = "synchronised", t.Source
	out.SyncOffsetNs, out.SyncUncertaintyNs, out.SyncDriftPpm = new(t.Offset.Nanoseconds()),
		new(t.Uncertainty.Nanoseconds()), new(t.DriftPpm)
}

const (
	askEvery  = time.Minute // it costs a process each time, and chrony itself asks no more often
	askWithin = 3 * time.Second
)

// Chrony follows what the machine's chronyd says, where one runs.
type Chrony struct {
	path string // chronyc's, absolute

	mu     sync.Mutex
	newest Tracking
	known  bool
}

// NewChrony makes a follower; Run starts it.
func NewChrony(path string) *Chrony { return &Chrony{path: path} }

// Run asks chronyd again and again until ctx ends.
func (c *Chrony) Run(ctx context.Context) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		t, err := c.ask(ctx) // none runs, or none in this namespace: nothing is known
		c.mu.Lock()
		c.newest, c.known = t, err == nil
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Tracking is the newest that chronyd said; false when none answers.
func (c *Chrony) Tracking() (Tracking, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest, c.known
}

func (c *Chrony) ask(ctx context.Context) (Tracking, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, c.path, "-n", "-c", "tracking").Output()
	if err != nil {
		return Tracking{}, fmt.Errorf("ask chronyd: %w", err)
	}
	return parseTracking(string(out))
}

// The columns of `chronyc -c tracking`, in the order of its report.
const (
	trackingReference  = 0 // in hexadecimal
	trackingAddress    = 1 // empty where the reference is not a server
	trackingStratum    = 2
	trackingOffset     = 4 // s by which the wall clock is behind true time
	trackingFrequency  = 7 // ppm by which the clock would gain
	trackingDelay      = 10
	trackingDispersion = 11
	trackingLeap       = 13
	trackingColumns    = 14
)

// parseTracking reads a line of `chronyc -c tracking`.
func parseTracking(text string) (Tracking, error) {
	row, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return Tracking{}, fmt.Errorf("read chrony's tracking: %w", err)
	}
	if len(row) < trackingColumns {
		return Tracking{}, fmt.Errorf("read chrony's tracking: %d columns, want %d", len(row), trackingColumns)
	}
	numbers := map[int]float64{}
	for _, i := range []int{trackingStratum, trackingOffset, trackingFrequency, trackingDelay, trackingDispersion} {
		v, err := strconv.ParseFloat(row[i], 64)
		if err != nil || math.IsNaN(v) || math.Abs(v) > 1e9 {
			return Tracking{}, fmt.Errorf("read chrony's tracking: column %d is %q", i+1, row[i])
		}
		numbers[i] = v
	}
	seconds := func(i int) time.Duration { return time.Duration(numbers[i] * float64(time.Second)) }
	t := Tracking{Source: cmp.Or(row[trackingAddress], row[trackingReference]), Offset: seconds(trackingOffset),
		DriftPpm:    numbers[trackingFrequency],
		Uncertainty: seconds(trackingDelay)/2 + seconds(trackingDispersion)}
	t.Synchronised = row[trackingLeap] != "Not synchronised" && numbers[trackingStratum] > 0
	return t, nil
}
