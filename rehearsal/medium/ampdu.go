package medium

import (
	"cmp"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
)

// What a station of 802.11n and 802.11ac does beyond others (IEEE 802.11-2020, 10.12 and 10.25). It has
// a block acknowledgement agreement with each peer from the start: ADDBA is not sent. When it may
// send, it takes the frames for the receiver of the oldest, those that are to be sent again before
// new ones, as many as window, length and time allow. Frames for others keep their places, as in
// mac80211, which has a queue for each receiver. One frame by itself is acknowledged as any frame, as
// ath9k and VHT do it. A frame that is given up leaves a gap at the receiver, so the sender asks for
// an acknowledgement from behind it (ieee80211_send_bar). A request that fails is not repeated later.

// blockACKed is what a frame has under a block acknowledgement.
type blockACKed struct {
	numbered bool
	number   uint64 // sequence number at its receiver, not taken modulo 4096
	request  bool   // no data: a request for an acknowledgement from number on
	tries    [2]int // without RTS, and with it
	got      bool   // by its receiver, whose next acknowledgement says so
	held     bool   // by its receiver, until those before it have come
	left     bool   // by its sender
	missed   Cause  // why its receiver did not get it from the A-MPDU on the air
	why      Cause  // the last exchange with it failed
}

// blockACKs is the agreement with a peer.
type blockACKs struct {
	next     uint64             // sequence number of frames to it
	reorder  ht.Reorder[*frame] // of those from it
	releases bool               // an evRelease is due
}

// oldest takes the frame that is to be served next; nil: there is none.
func (s *station) oldest() *frame {
	if len(s.again) > 0 && (s.queue.Len() == 0 || s.again[0].id < s.queue.At(0).id) {
		f := s.again[0]
		s.again = slices.Delete(s.again, 0, 1)
		return f
	}
	if s.queue.Len() == 0 {
		return nil
	}
	return s.queue.Pop()
}

// gather puts the frames that go out with the head behind it. One that samples a rate goes by
// itself, as ath9k has it (IEEE80211_TX_CTL_RATE_CTRL_PROBE of xmit.c).
func (s *station) gather(alone bool) {
	p, h := s.core.phy, s.head
	s.burst, s.psduBytes = append(s.burst[:0], h), h.mpduBytes
	h.ba.missed = NotLost
	if h.to < 0 {
		return
	}
	if h.ba.request {
		h.ba.number = s.resolved(h.to)
		return
	}
	s.number(h)
	bytes, full := ht.DelimiterBytes+h.mpduBytes, alone
	joins := func(f *frame) bool {
		if full || f.to != h.to || f.ba.request {
			return false
		}
		longer := ht.Append(bytes, f.mpduBytes)
		full = longer > p.HT.MaxBytes || p.Airtime(&p.Modes[s.mode], longer) > ht.MaxTime ||
			!f.ba.numbered && s.acks[h.to].next >= h.ba.number+ht.Window
		if full {
			return false
		}
		bytes = longer
		s.number(f)
		f.ba.missed = NotLost
		s.burst = append(s.burst, f)
		return true
	}
	s.again = slices.DeleteFunc(s.again, joins)
	s.queue.RemoveIf(joins)
	if len(s.burst) > 1 || p.HT.Delimited {
		s.psduBytes = bytes
	}
}

// number gives a frame the next of its receiver's sequence numbers, once.
func (s *station) number(f *frame) {
	if !f.ba.numbered {
		f.ba.numbered, f.ba.number = true, s.acks[f.to].next
		s.acks[f.to].next++
	}
}

// resolved is the number before which every frame to a peer has been acknowledged or given up.
func (s *station) resolved(to int) uint64 {
	for _, f := range s.again {
		if f.to == to && !f.ba.request {
			return f.ba.number
		}
	}
	return s.acks[to].next
}

// countBurst counts what is about to go on the air.
func (s *station) countBurst() {
	for _, f := range s.burst {
		s.count.OnAir[f.class]++
		if f.ba.request {
			continue
		}
		s.count.Attempts++
		if f.ba.tries == [2]int{} {
			continue
		}
		s.count.Retries++
		if f.to >= 0 {
			s.peers[f.to].retries++
		}
	}
}

// acknowledged ends an exchange that was answered, and failed one that was not.
func (s *station) acknowledged() {
	s.endWait()
	s.retries, s.cw = [2]int{}, s.core.phy.CWMin
	s.conclude(true)
}

