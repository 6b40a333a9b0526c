package gps

import "time"

// lag finds fixes that were held up on their way. When gpsd or a serial line
// stalls and goes on, the fixes of the meantime arrive in a burst: each is
// new, and old. The receiver's own clock tells: its time against the boot
// clock is constant but for the way's delay, so a fix whose difference is
// well above the least seen was held up.
type lag struct {
	device    string
	known     bool
	leastNs   int64 // least arrival minus receiver's time
	newestNs  int64 // arrival of the newest fix
	lateSince int64 // boot time of the first of the late fixes in a row; 0: none
}

const (
	// maxHeldUp is above what a receiver's own output varies by: a 4800-baud
	// line (NMEA 0183) carries a full set of sentences in under half a second.
	maxHeldUp = 500 * time.Millisecond
	// maxStall is the longest stall that buffers on the way can bridge; a
	// greater difference is a step of the receiver's clock.
	maxStall = time.Minute
	// driftDivisor lets the least difference rise by 200 ppm, more than a
	// crystal's error, or the two clocks' drift would pass for a delay.
	driftDivisor = 5000
	// maxCatchUp is how long a burst can go on; after that the receiver's
	// clock has stepped or runs slow, and its time is taken as it is.
	maxCatchUp = 5 * time.Second
)

// late reports whether a fix that arrived at a boot time was held up. Fixes
// without a time cannot be told, and are not.
func (l *lag) late(t *tpv, arrivedNs int64) bool {
	if t.utc.IsZero() {
		return false
	}
	difference := arrivedNs - t.utc.UnixNano()
	if !l.known || t.device != l.device {
		*l = lag{device: t.device, known: true, leastNs: difference, newestNs: arrivedNs}
		return false
	}
	l.leastNs += (arrivedNs - l.newestNs) / driftDivisor
	l.newestNs = arrivedNs
	excess := difference - l.leastNs
	switch {
	case excess < 0 || excess > maxStall.Nanoseconds():
		l.leastNs = difference
	case excess <= maxHeldUp.Nanoseconds():
	case l.lateSince == 0:
		l.lateSince = arrivedNs
		return true
	case arrivedNs-l.lateSince < maxCatchUp.Nanoseconds():
		return true
	default:
		l.leastNs = difference
	}
	l.lateSince = 0
	return false
}
