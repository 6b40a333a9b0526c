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
	index      int32 // in Core.txs
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
	share      float64       // of the channel that it takes

	reach    []int32   // stations that may notice it, ascending
	opens    []int32   // those of them where a detection time begins with it
	at       []arrival // by station
	missElse Cause     // why those who may not notice it do not get it
}

// arrival is a transmission at one receiver.
type arrival struct {
	powerMw float64
	meanMw  float64 // without fading; 0: it does not arrive here
	miss    Cause   // why the receiver does not get it, if that is known
	known   bool    // it is
	deaf    bool    // the receiver sends while it is detected; kept for ns-2's
	sensed  bool    // its preamble was noticed
}

// lose notes why the receiver does not get it: NotLost is that it does.
func (a *arrival) lose(why Cause) { a.miss, a.known = why, true }

// receiver is what a frame touches at everybody who hears it. All of them lie side by side, without the
// rest of their stations. Most frames are too weak at most receivers to be noticed there, and change nothing but
// the sum.
type receiver struct {
	sumMw    float64 // of all that is on the air here, but its own
	calmFrom float64 // sums from calmFrom to below calmTo change neither a reception nor what the station
	calmTo   float64 // takes the channel for
	leastMw  float64 // what is weaker is neither noticed nor sensed
	noiseMw  float64
	energyMw float64       // of any kind, that keeps the channel busy
	detectAt time.Duration // end of the detection time under way; 0: none
	tx       *transmission // its own
	receives *transmission // that it has locked on to
	arrivals int32         // how many sumMw is of
	sensed   int32         // how many of them were noticed
	busy     bool          // the channel, as this station sees it
	awaitRx  bool          // the time for an answer is over, but something is coming in
	eifs     bool          // this busy period, or the last, ended in a frame that could not be read
}

// add takes note of what begins. A sum of what began and ended is off by rounding only, which is 150 dB below
// the strongest frame, and begins at 0 again when nothing is on the air.
func (r *receiver) add(a *arrival) {
	r.sumMw += a.powerMw
	r.arrivals++
	if a.sensed {
		r.sensed++
	}
}

// remove takes note of what ends.
func (r *receiver) remove(a *arrival) {
	r.sumMw -= a.powerMw
	if r.arrivals--; r.arrivals == 0 {
		r.sumMw = 0
	}
	if a.sensed {
		r.sensed--
	}
}

// calm reports whether the sum changes nothing.
func (r *receiver) calm() bool { return r.calmFrom <= r.sumMw && r.sumMw < r.calmTo }

// unlock ends a reception.
func (r *receiver) unlock() { r.receives, r.calmFrom, r.calmTo = nil, math.Inf(-1), math.Inf(1) }

// expect works out which sums change nothing where nothing is received.
func (c *Core) expect(r *receiver) {
	if r.receives != nil {
		return
	}
	r.calmFrom, r.calmTo = math.Inf(-1), math.Inf(1)
	switch {
	case r.tx != nil || r.sensed > 0:
	case r.busy:
		r.calmFrom = r.energyMw / c.interferes
	default:
		r.calmTo = r.energyMw / c.interferes
	}
}

// senses reports whether the channel is busy: own transmission, a frame being received, one whose
// preamble was noticed, or enough energy of any kind.
func (c *Core) senses(r *receiver) bool {
	return r.tx != nil || r.receives != nil || r.sensed > 0 || r.sumMw*c.interferes >= r.energyMw
}

// recent is what is on the air and began at a time or later.
func (c *Core) recent(since time.Duration) []*transmission {
	i := len(c.air)
	for i > 0 && c.air[i-1].start >= since {
		i--
	}
	return c.air[i:]
}

