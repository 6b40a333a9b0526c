package medium

import (
	"math"
	"slices"
	"time"
)

// captureRatio is how much stronger than all else a frame must be to take a
// receiver over that is still in another frame's preamble: 10 dB, ns-2's
// CPThresh_. That capture happens within the preamble, and not later, is what
// Kochut et al. measured ("Sniffing out the correct physical layer capture
// model in 802.11b", ICNP 2004).
const captureRatio = 10.0

type frameKind uint8

const (
	kindData frameKind = iota
	kindAck
	kindRts
	kindCts
)

func (k frameKind) String() string { return [...]string{"data", "ack", "rts", "cts"}[k] }

// transmission is one frame on the air.
type transmission struct {
	kind       frameKind
	from, to   int // to: a station, toAll or toNobody
	frame      *frame
	mode       int
	bytes      int
	start      time.Duration
	headerEnd  time.Duration
	payloadEnd time.Duration
	end        time.Duration // signal extension included
	nav        time.Duration // model time until which bystanders must wait

	powerMw []float64 // by station
	miss    []Cause   // by station: why it does not get this frame
}

// reception is what a receiver that has locked on to a frame knows of it.
type reception struct {
	tx             *transmission // nil: not receiving
	upTo           time.Duration // accounted so far
	interferenceMw float64       // since upTo
	logOK          float64       // natural logarithm of the chance of no error up to upTo
}

func (c *Core) newTx(kind frameKind, from, to, mode, bytes int) *transmission {
	var tx *transmission
	if n := len(c.freeTx); n > 0 {
		tx = c.freeTx[n-1]
		c.freeTx = c.freeTx[:n-1]
	} else {
		tx = &transmission{powerMw: make([]float64, len(c.stations)), miss: make([]Cause, len(c.stations))}
	}
	m := c.phy.modes[mode]
	tx.kind, tx.from, tx.to, tx.mode, tx.bytes, tx.frame, tx.nav = kind, from, to, mode, bytes, nil, 0
	tx.start = c.now
	tx.headerEnd = c.now + c.phy.plcp(m)
	tx.payloadEnd = tx.headerEnd + c.phy.payloadTime(m, bytes)
	tx.end = tx.payloadEnd + c.phy.extension
	return tx
}

// startTx puts a frame on the air. A station that transmits is deaf.
func (c *Core) startTx(tx *transmission) {
	s := c.stations[tx.from]
	c.trace(Trace{At: c.now, Event: "tx", Node: tx.from, Peer: tx.to, Frame: tx.number(), Kind: tx.kind.String(), RateMbps: c.rate(tx.mode)})
	s.tx = tx
	if s.rx.tx != nil {
		s.rx.tx.miss[s.index] = Collision
		s.rx.tx = nil
	}
	for j := range c.stations {
		tx.powerMw[j], tx.miss[j] = 0, NotLost
		if j != tx.from && !c.dead {
			tx.powerMw[j] = s.txPowerMw * c.gain(tx.from, j)
		}
	}
	c.onAir = append(c.onAir, tx)
	for j, r := range c.stations {
		if j != tx.from {
			c.arrive(r, tx)
		}
		r.updateCarrier()
	}
	c.events.push(event{at: tx.end, kind: evTxEnd, tx: tx})
}

// arrive is the start of a frame at one receiver: lock on to it, or count it as
// interference.
func (c *Core) arrive(r *station, tx *transmission) {
	power := tx.powerMw[r.index]
	others := c.interference(r, tx)
	audible := power >= c.phy.lockSNR*r.noiseMw
	clear := power >= c.phy.lockSNR*(r.noiseMw+others)
	inPreamble := r.rx.tx != nil && c.now < r.rx.tx.headerEnd
	switch {
	case !audible && c.dead:
		tx.miss[r.index] = RadioDead
	case !audible:
		tx.miss[r.index] = OutOfRange
	case r.tx != nil || !clear:
		tx.miss[r.index] = Collision
	case r.rx.tx == nil:
		r.rx = reception{tx: tx, upTo: c.now, interferenceMw: others}
		return
	case inPreamble && power >= captureRatio*(r.noiseMw+others):
		r.rx.tx.miss[r.index] = Collision
		r.rx = reception{tx: tx, upTo: c.now, interferenceMw: others}
		return
	default:
		tx.miss[r.index] = Collision
	}
	c.settle(r)
}

