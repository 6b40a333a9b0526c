package medium

import (
	"time"
)

// ns2Access is what ns-2's channel access has beyond the standard's
// (ns-2.35, mac/mac-802_11.cc, mac-802_11.h and mac-timers.cc). It differs so:
//
//   - Every frame draws a backoff, of 0 to CW-1 slots, also one that finds the channel idle.
//     It runs after DIFS, and only when the channel is idle and the NAV over.
//   - EIFS is a NAV after a frame that could not be read: DIFS follows, a good frame does
//     not end it, and no CTS is sent in it. A frame that is captured over sets one, too, to
//     EIFS after its end.
//   - A NAV that an RTS sets lasts for the whole exchange, also when nothing follows.
//   - Whether a CTS may go is looked at after SIFS, by carrier and NAV. So is it for data after
//     the CTS: if not, the frame begins again with RTS and a doubled window. Who has sent CTS
//     does nothing else until the data have had their time.
//   - Answers are awaited to the end that they should have, whatever comes in.
//   - The counts of retries are the station's. A success ends the one that it is of: that of
//     failed data goes on to the next frame when a frame is given up for lack of CTS.
//   - A frame that is given up leaves no backoff.
type ns2Access struct {
	counts  bool // the backoff runs down
	rts     bool // the head frame begins with RTS, and has no CTS yet
	tried   bool // the head frame, or its RTS, was on the air
	answers bool // station.response, a CTS or an ACK, is due, or CTS is out and the data are not in
	defers  bool // SIFS runs
}

// ns2Idle is is_idle: nothing comes in, nothing goes out or is awaited, and the NAV is over.
// What began before that time counts as coming in.
func (s *station) ns2Idle(before time.Duration) bool {
	comes := s.receives != nil || s.detectAt != 0 && s.detectAt-s.core.phy.Detection < before
	return !comes && s.state == macIdle && s.core.now >= s.nav
}

// ns2Free is ns2Idle for who would send now, and cannot have noticed what begins now.
func (s *station) ns2Free() bool { return s.ns2Idle(s.core.now) }

// ns2Count is checkBackoffTimer: it lets the backoff run or stops it at its last whole slot.
// One that ends in this very instant has not noticed what begins now.
func (s *station) ns2Count() {
	if s.slots == noBackoff {
		return
	}
	p, now := s.core.phy, s.core.now
	idle := s.ns2Idle(now + 1)
	switch {
	case idle && !s.ns2.counts:
		s.ns2.counts, s.countFrom = true, now+p.IFS
		s.pushAccess(s.countFrom + time.Duration(s.slots)*p.Slot)
	case !idle && s.ns2.counts && s.accessAt != now:
		s.ns2.counts = false
		s.accessGen++
		s.slots -= int(max(0, now-s.countFrom) / p.Slot)
	}
}

// ns2Backoff draws a backoff, which ns2Count lets run.
func (s *station) ns2Backoff() { s.slots, s.ns2.counts = s.rng.IntN(s.cw), false }

func (s *station) ns2Widen() { s.cw = min(2*s.cw+1, s.core.phy.CWMax) }

// ns2Serve is send: it takes the next frame into service when there is none.
func (s *station) ns2Serve() {
	if s.head != nil || s.queue.Len() == 0 {
		return
	}
	s.head = s.queue.Pop()
	s.ns2.rts, s.ns2.tried = s.usesRTS(s.head.mpduBytes), false
	if s.slots == noBackoff && !(s.ns2.defers && s.ns2Free()) {
		s.ns2Backoff()
	}
	s.ns2Count()
}

// ns2Send is backoffHandler: the backoff has run down.
func (s *station) ns2Send() {
	s.slots, s.ns2.counts = noBackoff, false
	s.accessGen++
	switch {
	case s.ns2.answers || s.head == nil:
	case !s.ns2Free():
		s.ns2TryLater()
	default:
		if s.ns2.tried {
			s.countRetry()
		}
		s.ns2.tried = true
		s.mode = s.pick().Mode
		if !s.ns2.rts {
			s.sendData()
			s.ns2AwaitACK()
			return
		}
		s.sendRTS()
		s.state = macWaitCTS
		s.ns2AwaitAnswer()
	}
}

// ns2TryLater backs off from a channel that is not idle, or after a failure.
func (s *station) ns2TryLater() {
	s.ns2.rts = s.usesRTS(s.head.mpduBytes)
	s.ns2Widen()
	s.ns2Backoff()
	s.ns2Count()
}

// ns2AwaitACK follows data that have just begun.
func (s *station) ns2AwaitACK() {
	if s.state = macWaitACK; s.head.to == toAll {
		s.state = macSending
		return
	}
	s.ns2AwaitAnswer()
}