// reception is what a receiver that has locked on to a frame knows of it.
type reception struct {
	powerMw        float64
	meanMw         float64       // without fading
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
		tx = &transmission{index: int32(len(c.txs)), at: make([]arrival, len(c.stations))}
		c.txs = append(c.txs, tx)
	}
	m := &c.phy.Modes[mode]
	tx.kind, tx.from, tx.to, tx.mode, tx.bytes, tx.frame, tx.burst, tx.nav = kind, from, to, mode, bytes, nil, nil, 0
	tx.start, tx.lockSNR, tx.share = c.now, c.phy.LockSNROf(m), m.Share
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
	c.look(tx.from)
	tx.reach, tx.opens, tx.missElse = tx.reach[:0], tx.opens[:0], RadioDead
	if !c.dead {
		tx.reach, tx.missElse = append(tx.reach, c.links.hearers(tx.from)...), OutOfRange
	}
	c.air = append(c.air, tx)
	to := c.links.reach[tx.from].to
	for i, powerMw := range c.links.powersMw(tx) {
		station := tx.reach[i]
		r, a := &c.receivers[station], &tx.at[station]
		*a = arrival{powerMw: powerMw, meanMw: to[i].meanMw, deaf: r.tx != nil}
		a.sensed = powerMw >= r.leastMw && c.sensesPreamble(r, tx, int(station))
		if r.add(a); powerMw >= r.leastMw || !r.calm() {
			c.arrive(tx, int(station))
		}
	}
	if len(tx.opens) > 0 {
		c.events.Push(evDetect, event{At: c.now + c.phy.Detection, Node: tx.index})
	}
	c.events.Push(evTxEnd, event{At: tx.end, Node: tx.index})
}

// arrive begins a frame at a receiver where it changes more than the sum.
func (c *Core) arrive(tx *transmission, station int) {
	r := &c.receivers[station]
	if !r.calm() {
		c.settle(c.stations[station])
	}
	if r.detectAt == 0 && (r.tx == nil || c.ns2()) && (c.sharp() || tx.at[station].powerMw >= c.noticesMw(r, tx)) {
		r.detectAt = c.now + c.phy.Detection
		tx.opens = append(tx.opens, int32(station))
	}
	c.look(station)
}

// sharp reports whether receivers notice all that exists to them: ns-2's, and a disc's.
func (c *Core) sharp() bool { return c.ns2() || c.links.disc != nil }

// look has a station look at the channel.
func (c *Core) look(station int) {
	r := &c.receivers[station]
	if busy := c.senses(r); busy != r.busy || c.ns2() {
		c.stations[station].carrier(busy)
	}
	c.expect(r)
}

// sensesPreamble reports whether a receiver's carrier sense notices the start of a frame: it is
// strong enough, the receiver neither sends nor receives, and it stands out from what was on the air
// before. Frames that begin together do not hide each other.
func (c *Core) sensesPreamble(r *receiver, tx *transmission, station int) bool {
	a := &tx.at[station]
	if a.powerMw*c.interferes < c.carrierMw {
		return false
	}
	if c.sharp() {
		return true
	}
	if r.tx != nil || r.receives != nil {
		return false
	}
	before, recent := r.sumMw, c.recent(c.now-c.phy.Detection+1)
	for _, other := range recent {
		if other != tx {
			before -= other.at[station].powerMw
		}
	}
	before += c.narrowMw(tx, station, c.air[:len(c.air)-len(recent)])
	return a.powerMw >= tx.lockSNR*(r.noiseMw+before)
}

