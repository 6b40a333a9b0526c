package medium

import (
	"math"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// captureRatio is how much stronger than all else a frame must be for a
// receiver to take it among others whose preambles overlap: 10 dB, ns-2's
// CPThresh_. That capture happens within the preamble, and not later, is what
// Kochut et al. measured ("Sniffing out the correct physical layer capture
// model in 802.11b", ICNP 2004); for radios of which that is not so see radio.relocks.
const captureRatio = 10.0

type frameKind uint8

const (
	kindData frameKind = iota
	kindAck
	kindRts
	kindCts
	kindBlockAck
	kindRequest // for a block acknowledgement
)

func (k frameKind) String() string {
	return [...]string{"data", "ack", "rts", "cts", "block_ack", "block_ack_request"}[k]
}

// transmission is one frame on the air.
type transmission struct {
	kind       frameKind
	from, to   int // to: a station, toAll or toNobody
	frame      *frame
	burst      []*frame // of an A-MPDU, the first of which is frame; nil: there is none
	mode       int
	bytes      int
	start      time.Duration
	headerEnd  time.Duration
	payloadEnd time.Duration
	end        time.Duration // signal extension included
	nav        time.Duration // model time until which bystanders must wait
	class      Class         // of an RTS: of what it is sent for
	lockSNR    float64       // least SNR (ratio) at which a receiver notices it

	reach    []int32 // stations that may notice it, ascending
	miss     []Cause // by place in reach: why that station does not get it
	missElse Cause   // why no other station does
}

// arrival is a transmission at one receiver.
type arrival struct {
	tx      *transmission // nil: none
	slot    int           // of the receiver in reach
	powerMw float64
	meanMw  float64 // without fading
	deaf    bool    // the receiver sends while it is detected; kept for ns-2's
	sensed  bool    // its preamble was noticed
}

// reception is what a receiver that has locked on to a frame knows of it.
type reception struct {
	arrival
	upTo           time.Duration // accounted so far
	interferenceMw float64       // since upTo
	logOK          float64       // natural logarithm of the chance of no error up to upTo
	piece          time.Duration // for which fading stays the same; 0: for the whole frame
	burstOK        []float64     // by frame of an A-MPDU; logOK is its header's alone then
	noiseOK        []float64     // the same without interference, where there are pieces
	logNoiseOK     float64       // logOK without interference, where there are pieces
}

func (c *Core) newTx(kind frameKind, from, to, mode, bytes int) *transmission {
	var tx *transmission
	if n := len(c.freeTx); n > 0 {
		tx = c.freeTx[n-1]
		c.freeTx = c.freeTx[:n-1]
	} else {
		tx = &transmission{}
	}
	m := &c.phy.Modes[mode]
	tx.kind, tx.from, tx.to, tx.mode, tx.bytes, tx.frame, tx.burst, tx.nav = kind, from, to, mode, bytes, nil, nil, 0
	tx.start, tx.lockSNR = c.now, c.phy.LockSNROf(m)
	tx.headerEnd = c.now + c.phy.PLCP(m)
	tx.payloadEnd = tx.headerEnd + c.phy.PayloadTime(m, bytes)
	tx.end = tx.payloadEnd + c.phy.ExtensionOf(m)
	return tx
}

// startTx puts a frame on the air. A station that transmits is deaf.
func (c *Core) startTx(tx *transmission) {
	s := c.stations[tx.from]
	c.trace(Trace{At: c.now, Event: "tx", Node: tx.from, Peer: tx.to, Frame: tx.number(), Kind: tx.kind.String(),
		RateMbps: c.rate(tx.mode)})
	s.tx = tx
	c.interrupt(s)
	s.updateCarrier()
	tx.reach, tx.miss, tx.missElse = tx.reach[:0], tx.miss[:0], RadioDead
	if !c.dead {
		tx.reach, tx.missElse = append(tx.reach, c.links.hearers(tx.from)...), OutOfRange
	}
	opens := false
	for slot, j := range tx.reach {
		r := c.stations[j]
		a := arrival{tx: tx, slot: slot, meanMw: c.links.meanMw(tx.from, int(j)), deaf: r.tx != nil}
		a.powerMw = a.meanMw
		if c.fades(r, a.meanMw) {
			a.powerMw *= c.links.fadingNow(tx.from, int(j))
		}
		a.sensed = c.sensesPreamble(r, a)
		tx.miss = append(tx.miss, c.missUnlessLocked(r, a))
		r.air = append(r.air, a)
		c.settle(r)
		if r.detectAt == 0 && (r.tx == nil || c.ns2()) {
			r.detectAt, opens = c.now+c.phy.Detection, true
		}
		r.updateCarrier()
	}
	if opens {
		c.events.push(event{at: c.now + c.phy.Detection, kind: evDetect, tx: tx})
	}
	c.events.push(event{at: tx.end, kind: evTxEnd, tx: tx})
}

// sensesPreamble reports whether a receiver's carrier sense notices the start of a frame: it is
// strong enough, the receiver neither sends nor receives, and it stands out from what was on the air
// before. Frames that begin together do not hide each other.
func (c *Core) sensesPreamble(r *station, a arrival) bool {
	if a.powerMw*c.interferes < c.carrierMw {
		return false
	}
	if c.ns2() || c.links.disc != nil {
		return true
	}
	before := 0.0
	for i := range r.air {
		if r.air[i].tx.start+c.phy.Detection <= c.now {
			before += r.air[i].powerMw
		}
	}
	return r.tx == nil && r.rx.tx == nil && a.powerMw >= a.tx.lockSNR*(r.noiseMw+before)
}

// energyMw is the power of any kind at which a station must take the channel for busy. OFDM: 20 dB
// above the least sensitivity of the lowest rate, where a preamble was missed (IEEE 802.11-2020,
// 17.3.10.6). HR/DSSS: the more, the less it sends itself (16.3.8.5). ns-2's radio and the disc
// sense all that exists to them.
func (c *Core) energyMw(s *station) float64 {
	if c.ns2() || c.links.disc != nil {
		return c.carrierMw
	}
	dbm := -62.0
	if c.phy.HT != nil {
		dbm = c.phy.HT.EnergyDbm
	}
	if c.cfg.Standard == phy.Standard80211b {
		switch {
		case s.txPowerMw > 100:
			dbm = -76
		case s.txPowerMw > 50:
			dbm = -73
		default:
			dbm = -70
		}
	}
	if c.cfg.EnergyDetectDbm != nil {
		dbm = *c.cfg.EnergyDetectDbm
	}
	return max(propagation.DbToRatio(dbm), c.carrierMw)
}

// fades reports whether the fading of a transmission counts: what is too weak to be noticed or
// sensed in the best of fades adds its mean to the interference.
func (c *Core) fades(r *station, meanMw float64) bool {
	return c.cfg.Fading.Model != "" && meanMw*propagation.FadingHeadroom >= min(c.leastNoticedMw(r), c.carrierMw)
}

// interrupt ends what a station that begins to send was receiving.
func (c *Core) interrupt(s *station) {
	if c.ns2() {
		for i := range s.air {
			s.air[i].deaf = true
		}
		if s.rx.tx != nil {
			c.spoil(s)
		}
		return
	}
	for i := range s.air { // it sends as they begin, and misses their preambles
		a := &s.air[i]
		a.sensed = a.sensed && (c.links.disc != nil || a.tx.start+c.phy.Detection <= c.now)
	}
	if s.rx.tx != nil {
		s.rx.tx.miss[s.rx.slot] = Collision
		s.rx.tx = nil
	}
}

// missUnlessLocked is why a receiver does not get a frame that it does not lock
// on to.
func (c *Core) missUnlessLocked(r *station, a arrival) Cause {
	needs := c.noticesMw(r, a.tx)
	switch {
	case a.powerMw >= needs:
		return Collision
	case a.meanMw >= needs:
		return ChannelError // in a fade
	}
	return OutOfRange
}

// noticesMw is the least power at which a receiver locks on to a frame.
func (c *Core) noticesMw(r *station, tx *transmission) float64 {
	if c.ns2() {
		return c.receiveMw
	}
	return tx.lockSNR * r.noiseMw
}

// leastNoticedMw is the least power at which a receiver locks on to any frame.
func (c *Core) leastNoticedMw(r *station) float64 {
	if c.ns2() {
		return c.receiveMw
	}
	return c.phy.LeastLock * r.noiseMw
}

// detect ends the detection time of a frame at the receivers that it found with
// none under way.
func (c *Core) detect(tx *transmission) {
	for _, j := range tx.reach {
		if r := c.stations[j]; r.detectAt == c.now {
			c.resolve(r)
			r.updateCarrier()
		}
	}
}

// resolve is the end of the detection time at one receiver. The frames that
// began in it are taken together, so that nothing depends on their order: the
// receiver locks on to the strongest, if that is ahead of the sum of the others
// by the capture ratio and its header can be read over all that is on the air;
// else to none. One that is locked already lets go, within the preamble, for a
// frame that is ahead of everything by the capture ratio.
//
// One that notices frames and locks on to none has detected a preamble and got no
// valid header. That ends as an error of reception (PHY-RXEND.indication with
// FormatViolation, 16.2.6 and 17.3.12), so that EIFS follows, as after a bad FCS.
func (c *Core) resolve(r *station) {
	opened := r.detectAt - c.phy.Detection
	r.detectAt = 0
	if c.ns2() {
		c.hold(r, opened)
		return
	}
	if r.tx != nil {
		return
	}
	best := &arrival{}
	for i := range r.air {
		if a := &r.air[i]; a.tx.start >= opened && a.powerMw > best.powerMw {
			best = a
		}
	}
	rivals := 0.0
	for i := range r.air {
		if a := &r.air[i]; a.tx.start >= opened && a != best {
			rivals += a.powerMw
		}
	}
	noticed := best.tx != nil && best.powerMw >= c.noticesMw(r, best.tx)
	others := c.interference(r, best.tx)
	clear := noticed && best.powerMw >= best.tx.lockSNR*(r.noiseMw+others) &&
		best.powerMw >= captureRatio*rivals
	switch locked := r.rx.tx; {
	case locked == nil && noticed && clear:
		r.lock(*best, others)
	case locked == nil:
		// Who is within a disc's carrier sense is noticed, however weak.
		r.eifs = r.eifs || r.busy && (noticed || c.links.disc != nil)
	case clear && (c.relocks || best.tx.start < locked.headerEnd) && best.powerMw >= captureRatio*(r.noiseMw+others):
		locked.miss[r.rx.slot] = Collision
		r.lock(*best, others)
	}
}

// lock begins a reception. The part of the preamble that detection took counts
// with the interference of now.
func (s *station) lock(a arrival, interferenceMw float64) {
	a.tx.miss[a.slot] = NotLost
	s.rx = reception{arrival: a, upTo: a.tx.start, interferenceMw: interferenceMw}
	s.lockedAt = s.core.now
	if s.core.fades(s, a.meanMw) {
		s.rx.piece = s.core.links.steady(a.tx.from, s.index, a.tx.start, a.tx.end)
	}
	if n := len(a.tx.burst); n > 0 {
		s.logs = append(s.logs[:0], make([]float64, 2*n)...)
		s.rx.burstOK, s.rx.noiseOK = s.logs[:n], s.logs[n:]
	}
}

// interference is the power at a receiver of all that is on the air there but
// one transmission. It is summed again each time, so that no rounding piles up.
func (c *Core) interference(r *station, but *transmission) float64 {
	sum := 0.0
	for i := range r.air {
		if r.air[i].tx != but {
			sum += r.air[i].powerMw
		}
	}
	return sum * c.interferes
}

// negligible is the change of noise and interference together, 0.04 dB, below which a reception
// goes on as it was.
const negligible = 0.01

// settle accounts a reception up to now with the interference that it had, and
// takes note of what it has from now on.
func (c *Core) settle(r *station) {
	tx := r.rx.tx
	if tx == nil || c.ns2() {
		return
	}
	interferenceMw := c.interference(r, tx)
	if c.now < tx.end && math.Abs(interferenceMw-r.rx.interferenceMw) < negligible*(r.noiseMw+r.rx.interferenceMw) {
		return // what was is as good as what is
	}
	noise, all := r.noiseMw, r.noiseMw+r.rx.interferenceMw
	if r.rx.piece == 0 {
		r.rx.logOK += c.logSuccess(tx, r.rx.powerMw/all, r.rx.upTo, c.now)
		c.addBurst(r.rx.burstOK, tx, r.rx.powerMw/all, r.rx.upTo, c.now)
	}
	for from := r.rx.upTo; r.rx.piece > 0 && from < c.now; {
		to := min(from+r.rx.piece, c.now)
		powerMw := r.rx.meanMw * c.links.fadingAt(tx.from, r.index, (from+to)/2)
		r.rx.logOK += c.logSuccess(tx, powerMw/all, from, to)
		r.rx.logNoiseOK += c.logSuccess(tx, powerMw/noise, from, to)
		c.addBurst(r.rx.burstOK, tx, powerMw/all, from, to)
		c.addBurst(r.rx.noiseOK, tx, powerMw/noise, from, to)
		from = to
	}
	r.rx.upTo = c.now
	r.rx.interferenceMw = interferenceMw
}

// logSuccess is the logarithm of the chance that what of a frame lies in a span of time comes
// through at an SNR; of an A-MPDU what lies in its header.
func (c *Core) logSuccess(tx *transmission, snr float64, from, to time.Duration) (sum float64) {
	m := &c.phy.Modes[tx.mode]
	if share := overlap(from, to, tx.start, tx.headerEnd); share > 0 {
		sum += c.phy.HeaderLogSuccess(m, snr, share)
	}
	if share := overlap(from, to, tx.headerEnd, tx.payloadEnd); share > 0 && len(tx.burst) == 0 {
		sum += m.LogSuccess(snr, share*phy.PayloadBits(m, tx.bytes))
	}
	return sum
}

// logSuccessAlone is the logarithm of the chance that a frame which has ended would have come
// through over noise alone.
func (c *Core) logSuccessAlone(r *station, got reception) float64 {
	if got.piece > 0 {
		return got.logNoiseOK
	}
	return c.logSuccess(got.tx, got.powerMw/r.noiseMw, got.tx.start, got.tx.payloadEnd)
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
	s := c.stations[tx.from]
	s.tx, s.sentAt, s.eifs = nil, c.now, false
	for _, j := range tx.reach {
		r := c.stations[j]
		if c.ns2() && r.rx.tx == tx && r.detectAt != 0 {
			c.resolve(r) // what begins now collides with this frame still
		}
		i := 0
		for r.air[i].tx != tx {
			i++
		}
		r.air = slices.Delete(r.air, i, i+1)
		if r.rx.tx == tx {
			c.decode(r, tx)
		} else {
			c.settle(r)
		}
	}
	s.sent(tx)
	s.updateCarrier()
	for _, j := range tx.reach {
		r := c.stations[j]
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
	got := r.rx
	r.rx = reception{}
	luck := r.rng.Float64()
	snr := got.powerMw / r.noiseMw
	miss := &tx.miss[got.slot]
	switch {
	case c.dead:
		*miss = RadioDead
	case succeeds(luck, got.logOK):
		if len(tx.burst) > 0 {
			*miss = r.decodeBurst(got)
		} else if r.unlucky(tx) {
			*miss = ChannelError
		}
		if *miss != NotLost {
			break
		}
		r.eifs = false
		r.heard(got.arrival, snr)
		r.received(tx)
		return
	case c.ns2(): // the cause is known
	case succeeds(luck, c.logSuccessAlone(r, got)):
		*miss = Collision
	default:
		*miss = ChannelError
	}
	if c.ns2() && (r.tx == nil || r.tx.end == c.now) {
		r.ns2SetNAV(c.now + c.phy.EIFS)
	}
	// What ends with an own transmission has not been detected.
	r.eifs = r.tx == nil && r.sentAt != c.now
	c.trace(Trace{At: c.now, Event: "rx_fail", Node: r.index, Peer: tx.from, Frame: tx.number(), Kind: tx.kind.String(),
		RateMbps: c.rate(tx.mode), Cause: *miss})
}

// succeeds reports whether a draw from [0, 1) succeeds at a chance, given as its logarithm. The
// logarithm of 1 - draw is below -draw, which settles most draws without working it out.
func succeeds(draw, logChance float64) bool {
	return -draw < logChance || math.Log(1-draw) < logChance
}

// unlucky reports whether the Markov channel loses a data frame that would have
// come through.
func (s *station) unlucky(tx *transmission) bool {
	cfg := s.core.cfg.ChannelError
	if cfg.Mean == 0 || tx.kind != kindData || tx.to != toAll && tx.to != s.index {
		return false
	}
	return s.peers[tx.from].markov.Loses(cfg, s.core.cfg.Seed, tx.from, s.index, s.core.now)
}

// missAt is why a station did not get a frame, or NotLost.
func (tx *transmission) missAt(station int) Cause {
	if slot, is := slices.BinarySearch(tx.reach, int32(station)); is {
		return tx.miss[slot]
	}
	return tx.missElse
}

// number is the data frame's, 0 for control frames.
func (tx *transmission) number() uint64 {
	if tx.frame == nil {
		return 0
	}
	return tx.frame.id
}