// interference is the power at a receiver of all that is on the air but one
// transmission. It is summed anew each time, so that no rounding piles up.
func (c *Core) interference(r *station, but *transmission) float64 {
	sum := 0.0
	for _, tx := range c.onAir {
		if tx != but {
			sum += tx.powerMw[r.index]
		}
	}
	return sum
}

// settle accounts a reception up to now with the interference that it had, and
// takes note of what it has from now on.
func (c *Core) settle(r *station) {
	tx := r.rx.tx
	if tx == nil {
		return
	}
	snr := tx.powerMw[r.index] / (r.noiseMw + r.rx.interferenceMw)
	m := c.phy.modes[tx.mode]
	if share := overlap(r.rx.upTo, c.now, tx.start, tx.headerEnd); share > 0 {
		r.rx.logOK += c.phy.header.logSuccess(snr, share*c.phy.headerBits)
	}
	if share := overlap(r.rx.upTo, c.now, tx.headerEnd, tx.payloadEnd); share > 0 {
		r.rx.logOK += m.logSuccess(snr, share*payloadBits(m, tx.bytes))
	}
	r.rx.upTo = c.now
	r.rx.interferenceMw = c.interference(r, tx)
}

// overlap is the share of [from, to] that [a, b] covers.
func overlap(a, b, from, to time.Duration) float64 {
	covered := min(b, to) - max(a, from)
	if covered <= 0 {
		return 0
	}
	return float64(covered) / float64(to-from)
}

// endTx takes a frame off the air: receivers decode it, its sender goes on, and
// then everybody looks at the channel.
func (c *Core) endTx(tx *transmission) {
	i := slices.Index(c.onAir, tx)
	c.onAir = slices.Delete(c.onAir, i, i+1)
	c.stations[tx.from].tx, c.stations[tx.from].eifs = nil, false
	for _, r := range c.stations {
		if r.rx.tx == tx {
			c.decode(r, tx)
		} else {
			c.settle(r)
		}
	}
	c.stations[tx.from].sent(tx)
	for _, r := range c.stations {
		if r.awaitRx && r.rx.tx == nil {
			r.attemptFailed()
			r.scheduleAccess()
		}
		r.updateCarrier()
	}
	c.freeTx = append(c.freeTx, tx)
}

// decode draws whether a received frame is whole. One draw serves both
// questions, so that a frame which noise alone would have broken is never
// called a collision.
func (c *Core) decode(r *station, tx *transmission) {
	c.settle(r)
	logOK := r.rx.logOK
	r.rx = reception{}
	luck := math.Log(1 - c.rng.Float64())
	snr := tx.powerMw[r.index] / r.noiseMw
	m := c.phy.modes[tx.mode]
	switch {
	case c.dead:
		tx.miss[r.index] = RadioDead
	case luck < logOK:
		r.eifs = false
		r.heard(tx, snr)
		r.received(tx)
		return
	case luck < c.phy.header.logSuccess(snr, c.phy.headerBits)+m.logSuccess(snr, payloadBits(m, tx.bytes)):
		tx.miss[r.index] = Collision
	default:
		tx.miss[r.index] = ChannelError
	}
	r.eifs = true
	c.trace(Trace{At: c.now, Event: "rx_fail", Node: r.index, Peer: tx.from, Frame: tx.number(), Kind: tx.kind.String(), RateMbps: c.rate(tx.mode), Cause: tx.miss[r.index]})
}

// number is the data frame's, 0 for control frames.
func (tx *transmission) number() uint64 {
	if tx.frame == nil {
		return 0
	}
	return tx.frame.id
}
