package medium

import (
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// heard notes signal and rate of a peer whose frame came in whole.
func (s *station) heard(tx *transmission, snr float64) {
	p := &s.peers[tx.from]
	p.heard, p.heardAt, p.powerMw = true, s.core.now, s.rx.powerMw
	if tx.kind == kindData {
		p.heardData, p.rxMode = true, tx.mode
	}
	s.rate.Heard(tx.from, snr, s.core.now)
}

// received takes a whole frame: the one dispatch of frame kinds.
func (s *station) received(tx *transmission) {
	c := s.core
	c.trace(Trace{At: c.now, Event: "rx", Node: s.index, Peer: tx.from, Frame: tx.number(), Kind: tx.kind.String(),
		RateMbps: c.rate(tx.mode)})
	if tx.to == toAll {
		s.heardBeacon(tx.frame)
		s.deliver(tx.from, tx.mode, tx.frame)
		return
	}
	if tx.to != s.index {
		s.overhear(tx)
		if tx.kind == kindData && c.cfg.Promiscuous {
			s.overhearData(tx)
		}
		return
	}
	switch tx.kind {
	case kindData:
		if len(tx.burst) > 0 {
			s.receivedBurst(tx)
			return
		}
		s.receivedData(tx)
	case kindRequest:
		s.receivedRequest(tx)
	case kindRts:
		s.receivedRTS(tx)
	case kindCts:
		s.receivedCTS()
	case kindAck, kindBlockAck:
		s.receivedACK()
	}
}

// overhearData hands up what a node overheard for others. What is not taken was not for it.
func (s *station) overhearData(tx *transmission) {
	if len(tx.burst) == 0 {
		s.core.sink.Deliver(s.index, s.core.now, tx.frame.ethernet)
	}
	for i, f := range tx.burst {
		if s.missed[i] == NotLost {
			s.core.sink.Deliver(s.index, s.core.now, f.ethernet)
		}
	}
}

// overhear sets the NAV by a frame for another (10.3.2.4). One that an RTS has
// set is let go when nothing follows the RTS for as long as a CTS and the data's start
// take: else a failed RTS would silence everybody for a whole exchange.
func (s *station) overhear(tx *transmission) {
	if s.core.ns2() {
		s.ns2SetNAV(tx.nav)
		return
	}
	if tx.nav <= s.nav {
		return
	}
	s.nav = tx.nav
	s.navGen++
	if tx.kind != kindRts {
		return
	}
	p := s.core.phy
	mode := &p.Modes[tx.mode]
	wait := 2*p.SIFS + p.Airtime(mode, dot11.CTSBytes) + p.PLCP(mode) + 2*p.Slot
	s.core.events.Push(evUnheard, event{At: s.core.now + wait, Node: int32(s.index), Gen: s.navGen})
	s.rtsAt = s.core.now
}

// navEnds lets a NAV go that an RTS has set and that came to nothing. ns-2's ends in its time.
func (s *station) navEnds(now time.Duration) {
	if s.core.ns2() {
		s.ns2Count()
		return
	}
	if s.lockedAt >= s.rtsAt {
		return
	}
	s.nav = now
	s.scheduleAccess()
}

func (s *station) receivedData(tx *transmission) {
	ack := response{kind: kindAck, to: tx.from, mode: s.core.phy.Modes[tx.mode].Response, class: tx.frame.class}
	switch {
	case !s.core.ns2():
		s.answer(ack)
	case !s.ns2Acknowledges(tx, ack):
		return
	}
	if s.core.phy.HT != nil {
		s.receivedInOrder(tx.from, tx.frame)
		return
	}
	p := &s.peers[tx.from]
	if p.lastFrame == tx.frame.id {
		if tx.frame.class != Management {
			s.count.Duplicate++
		}
		return
	}
	p.lastFrame = tx.frame.id
	s.deliver(tx.from, tx.mode, tx.frame)
}

// receivedRTS answers unless another exchange holds the channel here.
func (s *station) receivedRTS(tx *transmission) {
	cts := response{kind: kindCts, to: tx.from, mode: s.core.phy.Modes[tx.mode].Response, nav: tx.nav, class: tx.class}
	switch {
	case s.core.ns2():
		s.ns2Clears(cts)
	case s.core.now >= s.nav:
		s.answer(cts)
	}
}

func (s *station) receivedCTS() {
	if s.state != macWaitCTS {
		return
	}
	s.endWait()
	s.retries[0] = 0
	if s.core.ns2() {
		s.ns2.rts = false
		s.ns2Resume()
		return
	}
	s.state = macSending
	s.answer(response{kind: kindData})
}

func (s *station) receivedACK() {
	if s.state != macWaitACK {
		return
	}
	if s.core.phy.HT != nil {
		s.acknowledged()
		return
	}
	s.endWait()
	s.rate.Result(s.head.to, s.mode, 1, 1, s.core.now)
	s.tell(s.head, true)
	if s.core.ns2() {
		s.retries[s.ns2Counter()] = 0
	}
	s.finish()
	if s.core.ns2() {
		s.ns2Again()
	}
}

func (s *station) endWait() {
	s.timeoutGen++
	s.awaitRx = false
}

func (s *station) deliver(from, mode int, f *frame) {
	c := s.core
	f.delivered = true
	c.trace(Trace{At: c.now, Event: "deliver", Node: s.index, Peer: from, Frame: f.id, Kind: "data"})
	if !s.handUp(from, mode, f) {
		c.stations[from].lost(f, s.index, HostRefused, false)
		return
	}
	if f.class != Management {
		s.count.Delivered++
	}
}

// handUp gives a frame to the node's host, which reports whether it took it.
func (s *station) handUp(from, mode int, f *frame) bool {
	c := s.core
	if !c.cfg.MPDUs {
		return c.sink.Deliver(s.index, c.now, f.ethernet)
	}
	return c.mpdus.Heard(s.index, c.now, Reception{Frame: f.mpdu.bytes, RateMbps: c.rate(mode),
		SignalDbm: propagation.RatioToDb(s.peers[from].powerMw)})
}

// answer sets what goes out a SIFS from now; it asks nobody for the channel.
func (s *station) answer(r response) {
	s.response = r
	s.respondGen++
	s.core.events.Push(evRespond, event{At: s.core.now + s.core.phy.SIFS, Node: int32(s.index), Gen: s.respondGen})
}

func (s *station) respond() {
	c, r := s.core, s.response
	if s.tx != nil || c.ns2() && !s.ns2Responds() {
		return
	}
	if r.kind == kindData {
		s.sendData()
		if c.ns2() {
			s.ns2AwaitACK()
		}
		return
	}
	bytes := phy.ACKBytes // as many as a CTS's
	if r.kind == kindBlockAck {
		bytes = ht.BlockACKBytes
	}
	tx := c.newTx(r.kind, s.index, r.to, r.mode, bytes)
	tx.nav = r.nav
	s.count.OnAir[r.class]++
	c.startTx(tx)
	if c.ns2() && r.kind == kindCts {
		s.ns2Timer(r.nav - c.phy.SIFS - c.phy.Airtime(&c.phy.Modes[r.mode], phy.ACKBytes))
	}
}
