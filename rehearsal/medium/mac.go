package medium

import (
	"math/rand/v2"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ratecontrol"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ring"
)

// Limits of IEEE 802.11-2020, annex C: dot11ShortRetryLimit and
// dot11LongRetryLimit. They count transmissions, the first included.
const (
	shortRetryLimit = 7
	longRetryLimit  = 4
)

type macState uint8

const (
	macIdle    macState = iota // nothing to send
	macContend                 // waits for the channel and its backoff
	macSending                 // RTS or data on the air, or data due after CTS
	macWaitCTS
	macWaitACK
	macWaitData // of ns-2's: CTS is on the air, or was, and the data have not come
	macSendACK  // of ns-2's
)

// noBackoff is the slot count of a station that has none to run down.
const noBackoff = -1

// station is one radio: its receiver and its DCF (10.3).
type station struct {
	*receiver
	core       *Core
	index      int
	mac        MAC
	txPowerDbm float64
	txPowerMw  float64
	floorMw    float64 // a transmission that is weaker here is left out
	floorDbm   float64
	channel    int

	// The receiver.
	sentAt time.Duration // end of the last own transmission
	rx     reception     // of what it receives

	// The channel as this station sees it.
	idleFrom  time.Duration // while not busy
	busyFrom  time.Duration // while busy
	readyFrom time.Duration // from when on it was idle for long enough before that
	busyTime  time.Duration // up to busyFrom
	nav       time.Duration
	navGen    uint32
	rtsAt     time.Duration // end of the RTS that set the NAV last
	lockedAt  time.Duration // start of the last frame noticed

	// Channel access.
	state      macState
	cw         int
	slots      int           // left to run down, or noBackoff
	countFrom  time.Duration // not before this
	accessAt   time.Duration
	accessGen  uint32
	respondGen uint32
	timeoutGen uint32
	beaconGen  uint32
	response   response
	ns2        ns2Access

	queue     ring.Queue[*frame]
	head      *frame    // in service
	beacon    *frame    // waits for its time; nil: none
	again     []*frame  // of 802.11n and 802.11ac: to be sent again, oldest first
	burst     []*frame  // in service there: the head, and what goes with it
	psduBytes int       // of them all
	missed    []Cause   // why, by frame of the A-MPDU that is being received
	logs      []float64 // of its reception
	retries   [2]int    // short, long
	mode      int       // of the head's last attempt
	rts       bool      // it began with RTS
	failCause Cause     // of the exchange under way

	beaconDelay time.Duration // after the stack's beacon time is the own one; 0: not drawn yet

	rng   *rand.Rand
	rate  rateControl
	peers []peerState
	acks  []blockACKs // with peers, of 802.11n and 802.11ac
	count Counters
}

// response is what goes out a SIFS from now.
type response struct {
	kind  frameKind
	to    int
	mode  int
	nav   time.Duration
	class Class
}

// peerState is what a station knows of another.
type peerState struct {
	lastFrame uint64 // newest data frame received, to tell duplicates
	heard     bool   // any frame
	heardData bool
	heardAt   time.Duration
	powerMw   float64
	rxMode    int
	sent      bool
	txMode    int
	retries   uint64
	failed    uint64
	tried     int                    // attempts in vain with the present frame to it
	markov    propagation.MarkovLink // of frames from that peer
}

func newStation(c *Core, index int, mac MAC, n NodeConfig, rate rateControl, rng *rand.Rand) *station {
	channel := n.Channel
	if channel == 0 {
		channel = c.cfg.Channel
	}
	noiseMw := c.phy.NoiseMw(n.NoiseFigureDb)
	floorMw := inaudibleRatio * min(noiseMw, c.carrierMw)
	if c.cfg.Fading.Model != "" {
		floorMw = min(floorMw, c.phy.LeastLock*noiseMw/propagation.FadingHeadroom)
	}
	if c.ns2() {
		floorMw = ns2CarrierSenseMw
	}
	s := &station{receiver: &c.receivers[index], core: c, index: index, mac: mac, channel: channel,
		txPowerDbm: n.TxPowerDbm, txPowerMw: propagation.DbToRatio(n.TxPowerDbm),
		floorMw: floorMw, floorDbm: propagation.RatioToDb(floorMw), cw: c.phy.CWMin, slots: noBackoff,
		rng: rng, rate: rate, peers: make([]peerState, len(c.cfg.Nodes))}
	if c.phy.HT != nil {
		s.acks = make([]blockACKs, len(c.cfg.Nodes))
	}
	s.noiseMw, s.energyMw = noiseMw, c.energyMw(s)
	if !c.sharp() {
		s.leastMw = min(c.carrierMw, c.leastNoticedMw(s.receiver))
	}
	c.expect(s.receiver)
	return s
}

