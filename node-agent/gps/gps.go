// Package gps reads positions from gpsd over its JSON protocol (gpsd_json(5)).
// It neither talks to a receiver itself nor judges whether a fix is good
// enough for a trial; it does see to it that no old fix looks new.
package gps

import (
	"context"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Client follows one gpsd. Its methods may be called from any goroutine.
type Client struct {
	addr   string
	clk    clock.Clock
	pushed bool // no gpsd feeds it: see Push

	mu        sync.Mutex
	connected bool
	followed  newest // of the receiver that is followed
	left      newest // of the one that was followed before
	newestNs  int64  // boot time at which the followed one's came
	mode      int
	fix       *wire.GPS // the newest fix: only fix fields, FixBootNs and TimeUTC are set
	told      bool      // a tick has shown it
	sky       sky
	lag       lag
	epochs    epochs
	derived   derived
	arrivals  []int64  // boot times of the newest fixes, oldest first
	pushedNs  int64    // boot time of the newest push of the sender that is followed; 0: none
	sender    string   // that is followed; empty: none has had a fix
	fixFrom   string   // whose push the newest fix was; empty: nobody's
	ways      quickest // of pushes
}

// newest is the receiver's time of its newest fix; it is empty where gpsd does not know it.
type newest struct{ device, utc string }

// receiverGone is for how long the receiver that is followed tells no new fix until another
// one of the same gpsd is followed: two tell two places, and one that is held up hides
// behind the other. So it is with who pushes fixes and is silent.
const receiverGone = 5 * time.Second

// keptArrivals is how many fixes RateHz looks back over: 2 s at 10 Hz.
const keptArrivals = 20

// New makes a client of the gpsd at addr, "host:port"; Run starts it.
func New(addr string, clk clock.Clock) *Client { return &Client{addr: addr, clk: clk} }

// Run follows gpsd until ctx ends, whose error it returns; it reconnects for ever.
func (c *Client) Run(ctx context.Context) error {
	if c.pushed {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.follow(ctx)
}

// Tick is the receiver's state now. A fix, with the satellites and HDOP of its
// time, is in one tick and in no other: the first after gpsd has told all of
// it, which is up to 150 ms after FixBootNs, the arrival of its begin. Mode is the newest
// that gpsd told, 0 when it does not answer.
func (c *Client) Tick() wire.GPS {
	now := c.clk.BootNs()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(now, false)
	out := wire.GPS{}
	if c.fix != nil && !c.told {
		out = *c.fix
		c.told = true
	}
	c.present(&out, now)
	return out
}

// Last is the newest fix with its age now, however often it was shown; false
// before the first. Mode and Connected are those of now, so a fix that was
// since lost has a mode below 2.
func (c *Client) Last() (wire.GPS, bool) {
	now := c.clk.BootNs()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(now, false)
	out := wire.GPS{}
	if c.fix != nil {
		out = *c.fix
	}
	c.present(&out, now)
	return out, c.fix != nil
}

// present fills what every tick says. mu is held.
func (c *Client) present(out *wire.GPS, now int64) {
	c.lapse(now)
	out.Mode, out.Connected = c.mode, c.connected
	out.RateHz = c.rate(now)
	if c.fix != nil {
		// A line may come in between the reading of the clock and the lock.
		out.FixAgeMs = new(float64(max(now-*c.fix.FixBootNs, 0)) / 1e6)
	}
}

// RateHz is how many fixes a second arrive; absent until five have come, and
// when the newest is older than four of their intervals plus a second.
func (c *Client) RateHz() *float64 {
	now := c.clk.BootNs()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(now, false)
	return c.rate(now)
}

// rate is RateHz with mu held.
func (c *Client) rate(now int64) *float64 {
	n := len(c.arrivals)
	if n < 5 {
		return nil
	}
	span := c.arrivals[n-1] - c.arrivals[0]
	if span <= 0 || now-c.arrivals[n-1] > 4*span/int64(n-1)+1e9 {
		return nil
	}
	return new(float64(n-1) / (float64(span) / 1e9))
}

// BehindBoot is the boot clock minus the receiver's UTC, by the fix that took
// the shortest way here; false before the first that had a time. What even
// that one took is in it: see wire.NMEATimeUncertaintyNs.
func (c *Client) BehindBoot() (ns int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lag.leastNs, c.lag.known
}

// Name names the client as a source of samples.
func (c *Client) Name() string { return "gps" }

// Sample is Tick as a source of samples: one *wire.GPS.
func (c *Client) Sample(int64) ([]wire.Body, error) {
	tick := c.Tick()
	return []wire.Body{&tick}, nil
}

// take works on one line of gpsd that arrived at a boot time. A line that is
// of no known kind, or damaged, changes nothing.
func (c *Client) take(line []byte, arrivedNs int64) {
	r, ok := parse(line)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = true
	switch {
	case r.sky != nil && (c.followed.device == "" || r.sky.device == "" || r.sky.device == c.followed.device):
		c.sky = c.sky.with(*r.sky)
	case r.tpv != nil && c.follows(r.tpv, arrivedNs):
		c.takeTPV(r.tpv, arrivedNs)
	}
}

// follows reports whether a report is of the receiver that is followed, or of one that it
// does not name. A time that was told before is no sign of life. mu is held.
func (c *Client) follows(t *tpv, arrivedNs int64) bool {
	is := newest{t.device, t.fix.TimeUTC}
	another, again := t.device != c.followed.device, is.utc != "" && (is == c.followed || is == c.left)
	switch {
	case t.device == "":
		return true
	case another && c.followed.device != "" && (again || arrivedNs-c.newestNs <= receiverGone.Nanoseconds()):
		return false
	case !t.hasFix() || again:
		return true
	case another && c.followed.device != "": // what was told before is the other's
		c.left, c.sky, c.derived, c.epochs, c.arrivals = c.followed, sky{}, derived{}, epochs{}, nil
	case c.sky.device != "" && c.sky.device != t.device:
		c.sky = sky{}
	}
	c.followed, c.newestNs = is, arrivedNs
	return true
}

// takeTPV keeps a fix, to be shown once gpsd has told all of it. mu is held.
func (c *Client) takeTPV(t *tpv, arrivedNs int64) {
	c.mode = t.mode
	if c.derived.speed(t) {
		t.fix.SpeedMps, t.fix.SpeedErrMps = nil, nil
	}
	if t.mode < 2 || !t.hasFix() {
		return
	}
	fix := t.fix
	if t.utc.IsZero() { // it cannot be placed in an epoch, so it is taken as it is
		fix.FixBootNs = &arrivedNs
		c.show(c.withSky(fix))
		return
	}
	e := &c.epochs
	if fix.TimeUTC != e.utc {
		c.settle(arrivedNs, true)
		e.begin(fix.TimeUTC, arrivedNs, c.lag.late(t, arrivedNs))
	} else if e.reports < maxReports {
		e.reports++
	}
	fix.FixBootNs = new(e.firstNs)
	e.fix, e.newestNs = c.withSky(fix), arrivedNs
	if e.shown {
		c.fix = e.fix // more of the same fix, which does not become new by it
	}
}

// settle shows the fix of the present epoch if it is told whole. mu is held.
func (c *Client) settle(nowNs int64, ended bool) {
	if e := &c.epochs; e.told(nowNs, ended) {
		e.shown = true
		c.show(e.fix)
	}
}

// show makes a fix the newest. mu is held.
func (c *Client) show(fix *wire.GPS) {
	c.fix, c.told = fix, false
	if len(c.arrivals) >= keptArrivals {
		c.arrivals = append(c.arrivals[:0], c.arrivals[1:]...)
	}
	c.arrivals = append(c.arrivals, *fix.FixBootNs)
}

func (c *Client) withSky(fix wire.GPS) *wire.GPS {
	fix.SatellitesUsed, fix.HDOP = c.sky.used, c.sky.hdop
	return &fix
}

// disconnect forgets what holds only while gpsd answers. The fix stays, and ages.
func (c *Client) disconnect() {
	now := c.clk.BootNs()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(now, false)
	c.connected, c.mode, c.sky, c.arrivals, c.derived = false, 0, sky{}, nil, derived{}
	c.newestNs = -receiverGone.Nanoseconds() // whichever has a fix first is followed
	c.epochs.cut()
}
