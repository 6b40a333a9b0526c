package medium

import (
	"bytes"
	"encoding/binary"
	"time"

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
	beacon bool // of an ad hoc cell
}

// attempt is one transmission that a frame may have.
type attempt struct {
	mode int
	rts  bool
}

// next is the attempt that is due.
func (m *mpdu) next() attempt { return m.chain[min(m.tried, len(m.chain)-1)] }

// try counts an attempt. All but the first tell so.
func (m *mpdu) try() {
	if m.tried++; m.tried > 1 && len(m.bytes) > 1 {
		m.bytes[1] |= controlRetry
	}
}

func (m *mpdu) exhausted() bool { return m.tried >= len(m.chain) }

// The frame control field and what follows it (IEEE 802.11-2020, 9.2.4.1), as far as
// it is looked at here.
const (
	controlToDS      = 1 << 0 // of its second byte
	controlFromDS    = 1 << 1
	controlRetry     = 1 << 3
	controlProtected = 1 << 6

	typeData      = 2
	subtypeBeacon = 8
	subtypeNull   = 1 << 2 // of data frames: without data
	subtypeQoS    = 1 << 3

	addressBytes = 6
	qosBytes     = 2
	aMSDU        = 1 << 7 // of the QoS control field

	// A beacon's fixed fields: timestamp, interval, capabilities (9.3.3.2).
	beaconCapabilities = macHeaderBytes + 8 + 2
	capabilityIBSS     = 1 << 1
)

// shortestMPDU has a frame control, a duration and a receiver.
const shortestMPDU = 2 + 2 + addressBytes

// Transmit gives a node's radio a frame at Now. MPDUSink.Sent gets its outcome, in this
// call when it is refused.
func (c *Core) Transmit(node int, m MPDU) {
	s := c.stations[node]
	c.lastFrame++
	f, fault := c.mpduFrame(m)
	if fault == NotLost && s.queued() >= c.cfg.QueueFrames && !f.mpdu.beacon {
		fault = QueueFull
	}
	if fault != NotLost {
		if f.class != Management {
			c.refuse(s, f.ethernet, fault)
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
	if f.mpdu.beacon {
		s.queue.pushFront(f)
	} else {
		s.push(f)
	}
	s.serveNext()
}

// mpduFrame takes an MPDU in, and says what is wrong with it.
func (c *Core) mpduFrame(m MPDU) (*frame, Cause) {
	f := c.takeFrame()
	f.mpdu = mpdu{bytes: append(f.mpdu.bytes[:0], m.Frame...), id: m.ID, chain: f.mpdu.chain[:0]}
	f.ethernet = f.ethernet[:0]
	f.class = Management
	if len(m.Frame) < shortestMPDU || len(m.Frame) > macHeaderBytes+maxMSDUBytes+addressBytes+qosBytes {
		return f, BadFrame
	}
	f.mpduBytes = len(m.Frame) + fcsBytes
	c.address(f, MAC(m.Frame[4:]))
	f.ethernet = appendEthernet(f.ethernet, m.Frame)
	if len(f.ethernet) > 0 {
		f.class = classOf(f.ethernet)
	}
	f.mpdu.beacon = isIBSSBeacon(m.Frame)
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
		for s.queue.len > 0 {
			c.mpdus.Sent(s.index, c.now, Outcome{ID: s.queue.pop().mpdu.id, Refused: true})
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
	if f == nil || !f.mpdu.beacon {
		return
	}
	if h := s.head; h != nil && h.mpdu.beacon && s.state == macContend && sameCell(h, f) {
		s.accessGen++
		s.tell(h, false)
		s.finish()
		return
	}
	if s.queue.len > 0 {
		if first := s.queue.ring[s.queue.head]; first.mpdu.beacon && sameCell(first, f) {
			s.tell(s.queue.pop(), false)
			s.core.freeFrame(first)
		}
	}
}

// sameCell reports whether two beacons have one BSSID, their third address.
func sameCell(a, b *frame) bool {
	const at = 4 + 2*addressBytes
	return bytes.Equal(a.mpdu.bytes[at:at+addressBytes], b.mpdu.bytes[at:at+addressBytes])
}

func isIBSSBeacon(frame []byte) bool {
	return len(frame) > beaconCapabilities && frame[0] == subtypeBeacon<<4 &&
		frame[beaconCapabilities]&capabilityIBSS != 0
}

// appendEthernet makes an Ethernet frame of a data frame (RFC 1042), for what looks
// into it; nothing of any other, and of one that is encrypted or aggregated.
func appendEthernet(out, frame []byte) []byte {
	kind, subtype, flags := frame[0]>>2&3, frame[0]>>4, frame[1]
	if kind != typeData || subtype&subtypeNull != 0 || flags&controlProtected != 0 || len(frame) < macHeaderBytes {
		return out
	}
	address := func(n int) []byte { return frame[4+n*addressBytes:][:addressBytes] }
	dst, src, header := address(0), address(1), macHeaderBytes
	if flags&controlToDS != 0 {
		dst = frame[16:22]
	}
	switch {
	case flags&controlFromDS != 0 && flags&controlToDS != 0:
		header += addressBytes
		if len(frame) < header {
			return out
		}
		src = frame[macHeaderBytes:header]
	case flags&controlFromDS != 0:
		src = frame[16:22]
	}
	if subtype&subtypeQoS != 0 {
		if len(frame) < header+qosBytes || frame[header]&aMSDU != 0 {
			return out
		}
		header += qosBytes
	}
	if len(frame) < header+llcSnapBytes || binary.BigEndian.Uint32(frame[header:]) != llcSnap {
		return out
	}
	return append(append(append(out, dst...), src...), frame[header+llcSnapBytes-2:]...)
}

// llcSnap begins the header before an Ethernet type.
const llcSnap = 0xaaaa0300
