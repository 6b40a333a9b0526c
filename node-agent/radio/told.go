package radio

import (
	"sync"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Told is what an app says about its phone's Wi-Fi, where the kernel tells an app's child
// nothing about a radio. Each reading is in one sample, with the moment at which the app found
// it. Its methods may be called from any goroutine.
type Told struct {
	clk clock.Clock

	mu      sync.Mutex
	fromNs  int64 // of the trial that is sampled
	atNs    int64 // of the newest reading
	reading *wire.WiFi
}

// sameReadingNs is the difference of two readings' times below which they are one: the app
// looks every 500 ms, and a repeated call's age is off by what its way took.
const sameReadingNs = 20e6

// NewTold makes one to which nothing was told.
func NewTold(clk clock.Clock) *Told { return &Told{clk: clk} }

// Push takes a reading. The same again, or one that is older than the newest, changes nothing.
func (t *Told) Push(w wire.WiFiReading) {
	at := t.clk.BootNs() - int64(w.AgeMs*1e6)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.atNs != 0 && at-t.atNs < sameReadingNs {
		return
	}
	t.atNs, t.reading = at, w.Record()
}

// Begin has what was told before a trial recorded in none.
func (t *Told) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fromNs = t.clk.BootNs()
}

// Name names it as a source of samples.
func (t *Told) Name() string { return "wifi" }

// Sample gives the newest reading, once, at its own time.
func (t *Told) Sample(int64) ([]wire.Body, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.reading
	t.reading = nil
	if w == nil || t.atNs < t.fromNs {
		return nil, nil
	}
	return []wire.Body{measure.At{Body: w, BootNs: t.atNs}}, nil
}