func (s *station) queued() int   { return s.queue.Len() }
func (s *station) push(f *frame) { s.queue.Push(f) }

// serveNext takes the next frame into service when there is none.
func (s *station) serveNext() {
	if s.core.ns2() {
		s.ns2Serve()
		return
	}
	if s.head != nil {
		return
	}
	if s.head = s.oldest(); s.head == nil {
		return
	}
	s.state = macContend
	if s.head.mpdu.beacon == dot11.CellBeacon {
		s.delayBeacon()
		return
	}
	if !s.busy {
		s.retireBackoff()
	}
	if s.slots == noBackoff && s.busy && s.busyFrom == s.core.now && s.tx == nil && s.readyFrom <= s.core.now {
		// Another began in this very instant: this station cannot have noticed.
		s.pushAccess(s.core.now)
		return
	}
	// 10.3.4.3: a frame that comes while the channel is busy backs off; one that
	// finds it idle, and no backoff left from before, goes after DIFS.
	if s.slots == noBackoff && (s.busy || s.core.now < s.nav) {
		s.slots = s.draw()
	}
	s.scheduleAccess()
}

func (s *station) draw() int { return s.rng.IntN(s.cw + 1) }

// countBase is when the first slot of the backoff begins, the channel being
// idle: after DIFS, or EIFS if what made it busy last was a frame that could not
// be read (10.3.4.2). A good frame ends EIFS (10.3.2.3.7), and so does any other
// busy period.
func (s *station) countBase() time.Duration {
	ifs := s.core.phy.IFS
	if s.eifs {
		ifs = s.core.phy.EIFS
	}
	return max(max(s.idleFrom, s.nav)+ifs, s.countFrom)
}

// retireBackoff forgets a backoff after a transmission that ran out while there
// was nothing to send.
func (s *station) retireBackoff() {
	if s.slots >= 0 && s.countBase()+time.Duration(s.slots)*s.core.phy.Slot <= s.core.now {
		s.slots = noBackoff
	}
}

// scheduleAccess sets the time at which the station will send.
func (s *station) scheduleAccess() {
	if s.busy || s.state != macContend || s.core.ns2() {
		return
	}
	wait := time.Duration(max(s.slots, 0)) * s.core.phy.Slot
	s.pushAccess(max(s.core.now, s.countBase()+wait))
}

func (s *station) pushAccess(at time.Duration) {
	s.accessAt = at
	s.accessGen++
	s.core.events.Push(evAccess, event{At: s.accessAt, Node: int32(s.index), Gen: s.accessGen})
}

// carrier takes note of whether the channel is busy.
func (s *station) carrier(busy bool) {
	if s.core.ns2() {
		s.ns2Count()
	}
	if busy == s.busy {
		return
	}
	s.busy = busy
	if busy {
		s.busyFrom, s.readyFrom = s.core.now, s.countBase()
		s.freeze()
		s.eifs = false
		return
	}
	s.idleFrom = s.core.now
	s.busyTime += s.core.now - s.busyFrom
	s.scheduleAccess()
}

// freeze stops the backoff at its last whole slot. A station whose backoff ends
// in this very instant cannot have noticed and sends: that is a collision.
func (s *station) freeze() {
	if s.core.ns2() {
		return
	}
	now := s.core.now
	if s.state != macContend {
		s.retireBackoff()
	}
	if elapsed := now - s.countBase(); elapsed > 0 && s.slots > 0 {
		s.slots = max(0, s.slots-int(elapsed/s.core.phy.Slot))
	}
	if s.core.phy.HT != nil && now >= s.countBase() && s.slots > 0 {
		s.slots-- // EDCA counts down as a slot begins, also when it turns out to be busy (10.23.2.4)
	}
	if s.state != macContend || s.accessAt == now {
		return
	}
	s.accessGen++
	if s.slots == noBackoff {
		s.slots = s.draw()
	}
}

// access is the end of the backoff: RTS or the frame goes out.
func (s *station) access() {
	if s.core.ns2() {
		s.ns2Send()
		return
	}
	if s.tx != nil || s.state != macContend {
		return
	}
	s.slots = noBackoff
	s.accessGen++
	s.state = macSending
	if s.retries != [2]int{} && s.core.phy.HT == nil {
		s.countRetry()
	}
	choice := s.pick()
	s.mode = choice.Mode
	if s.core.phy.HT != nil {
		s.gather(choice.Sample)
	}
	s.rts = choice.RTS || s.usesRTS(s.airBytes())
	s.head.mpdu.try(s.core.now)
	if s.rts {
		s.sendRTS()
		return
	}
	s.sendData()
}

func (s *station) countRetry() {
	if s.head.class == Management {
		return
	}
	s.count.Retries++
	if s.head.to >= 0 {
		s.peers[s.head.to].retries++
	}
}

