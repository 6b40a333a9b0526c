package gps

import (
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// pushedFresh is how long after a push its sender counts as connected: two
// fixes of a receiver of 1 Hz, and the network's way.
const pushedFresh = 3 * time.Second

// NewPushed makes a client that no gpsd feeds: Push does.
func NewPushed(clk clock.Clock) *Client { return &Client{clk: clk, pushed: true} }

// senderLost is for how long the sender that is followed may push without a fix until
// another that has one is followed: a tunnel is shorter, and a phone in a building is not.
const senderLost = 30 * time.Second

// Push takes a fix from a sender, and tells whose fixes are followed, and who was followed
// before: another only with the fix that changes it. The first that had a fix is followed,
// until it has sent nothing for receiverGone or, while nothing is measured, no fix for
// senderLost: the rules judge a window's gap, and not a wrong track. Two senders are in two
// places, so another's fix changes nothing. The same fix again, or one that is older than the
// newest, changes nothing but shows that its sender is there. One that the network held up, whose
// age its sender told before it went, is older by what the network took longer than it can.
func (c *Client) Push(sender string, f wire.Fix, measuring bool) (followed, before string) {
	now := c.clk.BootNs()
	atNs := now - int64(f.AgeMs*1e6)
	isFix := f.Mode >= 2 && (f.SpeedMps != nil || f.LatDeg != nil && f.LonDeg != nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sender != "" && c.sender != sender {
		isLost := isFix && !measuring && now-*c.fix.FixBootNs > senderLost.Nanoseconds()
		if !isLost && now-c.pushedNs <= receiverGone.Nanoseconds() {
			return c.sender, c.sender
		}
		c.sender, c.arrivals = "", nil
	}
	c.pushedNs = now
	if taken, err := time.Parse(time.RFC3339Nano, f.TimeUTC); isFix && err == nil {
		atNs -= c.ways.excess(sender, taken, atNs, measuring)
	}
	if len(c.arrivals) > 0 && atNs-c.arrivals[len(c.arrivals)-1] < sameFix.Nanoseconds() {
		return sender, sender
	}
	c.mode = f.Mode
	if !isFix {
		return sender, sender
	}
	before = c.fixFrom
	c.sender, c.fixFrom = sender, sender
	fix := wire.GPS{FixBootNs: &atNs, TimeUTC: f.TimeUTC, AltM: f.AltM, SpeedMps: f.SpeedMps, TrackDeg: f.TrackDeg,
		SpeedErrMps: f.SpeedErrMps, HorizErrM: f.HorizErrM, SatellitesUsed: f.SatellitesUsed}
	if f.LatDeg != nil && f.LonDeg != nil {
		fix.LatDeg, fix.LonDeg = f.LatDeg, f.LonDeg
	}
	c.show(&fix)
	return sender, before
}

// sameFix is the difference of two arrivals below which they are of one fix:
// receivers tell at most 20 in a second, and a repeated call's age is off by
// what its way took.
const sameFix = 20 * time.Millisecond

// lapse forgets a sender that has been silent. mu is held.
func (c *Client) lapse(nowNs int64) {
	if !c.pushed {
		return
	}
	c.connected = c.pushedNs != 0 && nowNs-c.pushedNs <= pushedFresh.Nanoseconds()
	if !c.connected {
		c.mode = 0
	}
}

// quickest is the least difference of the boot clock and a sender's fixes of late. It is not the least ever: a sender's
// clock may step, one age that it told may be wrong, and a slew of this machine's clock has its boot clock gain on UTC.
type quickest struct {
	sender            string
	sinceNs           int64 // boot time at which the present span began
	beforeNs, leastNs int64 // of the span before, and of this one
}

// The least is that of one to two spans. In a window the span is far longer than traffic holds every fix up alike; else
// nothing does, and it is the ten fixes of a receiver of 1 Hz.
const (
	spanMeasuring = 10 * time.Minute
	spanElse      = 10 * time.Second
)

// excess is by how much longer than the quickest a fix took that its sender had at a boot time, in ns.
func (q *quickest) excess(sender string, utc time.Time, atNs int64, measuring bool) int64 {
	difference, span := atNs-utc.UnixNano(), spanElse
	if measuring {
		span = spanMeasuring
	}
	switch {
	case sender != q.sender || difference-min(q.beforeNs, q.leastNs) > maxStall.Nanoseconds(): // its clock stepped
		*q = quickest{sender, atNs, difference, difference}
	case atNs-q.sinceNs >= span.Nanoseconds():
		q.sinceNs, q.beforeNs, q.leastNs = atNs, q.leastNs, difference
	}
	q.leastNs = min(q.leastNs, difference)
	return difference - min(q.beforeNs, q.leastNs)
}