// ns2AwaitAnswer sets the time-out for CTS or ACK, which last equally long.
func (s *station) ns2AwaitAnswer() { s.ns2Timer(s.tx.end + s.core.phy.SIFS + s.ackTime()) }

func (s *station) ns2Timer(at time.Duration) {
	s.timeoutGen++
	s.core.events.Push(evTimeout, event{At: at + 2*s.core.phy.Detection, Node: int32(s.index), Gen: s.timeoutGen})
}

// ns2Sent is the end of an own transmission to one station.
func (s *station) ns2Sent(tx *transmission) {
	if tx.kind == kindRts || tx.kind == kindData {
		s.failCause = s.missOf(tx)
		return
	}
	s.core.stations[tx.to].answerMissed(s.core.missAt(tx, tx.to))
	if tx.kind == kindAck {
		s.ns2.answers = false
		s.ns2Resume()
	}
}

// ns2Timeout is send_timer.
func (s *station) ns2Timeout() {
	switch s.state {
	case macWaitCTS:
		s.ns2Failed(0)
	case macWaitACK:
		s.ns2Failed(s.ns2Counter())
	default:
		s.ns2.answers = false
	}
	s.ns2Resume()
}

// ns2Counter is which retries failed data count among: the long ones, of frames with RTS.
func (s *station) ns2Counter() int {
	if s.usesRTS(s.head.mpduBytes) {
		return 1
	}
	return 0
}

// ns2Failed is RetransmitRTS and RetransmitDATA.
func (s *station) ns2Failed(kind int) {
	s.timeoutGen++
	if s.head.class != Management {
		s.count.AttemptsFailed[s.failCause]++
	}
	s.rate.Result(s.head.to, s.mode, 1, 0, s.core.now)
	s.retries[kind]++
	if s.retries[kind] >= []int{s.core.cfg.ShortRetryLimit, s.core.cfg.LongRetryLimit}[kind] {
		s.retries[kind] = 0
		s.giveUp()
		return
	}
	s.ns2TryLater()
}

// ns2Again follows a frame that came through, or was for all.
func (s *station) ns2Again() {
	s.ns2Backoff()
	s.ns2Resume()
}

// ns2Resume is tx_resume: nothing is on the air or awaited any more.
func (s *station) ns2Resume() {
	switch {
	case s.ns2.answers:
		s.ns2Defer()
	case s.head == nil:
		s.ns2Serve()
	case s.slots != noBackoff:
	case s.ns2.rts || !s.usesRTS(s.head.mpduBytes):
		s.ns2Backoff()
	default: // CTS is in
		s.response = response{kind: kindData}
		s.ns2Defer()
	}
	s.state = macIdle
	s.ns2Count()
}

func (s *station) ns2Defer() {
	s.ns2.defers = true
	s.answer(s.response)
}

// ns2Responds is deferHandler: SIFS is over. It reports whether station.response goes out.
func (s *station) ns2Responds() bool {
	s.ns2.defers = false
	switch {
	case s.response.kind == kindAck:
		s.state = macSendACK
	case s.response.kind == kindCts && s.ns2Free():
		s.state = macWaitData
	case s.response.kind == kindCts:
		s.ns2.answers = false
		if s.head != nil && s.slots == noBackoff {
			s.ns2Backoff() // ns-2 forgets it, and the frame waits until something else is sent
			s.ns2Count()
		}
		return false
	case !s.ns2Free():
		s.ns2TryLater()
		return false
	}
	return true
}

// ns2Clears answers an RTS.
func (s *station) ns2Clears(cts response) {
	if s.state != macIdle || s.ns2.answers {
		return
	}
	s.ns2.answers, s.response = true, cts
	s.ns2Resume()
}

// ns2Acknowledges answers data, and reports whether they are taken: those that should have
// begun with RTS are refused without.
func (s *station) ns2Acknowledges(tx *transmission, ack response) bool {
	limit := s.core.cfg.RTSThresholdBytes
	cleared := limit > 0 && tx.bytes > limit
	switch {
	case cleared && s.state != macWaitData, !cleared && s.ns2.answers:
		return false
	case cleared:
		s.endWait()
	}
	s.ns2.answers, s.response = true, ack
	if cleared || s.state == macIdle {
		s.ns2Resume()
	}
	return true
}

// ns2SetNAV is set_nav.
func (s *station) ns2SetNAV(until time.Duration) {
	if until <= s.nav {
		return
	}
	s.nav = until
	s.navGen++
	s.core.events.Push(evUnheard, event{At: until, Node: int32(s.index), Gen: s.navGen})
}