// pick is the rate of the head frame: the rate control's for unicast, the lowest basic one for
// everybody (10.6.4.2).
func (s *station) pick() ratecontrol.Choice {
	if s.core.cfg.MPDUs {
		return ratecontrol.Choice{Mode: s.head.mpdu.next().mode}
	}
	to := s.head.to
	if to == toAll || s.head.ba.request { // rate_control_send_low of mac80211
		return ratecontrol.Choice{Mode: s.core.phy.GroupMode()}
	}
	choice := s.rate.Pick(to, s.tried(to), s.usesRTS(s.head.mpduBytes), s.core.now)
	choice.Mode += s.core.phy.FirstData
	return choice
}

// tried is how often the present frame to a peer was on the air in vain.
func (s *station) tried(to int) int {
	if to < 0 {
		return 0
	}
	return s.peers[to].tried
}

func (s *station) usesRTS(bytes int) bool {
	if s.core.cfg.MPDUs {
		return s.head.mpdu.next().rts && s.head.to != toAll
	}
	limit := s.core.cfg.RTSThresholdBytes
	return limit > 0 && s.head.to != toAll && bytes > limit
}

// leastAirtime is a lower bound on the time from the station's access to the
// next delivery by anybody. An RTS can fail and let others in soon.
func (s *station) leastAirtime() time.Duration {
	if s.head == nil || s.usesRTS(s.head.mpduBytes) || s.core.chains && s.tried(s.head.to) > 0 {
		return s.core.minData
	}
	mode := s.core.topMode
	switch {
	case s.core.cfg.MPDUs:
		mode = s.head.mpdu.next().mode
	case s.core.phy.HT != nil && s.core.cfg.RTSThresholdBytes > 0:
		return s.core.minData
	case s.head.to == toAll || s.head.ba.request:
		mode = s.core.phy.GroupMode()
	}
	return s.core.phy.Airtime(&s.core.phy.Modes[mode], s.head.mpduBytes)
}

// airBytes is the length of what goes out with the head.
func (s *station) airBytes() int {
	if len(s.burst) > 0 {
		return s.psduBytes
	}
	return s.head.mpduBytes
}

func (s *station) sendRTS() {
	c, p := s.core, s.core.phy
	mode := p.Modes[s.mode].RTS
	tx := c.newTx(kindRts, s.index, s.head.to, mode, dot11.RTSBytes)
	s.count.OnAir[s.head.class]++
	tx.class = s.head.class
	tx.nav = tx.end + 3*p.SIFS + p.Airtime(&p.Modes[mode], dot11.CTSBytes) +
		p.Airtime(&p.Modes[s.mode], s.airBytes()) + s.ackTime()
	c.startTx(tx)
}

func (s *station) sendData() {
	c, f := s.core, s.head
	kind := kindData
	if f.ba.request {
		kind = kindRequest
	}
	tx := c.newTx(kind, s.index, f.to, s.mode, s.airBytes())
	tx.frame = f
	if len(s.burst) > 1 {
		tx.burst = s.burst
	}
	if f.to != toAll {
		tx.nav = tx.end + c.phy.SIFS + s.ackTime()
	}
	switch {
	case len(s.burst) > 0:
		s.countBurst()
	case f.class != Management:
		s.count.Attempts++
		fallthrough
	default:
		s.count.OnAir[f.class]++
	}
	if f.to >= 0 {
		s.peers[f.to].sent, s.peers[f.to].txMode = true, s.mode
	}
	c.startTx(tx)
}

// ackTime is the airtime of the ACK to what goes out in the present mode.
func (s *station) ackTime() time.Duration {
	p, bytes := s.core.phy, phy.ACKBytes
	if len(s.burst) > 1 || s.head.ba.request {
		bytes = ht.BlockACKBytes
	}
	return p.Airtime(&p.Modes[p.Modes[s.mode].Response], bytes)
}

// sent is the end of an own transmission.
func (s *station) sent(tx *transmission) {
	switch {
	case tx.kind == kindData && tx.to == toAll:
		s.broadcastDone(tx)
	case s.core.ns2():
		s.ns2Sent(tx)
	case tx.kind == kindData || tx.kind == kindRequest:
		s.await(tx, macWaitACK)
	case tx.kind == kindRts:
		s.await(tx, macWaitCTS)
	default:
		s.core.stations[tx.to].answerMissed(s.core.missAt(tx, tx.to))
	}
}

// answerMissed notes why an awaited CTS or ACK did not come through.
func (s *station) answerMissed(why Cause) {
	if why != NotLost && (s.state == macWaitCTS || s.state == macWaitACK) {
		s.failCause = why
	}
}