// energyMw is the power of any kind at which a station must take the channel for busy. OFDM: 20 dB
// above the least sensitivity of the lowest rate, where a preamble was missed (IEEE 802.11-2020,
// 17.3.10.6). HR/DSSS: the more, the less it sends itself (16.3.8.5). ns-2's radio and the disc
// sense all that exists to them.
func (c *Core) energyMw(s *station) float64 {
	if c.sharp() {
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
func (c *Core) fades(r *receiver, meanMw float64) bool {
	return c.cfg.Fading.Model != "" && meanMw*propagation.FadingHeadroom >= min(c.leastNoticedMw(r), c.carrierMw)
}

// interrupt ends what a station that begins to send was receiving.
func (c *Core) interrupt(s *station) {
	if c.ns2() {
		for _, tx := range c.air {
			tx.at[s.index].deaf = true
		}
		if s.receives != nil {
			c.spoil(s)
		}
		return
	}
	if c.links.disc == nil { // it sends as they begin, and misses their preambles
		for _, tx := range c.recent(c.now - c.phy.Detection + 1) {
			if a := &tx.at[s.index]; a.sensed {
				a.sensed = false
				s.sensed--
			}
		}
	}
	if s.receives != nil {
		s.receives.at[s.index].lose(Collision)
		s.unlock()
	}
}

// missUnlessLocked is why a receiver does not get a frame that it does not lock on to.
func (c *Core) missUnlessLocked(r *receiver, tx *transmission, a *arrival) Cause {
	needs := c.noticesMw(r, tx)
	switch {
	case a.powerMw >= needs:
		return Collision
	case a.meanMw >= needs:
		return ChannelError // in a fade
	}
	return OutOfRange
}

// noticesMw is the least power at which a receiver locks on to a frame.
func (c *Core) noticesMw(r *receiver, tx *transmission) float64 {
	if c.ns2() {
		return c.receiveMw
	}
	return tx.lockSNR * r.noiseMw
}

// leastNoticedMw is the least power at which a receiver locks on to any frame.
func (c *Core) leastNoticedMw(r *receiver) float64 {
	if c.ns2() {
		return c.receiveMw
	}
	return c.phy.LeastLock * r.noiseMw
}

// detect ends the detection time of a frame at the receivers that it found with
// none under way. What is too weak to be noticed begins none.
func (c *Core) detect(tx *transmission) {
	for _, j := range tx.opens {
		if c.receivers[j].detectAt == c.now {
			c.resolve(int(j))
			c.look(int(j))
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
func (c *Core) resolve(station int) {
	r := &c.receivers[station]
	opened := r.detectAt - c.phy.Detection
	r.detectAt = 0
	if c.ns2() {
		c.hold(c.stations[station], opened)
		return
	}
	locked := r.receives
	if r.tx != nil || locked != nil && !c.relocks && opened >= locked.headerEnd { // all that began is too late
		return
	}
	var best *transmission
	bestMw, rivalsMw := 0.0, 0.0
	began := c.recent(opened)
	for _, tx := range began {
		if a := &tx.at[station]; a.powerMw > bestMw {
			best, bestMw = tx, a.powerMw
		}
	}
	if best == nil {
		return
	}
	for _, tx := range began {
		if tx != best {
			rivalsMw += tx.at[station].powerMw
		}
	}
	rivalsMw = best.share * (rivalsMw + c.narrowMw(best, station, began))
	noticed := bestMw >= c.noticesMw(r, best)
	others := c.interference(station, best)
	clear := noticed && bestMw >= best.lockSNR*(r.noiseMw+others) && bestMw >= captureRatio*rivalsMw
	switch {
	case locked == nil && noticed && clear:
		c.stations[station].lock(best, others)
	case locked == nil:
		// Who is within a disc's carrier sense is noticed, however weak.
		r.eifs = r.eifs || r.busy && (noticed || c.links.disc != nil)
	case clear && (c.relocks || best.start < locked.headerEnd) &&
		bestMw >= captureRatio*best.share*(r.noiseMw+others):
		locked.at[station].lose(Collision)
		c.stations[station].lock(best, others)
	}
}

// lock begins a reception. The part of the preamble that detection took counts with the interference of now.
func (s *station) lock(tx *transmission, interferenceMw float64) {
	a := &tx.at[s.index]
	a.lose(NotLost)
	s.receives = tx
	s.rx = reception{powerMw: a.powerMw, meanMw: a.meanMw, upTo: tx.start, interferenceMw: interferenceMw}
	s.expect()
	s.lockedAt = s.core.now
	if s.core.fades(s.receiver, a.meanMw) {
		s.rx.piece = s.core.links.steady(tx.from, s.index, tx.start, tx.end)
	}
	if n := len(tx.burst); n > 0 {
		s.logs = append(s.logs[:0], make([]float64, 2*n)...)
		s.rx.burstOK, s.rx.noiseOK = s.logs[:n], s.logs[n:]
	}
}

// expect works out between which sums the reception goes on as it was.
func (s *station) expect() {
	s.calmFrom, s.calmTo = math.Inf(-1), math.Inf(1)
	if s.core.ns2() || s.rx.logOK < hopeless {
		return // what else comes changes nothing
	}
	change := negligible * (s.noiseMw + s.rx.interferenceMw) * s.receives.share / s.core.interferes
	s.calmFrom, s.calmTo = s.sumMw-change, s.sumMw+change
}

// interference is the power at a receiver of all that is on the air there but one transmission, as if it were
// spread over the channel: a frame meets its share of it.
func (c *Core) interference(station int, but *transmission) float64 {
	r := &c.receivers[station]
	if r.arrivals == 1 {
		return 0
	}
	return (r.sumMw - but.at[station].powerMw + c.narrowMw(but, station, c.air)) * c.interferes
}

// narrowMw is by how much more the narrow ones among transmissions interfere with another narrow one: all of their
// power is in the same part of the channel.
func (c *Core) narrowMw(tx *transmission, station int, others []*transmission) (sum float64) {
	if tx.share == 1 {
		return 0
	}
	for _, other := range others {
		if other != tx && other.share < 1 {
			sum += other.at[station].powerMw * (1/max(tx.share, other.share) - 1)
		}
	}
	return sum
}

// negligible is the change of noise and interference together, 0.04 dB, below which a reception goes on as it was.
const negligible = 0.01

// settle accounts a reception up to now with the interference that it had, and takes note of what it has from now on.
func (c *Core) settle(r *station) {
	tx := r.receives
	if tx == nil || c.ns2() {
		return
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
	r.rx.interferenceMw = c.interference(r.index, tx)
	r.expect()
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
func (c *Core) logSuccessAlone(r *station, tx *transmission, got *reception) float64 {
	if got.piece > 0 {
		return got.logNoiseOK
	}
	return c.logSuccess(tx, got.powerMw/r.noiseMw, tx.start, tx.payloadEnd)
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
	i := slices.Index(c.air, tx)
	c.air = slices.Delete(c.air, i, i+1)
	looks := c.looks[:0]
	for _, j := range tx.reach {
		r, a := &c.receivers[j], &tx.at[j]
		if c.ns2() && r.receives == tx && r.detectAt != 0 {
			c.resolve(int(j)) // what begins now collides with this frame still
		}
		r.remove(a)
		switch {
		case r.receives == tx:
			c.decode(c.stations[j], tx)
		case !r.calm():
			c.settle(c.stations[j])
		case !a.sensed && !r.awaitRx && !c.ns2():
			continue
		}
		looks = append(looks, j)
	}
	s.sent(tx)
	c.look(tx.from)
	for _, j := range looks {
		if r := &c.receivers[j]; r.awaitRx && r.receives == nil {
			c.stations[j].attemptFailed()
			c.stations[j].scheduleAccess()
		}
		c.look(int(j))
	}
	for _, j := range tx.reach {
		tx.at[j] = arrival{}
	}
	c.freeTx, c.looks = append(c.freeTx, tx), looks
}

// decode draws whether a received frame is whole. One draw serves both
// questions, so that a frame which noise alone would have broken is never
// called a collision.
func (c *Core) decode(r *station, tx *transmission) {
	c.settle(r)
	got := &r.rx
	r.unlock()
	luck := r.rng.Float64()
	snr := got.powerMw / r.noiseMw
	miss := &tx.at[r.index].miss // which is known since it locked on
	switch {
	case c.dead:
		*miss = RadioDead
	case succeeds(luck, got.logOK):
		if len(tx.burst) > 0 {
			*miss = r.decodeBurst(tx, got)
		} else if r.unlucky(tx) {
			*miss = ChannelError
		}
		if *miss != NotLost {
			break
		}
		r.eifs = false
		r.heard(tx, snr)
		r.received(tx)
		return
	case c.ns2():
		*miss = c.missAt(tx, r.index)
	case succeeds(luck, c.logSuccessAlone(r, tx, got)):
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

// hopeless is below the logarithm of any chance that a draw succeeds at: draws are multiples of 1 in 2^53.
const hopeless = -53 * math.Ln2

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
func (c *Core) missAt(tx *transmission, station int) Cause {
	a := &tx.at[station]
	switch {
	case a.meanMw == 0:
		return tx.missElse
	case a.known:
		return a.miss
	}
	return c.missUnlessLocked(&c.receivers[station], tx, a)
}

// number is the data frame's, 0 for control frames.
func (tx *transmission) number() uint64 {
	if tx.frame == nil {
		return 0
	}
	return tx.frame.id
}