// failed doubles the window, until the exchanges that fail in a row are as many as a frame's tries
// (10.23.2.2), or the retry chain is at its end.
func (s *station) failed() {
	kind, limit := s.tryKind()
	s.cw = min(2*s.cw+1, s.core.phy.CWMax)
	s.retries[kind]++
	over := s.retries[kind] >= limit
	if s.chained(s.head) {
		over = s.peers[s.head.to].tried+1 >= s.rate.Tries(s.head.to)
	}
	if over {
		s.retries, s.cw = [2]int{}, s.core.phy.CWMin
	}
	s.conclude(false)
}

// chained: a frame is sent to the end of its retry chain.
func (s *station) chained(f *frame) bool {
	return s.core.unlimited && f.to >= 0 && !f.ba.request
}

// tryKind is which of its two counts an exchange that failed adds to, and that count's limit.
func (s *station) tryKind() (kind, limit int) {
	if s.state == macWaitACK && s.rts {
		return 1, s.core.cfg.LongRetryLimit
	}
	return 0, s.core.cfg.ShortRetryLimit
}

// conclude frees what was acknowledged. Everything else is sent again, or given up at its limit.
func (s *station) conclude(answered bool) {
	kind, _ := s.tryKind()
	sent := s.state == macWaitACK
	if !sent {
		s.count.AttemptsFailed[s.failCause]++
	}
	over := true            // the retry chain
	if !s.head.ba.request { // which goes at a rate of its own
		over = s.rateBurst(answered)
	}
	for _, f := range s.burst {
		if answered && (f.ba.got || f.ba.request) {
			s.core.free(f)
			continue
		}
		f.ba.why = s.failCause
		if sent && f.ba.missed != NotLost {
			f.ba.why = f.ba.missed
		}
		if sent && !f.ba.request {
			s.count.AttemptsFailed[f.ba.why]++
		}
		if f.ba.tries[kind]++; s.limited(f) && (over || !s.chained(f)) {
			s.abandon(f)
		} else {
			s.again = append(s.again, f)
		}
	}
	slices.SortFunc(s.again, func(a, b *frame) int { return cmp.Compare(a.id, b.id) })
	s.burst, s.head = s.burst[:0], nil
	s.state = macIdle
	s.slots, s.countFrom = s.draw(), s.core.now
	s.serveNext()
}

// limited: a frame was sent as often as it may be.
func (s *station) limited(f *frame) bool {
	return f.ba.tries[0] >= s.core.cfg.ShortRetryLimit || f.ba.tries[1] >= s.core.cfg.LongRetryLimit
}

// rateBurst tells the rate control the outcome of the burst, and reports whether the retry chain is over.
// After one in vain the next try is its next, or another chain's first.
func (s *station) rateBurst(answered bool) (over bool) {
	got := 0
	for _, f := range s.burst {
		if answered && f.ba.got {
			got++
		}
	}
	to := s.head.to
	s.rate.Result(to, s.mode-s.core.phy.FirstData, len(s.burst), got, s.core.now)
	if to < 0 {
		return true
	}
	p := &s.peers[to]
	p.tried++
	if over = answered || p.tried >= s.rate.Tries(to); over {
		p.tried = 0
	}
	return over
}

// abandon gives a frame up, and has its receiver told.
func (s *station) abandon(f *frame) {
	if !f.ba.request {
		s.gaveUp(f, f.ba.why)
	}
	asked := slices.ContainsFunc(s.again, func(g *frame) bool { return g.ba.request && g.to == f.to })
	if f.to >= 0 && !f.ba.request && !asked {
		r := s.core.takeFrame()
		r.id, r.dst, r.to, r.class, r.mpduBytes = f.id, f.dst, f.to, f.class, ht.RequestBytes
		r.ethernet, r.ba.request = r.ethernet[:0], true
		s.again = append(s.again, r)
	}
	s.core.free(f)
}

// free ends a frame at its sender. Its receiver may still hold it.
func (c *Core) free(f *frame) {
	if f.ba.left = true; !f.ba.held {
		c.freeFrame(f)
	}
}