// await sets the time-out for the answer: SIFS, a slot, and the time in which
// the answer's start is noticed (10.3.2.11, aRxPHYStartDelay).
func (s *station) await(tx *transmission, state macState) {
	p := s.core.phy
	s.state = state
	s.failCause = s.missOf(tx)
	answer := &p.Modes[p.Modes[tx.mode].Response]
	s.timeoutGen++
	s.core.events.Push(evTimeout, event{At: s.core.now + p.SIFS + p.Slot + p.PLCP(answer),
		Node: int32(s.index), Gen: s.timeoutGen})
}

// missOf is why the addressee did not get a frame. When it did, the exchange
// can only fail by the answer: a collision (it could not be sent), unless
// answerMissed says other.
func (s *station) missOf(tx *transmission) Cause {
	switch {
	case s.core.dead:
		return RadioDead
	case tx.to == toNobody:
		return OutOfRange
	}
	if why := s.core.missAt(tx, tx.to); why != NotLost {
		return why
	}
	return Collision
}

func (s *station) timeout() {
	if s.core.ns2() {
		s.ns2Timeout()
		return
	}
	if s.receives != nil {
		s.awaitRx = true
		return
	}
	s.attemptFailed()
	s.scheduleAccess()
}

// attemptFailed counts an exchange without an answer and backs off or gives up
// (10.3.4.4).
func (s *station) attemptFailed() {
	s.awaitRx = false
	s.timeoutGen++
	if s.core.phy.HT != nil {
		s.failed()
		return
	}
	if s.head.class != Management {
		s.count.AttemptsFailed[s.failCause]++
	}
	kind, limit := s.tryKind()
	s.retries[kind]++
	if s.over(s.head.to, s.retries[kind] >= limit) {
		s.giveUp()
		return
	}
	s.cw = min(2*s.cw+1, s.core.phy.CWMax)
	s.slots, s.countFrom = s.draw(), s.core.now
	s.state = macContend
}

// over notes an attempt in vain, and reports whether it was the present frame's last.
func (s *station) over(to int, atLimit bool) bool {
	if s.core.cfg.MPDUs {
		return s.head.mpdu.exhausted()
	}
	s.rate.Result(to, s.mode, 1, 0, s.core.now)
	if to < 0 {
		return atLimit
	}
	s.peers[to].tried++
	tries := s.rate.Tries(to)
	return tries > 0 && s.peers[to].tried >= tries || atLimit && !(s.core.unlimited && tries > 0)
}

func (s *station) giveUp() {
	s.gaveUp(s.head, s.failCause)
	s.tell(s.head, false)
	s.finish()
}

// gaveUp reports a frame that was sent in vain for the last time.
func (s *station) gaveUp(f *frame, why Cause) {
	c := s.core
	if f.class != Management {
		s.count.TxFailed++
		if f.to >= 0 {
			s.peers[f.to].failed++
		}
	}
	if !f.delivered && !f.ba.held {
		s.lost(f, f.to, why, true)
	}
	c.sink.TxFailed(s.index, c.now, f.dst, f.ethernet)
}

func (s *station) lost(f *frame, peer int, why Cause, retryLimit bool) {
	if f.class == Management {
		return
	}
	s.count.Lost[why]++
	if f.to != toAll || why != OutOfRange { // else it is a broadcast, at one who could not notice it
		s.core.report(s.index, peer, f.ethernet, why, retryLimit)
	}
	s.core.trace(Trace{At: s.core.now, Event: "lost", Node: s.index, Peer: peer, Frame: f.id, Kind: "data", Cause: why})
}

// broadcastDone ends a broadcast: once on the air, whoever got it. Those who
// could not notice it are counted, and not told one by one.
func (s *station) broadcastDone(tx *transmission) {
	for _, j := range tx.reach {
		if why := s.core.missAt(tx, int(j)); why != NotLost {
			s.lost(tx.frame, int(j), why, false)
		}
	}
	if tx.frame.class != Management {
		s.count.Lost[tx.missElse] += uint64(len(s.peers) - 1 - len(tx.reach))
	}
	s.tell(tx.frame, false)
	s.finish()
	if s.core.ns2() {
		s.ns2Again()
	}
}

// finish ends the service of the head frame. A backoff follows even when there
// is nothing more to send (10.3.4.3), so that nobody gets two frames in a row.
func (s *station) finish() {
	if s.head.to >= 0 {
		s.peers[s.head.to].tried = 0
	}
	s.core.freeFrame(s.head)
	s.head, s.burst = nil, s.burst[:0]
	s.cw = s.core.phy.CWMin
	if s.core.ns2() {
		return // its callers go on
	}
	s.state, s.retries = macIdle, [2]int{}
	s.slots, s.countFrom = s.draw(), s.core.now
	s.serveNext()
}
