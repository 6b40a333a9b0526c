package medium

import (
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// MPDU is a frame of IEEE 802.11 that a node's own stack hands to its radio, with
// the rates that the stack's rate control has chosen.
type MPDU struct {
	Frame []byte // from the MAC header on, without the FCS; copied
	Tries []Try  // in this order, until one is acknowledged
	NoACK bool   // nobody acknowledges it
	ID    uint64 // the stack's own, for MPDUSink.Sent
}

// Try is a rate, and how often a frame may be sent at it.
type Try struct {
	RateMbps float64
	Times    int
	RTS      bool // begin with RTS
}

// Reception is a frame of IEEE 802.11 as a radio received it.
type Reception struct {
	Frame     []byte // the core's own again when the call returns
	RateMbps  float64
	SignalDbm float64
}

// Outcome is how an MPDU ended.
type Outcome struct {
	ID    uint64
	Tried int  // times that it, or its RTS, was on the air
	ACK   bool // it was acknowledged
	// SignalDbm is the power of the ACK.
	SignalDbm float64
	// Refused: it was never on the air, for the queue had no room or a rate is not the
	// standard's, or the core is abandoned.
	Refused bool
}

// MPDUSink is a Sink that also takes frames of IEEE 802.11, and the outcome of those
// that it handed over.
type MPDUSink interface {
	Sink
	// Heard hands a frame to a node at the model time of its end: one for it, or for
	// everybody. It returns false when the host does not take it.
	Heard(node int, at time.Duration, r Reception) bool
	// Sent ends an MPDU.
	Sent(node int, at time.Duration, o Outcome)
}

// mpdu is what a frame of Transmit has beyond others.
type mpdu struct {
	bytes  []byte
	id     uint64
	chain  []attempt
	tried  int
	beacon dot11.BeaconKind
	handed time.Duration // over by the stack
}

// attempt is one transmission that a frame may have.
type attempt struct {
	mode int
	rts  bool
}

// next is the attempt that is due.
func (m *mpdu) next() attempt { return m.chain[min(m.tried, len(m.chain)-1)] }

// try counts an attempt. All but the first tell so. A beacon bears the time at which it
// goes out: the stack wrote that of the hand-over.
func (m *mpdu) try(now time.Duration) {
	if m.tried++; m.tried > 1 {
		dot11.SetRetry(m.bytes)
	}
	if m.beacon != dot11.NoBeacon {
		dot11.DelayBeacon(m.bytes, now-m.handed)
	}
}

func (m *mpdu) exhausted() bool { return m.tried >= len(m.chain) }

// Transmit gives a node's radio a frame at Now. MPDUSink.Sent gets its outcome, in this
// call when it is refused.
func (c *Core) Transmit(node int, m MPDU) {
	s := c.stations[node]
	c.lastFrame++
	f, fault := c.mpduFrame(m)
	if fault == NotLost && s.queued() >= c.cfg.QueueFrames && f.mpdu.beacon == dot11.NoBeacon {
		fault = QueueFull
	}
	if fault != NotLost {
		if f.class != Management {
			c.refuse(s, c.lastFrame, f.ethernet, fault)
		}
		c.freeFrame(f)
		c.mpdus.Sent(node, c.now, Outcome{ID: m.ID, Refused: true})
		return
	}
	f.id = c.lastFrame
	if f.to == node {
		f.to = toNobody
	}
	if f.class != Management {
		s.count.Enqueued++
	}
	c.trace(Trace{At: c.now, Event: "enqueue", Node: node, Peer: f.to, Frame: f.id, Kind: "data"})
	switch f.mpdu.beacon {
	case dot11.CellBeacon:
		s.queue.PushFront(f)
	case dot11.OwnBeacon:
		s.holdBeacon(f)
		return
	case dot11.NoBeacon:
		s.push(f)
	}
	s.serveNext()
}

// mpduFrame takes an MPDU in, and says what is wrong with it.
func (c *Core) mpduFrame(m MPDU) (*frame, Cause) {
	f := c.takeFrame()
	f.mpdu = mpdu{bytes: append(f.mpdu.bytes[:0], m.Frame...), id: m.ID, chain: f.mpdu.chain[:0],
		handed: c.now}
	f.ethernet = f.ethernet[:0]
	f.class = Management
	if len(m.Frame) < dot11.ShortestMPDU || len(m.Frame) > dot11.LongestMPDU {
		return f, BadFrame
	}
	f.mpduBytes = len(m.Frame) + dot11.FCSBytes
	c.address(f, MAC(m.Frame[4:]))
	f.ethernet = dot11.AppendEthernet(f.ethernet, m.Frame)
	if len(f.ethernet) > 0 {
		f.class = classOf(f.ethernet)
	}
	f.mpdu.beacon = dot11.BeaconOf(m.Frame)
	if m.NoACK {
		f.to = toAll
	}
	for _, t := range m.Tries {
		mode, err := c.phy.ModeIndex(t.RateMbps)
		if err != nil {
			return f, BadFrame
		}
		for range t.Times {
			f.mpdu.chain = append(f.mpdu.chain, attempt{mode, t.RTS})
		}
	}
	if len(f.mpdu.chain) == 0 {
		return f, BadFrame
	}
	return f, NotLost
}

// Abandon ends all frames that are waiting or on the air, and tells their senders. The
// core is of no use afterwards.
func (c *Core) Abandon() {
	for _, s := range c.stations {
		if s.head != nil {
			c.mpdus.Sent(s.index, c.now, Outcome{ID: s.head.mpdu.id, Tried: s.head.mpdu.tried, Refused: true})
			s.head = nil
		}
		if s.beacon != nil {
			c.mpdus.Sent(s.index, c.now, Outcome{ID: s.beacon.mpdu.id, Refused: true})
			s.beacon = nil
		}
		for s.queue.Len() > 0 {
			c.mpdus.Sent(s.index, c.now, Outcome{ID: s.queue.Pop().mpdu.id, Refused: true})
		}
	}
}

// tell gives the outcome of the head frame to its sender's stack.
func (s *station) tell(f *frame, acked bool) {
	if !s.core.cfg.MPDUs {
		return
	}
	o := Outcome{ID: f.mpdu.id, Tried: f.mpdu.tried, ACK: acked}
	if acked {
		o.SignalDbm = propagation.RatioToDb(s.peers[f.to].powerMw)
	}
	s.core.mpdus.Sent(s.index, s.core.now, o)
}

// delayBeacon begins the random wait that goes before a beacon of an ad hoc cell,
// whose stations all have one due at the same time: up to twice the least contention
// window (IEEE 802.11-2020, 11.1.3.5).
func (s *station) delayBeacon() {
	s.slots, s.countFrom = s.rng.IntN(2*s.core.phy.CWMin+1), s.core.now
	s.scheduleAccess()
}

// heardBeacon cancels the own beacon that is waiting, when one of the same cell has
// been received (11.1.3.5).
func (s *station) heardBeacon(f *frame) {
	if f == nil || f.mpdu.beacon != dot11.CellBeacon {
		return
	}
	if h := s.head; h != nil && h.mpdu.beacon == dot11.CellBeacon && s.state == macContend &&
		dot11.SameCell(h.mpdu.bytes, f.mpdu.bytes) {
		s.accessGen++
		s.tell(h, false)
		s.finish()
		return
	}
	if s.queue.Len() > 0 {
		first := s.queue.At(0)
		if first.mpdu.beacon == dot11.CellBeacon && dot11.SameCell(first.mpdu.bytes, f.mpdu.bytes) {
			s.tell(s.queue.Pop(), false)
			s.core.freeFrame(first)
		}
	}
}

// holdBeacon keeps a beacon of the station's own until its time. The stacks here have one
// clock, and would all send in one instant. Cards begin at any time, and so do the beacon
// intervals of an access point or of a mesh's stations: each has its own place in the interval.
func (s *station) holdBeacon(f *frame) {
	if s.beacon != nil { // the stack is early, and this station nearly an interval late
		s.sendBeacon()
	}
	if s.beaconDelay == 0 {
		interval := max(dot11.BeaconInterval(f.mpdu.bytes), dot11.TimeUnit)
		s.beaconDelay = 1 + time.Duration(s.rng.Int64N(int64(interval)))
	}
	s.beacon = f
	s.beaconGen++
	s.core.events.Push(evBeacon, event{At: s.core.now + s.beaconDelay, Node: int32(s.index), Gen: s.beaconGen})
}

// sendBeacon puts the beacon that is due before all that waits (11.1.3.2).
func (s *station) sendBeacon() {
	s.queue.PushFront(s.beacon)
	s.beacon = nil
	s.serveNext()
}