// decodeBurst draws which frames of an A-MPDU are whole, and says why there is none.
func (s *station) decodeBurst(tx *transmission, got *reception) Cause {
	c := s.core
	s.missed = s.missed[:0]
	any := false
	for i, f := range tx.burst {
		why, luck := NotLost, s.rng.Float64()
		alone := func() float64 {
			if got.piece > 0 {
				return got.noiseOK[i]
			}
			return c.phy.Modes[tx.mode].LogSuccess(got.powerMw/s.noiseMw, subframeBits(f))
		}
		switch {
		case succeeds(luck, got.burstOK[i]):
			if s.unlucky(tx) {
				why = ChannelError
			}
		case succeeds(luck, alone()):
			why = Collision
		default:
			why = ChannelError
		}
		any = any || why == NotLost
		s.missed = append(s.missed, why)
		if tx.to == s.index {
			f.ba.missed = why
		}
	}
	if any {
		return NotLost
	}
	return s.missed[0]
}

// subframeBits are a frame's and its delimiter's, without which it is not found.
func subframeBits(f *frame) float64 { return float64(8 * (ht.DelimiterBytes + f.mpduBytes)) }

// addBurst adds to the logarithm of each frame's chance that what of it lies in a span of time comes
// through at an SNR.
func (c *Core) addBurst(logOK []float64, tx *transmission, snr float64, from, to time.Duration) {
	bytes := 0
	perByte := float64(tx.payloadEnd-tx.headerEnd) / float64(max(1, tx.bytes))
	for i, f := range tx.burst {
		begins := tx.headerEnd + time.Duration(perByte*float64(ht.Append(bytes, 0)-ht.DelimiterBytes))
		bytes = ht.Append(bytes, f.mpduBytes)
		ends := tx.headerEnd + time.Duration(perByte*float64(bytes))
		if share := overlap(from, to, begins, ends); share > 0 {
			logOK[i] += c.phy.Modes[tx.mode].LogSuccess(snr, share*subframeBits(f))
		}
	}
}

// receivedBurst takes the frames of an A-MPDU that came through, and acknowledges them.
func (s *station) receivedBurst(tx *transmission) {
	s.acknowledge(tx)
	for i, f := range tx.burst {
		if s.missed[i] == NotLost {
			s.receivedInOrder(tx.from, f)
			continue
		}
		s.core.trace(Trace{At: s.core.now, Event: "rx_fail", Node: s.index, Peer: tx.from, Frame: f.id, Kind: "data",
			RateMbps: s.core.rate(tx.mode), Cause: s.missed[i]})
	}
}

// acknowledge answers with a block acknowledgement.
func (s *station) acknowledge(tx *transmission) {
	s.answer(response{kind: kindBlockAck, to: tx.from, mode: s.core.phy.Modes[tx.mode].Response, class: tx.frame.class})
}

// receivedInOrder puts a frame in its place among those of its sender.
func (s *station) receivedInOrder(from int, f *frame) {
	p, held := &s.acks[from], f.ba.held
	f.ba.got, f.ba.held = true, true
	if !p.reorder.Take(f.ba.number, f, s.core.now, s.upFrom(from)) {
		f.ba.held = held
		if !f.delivered && !held { // mac80211 no longer waits for it, and its acknowledgement says otherwise
			f.delivered = true
			s.core.stations[from].lost(f, s.index, f.ba.why, false)
		} else {
			s.count.Duplicate++
		}
	}
	s.awaitRelease(from)
}

// upFrom hands a peer's frames to the host.
func (s *station) upFrom(from int) func(*frame) {
	return func(f *frame) {
		f.ba.held = false
		s.deliver(from, 0, f)
		if f.ba.left {
			s.core.freeFrame(f)
		}
	}
}

// receivedRequest moves on to where the sender is, and answers.
func (s *station) receivedRequest(tx *transmission) {
	s.acknowledge(tx)
	s.acks[tx.from].reorder.MoveTo(tx.frame.ba.number, s.upFrom(tx.from))
}

// awaitRelease has release called when frames of a peer will have waited for too long.
func (s *station) awaitRelease(from int) {
	p := &s.acks[from]
	if due, any := p.reorder.Due(); any && !p.releases {
		p.releases = true
		s.core.events.Push(evRelease, event{At: due, Node: int32(s.index), Gen: uint32(from)})
	}
}

func (s *station) release(from int) {
	s.acks[from].releases = false
	s.acks[from].reorder.Release(s.core.now, s.upFrom(from))
	s.awaitRelease(from)
}
