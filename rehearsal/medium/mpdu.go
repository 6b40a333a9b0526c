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
	beacon beaconKind
	handed time.Duration // over by the stack
}

// beaconKind is whose beacon a frame is.
type beaconKind uint8

const (
	noBeacon   beaconKind = iota
	cellBeacon            // of an ad hoc cell, one for all stations
	ownBeacon             // of a station of a mesh, or of an access point
)

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
	if m.tried++; m.tried > 1 && len(m.bytes) > 1 {
		m.bytes[1] |= controlRetry
	}
	if m.beacon != noBeacon {
		at := m.bytes[macHeaderBytes:]
		binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)+uint64((now-m.handed).Microseconds()))
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
	meshControl  = 1 << 0 // of its second byte, in a mesh
	meshBytes    = 6      // of the Mesh Control field (9.2.4.7.3): flags, TTL, number
	meshMore     = 3      // of its flags: how many addresses follow

	// A beacon's fixed fields: timestamp, interval, capabilities (9.3.3.2).
	beaconInterval     = macHeaderBytes + 8
	beaconCapabilities = beaconInterval + 2
	capabilityIBSS     = 1 << 1
	timeUnit           = 1024 * time.Microsecond // of the interval
)

// shortestMPDU has a frame control, a duration and a receiver.
const shortestMPDU = 2 + 2 + addressBytes

// longestMPDU has four addresses in its header, and a mesh's control field with two more.
const longestMPDU = macHeaderBytes + addressBytes + qosBytes + meshBytes + 2*addressBytes + maxMSDUBytes

// Transmit gives a node's radio a frame at Now. MPDUSink.Sent gets its outcome, in this
// call when it is refused.
func (c *Core) Transmit(node int, m MPDU) {
	s := c.stations[node]
	c.lastFrame++
	f, fault := c.mpduFrame(m)
	if fault == NotLost && s.queued() >= c.cfg.QueueFrames && f.mpdu.beacon == noBeacon {
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
	switch f.mpdu.beacon {
	case cellBeacon:
		s.queue.pushFront(f)
	case ownBeacon:
		s.holdBeacon(f)
		return
	case noBeacon:
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
	if len(m.Frame) < shortestMPDU || len(m.Frame) > longestMPDU {
		return f, BadFrame
	}
	f.mpduBytes = len(m.Frame) + fcsBytes
	c.address(f, MAC(m.Frame[4:]))
	f.ethernet = appendEthernet(f.ethernet, m.Frame)
	if len(f.ethernet) > 0 {
		f.class = classOf(f.ethernet)
	}
	f.mpdu.beacon = beaconOf(m.Frame)
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
	if f == nil || f.mpdu.beacon != cellBeacon {
		return
	}
	if h := s.head; h != nil && h.mpdu.beacon == cellBeacon && s.state == macContend && sameCell(h, f) {
		s.accessGen++
		s.tell(h, false)
		s.finish()
		return
	}
	if s.queue.len > 0 {
		if first := s.queue.ring[s.queue.head]; first.mpdu.beacon == cellBeacon && sameCell(first, f) {
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

// beaconOf tells by its first bits and its capabilities whose beacon a frame is. The bit of an ad
// hoc cell is 0 in a mesh (9.4.1.4).
func beaconOf(frame []byte) beaconKind {
	switch {
	case len(frame) <= beaconCapabilities || frame[0] != subtypeBeacon<<4:
		return noBeacon
	case frame[beaconCapabilities]&capabilityIBSS != 0:
		return cellBeacon
	}
	return ownBeacon
}

// holdBeacon keeps a beacon of the station's own until its time. The stacks here have one
// clock, and would all send in one instant. Cards begin at any time, and so do the beacon
// intervals of an access point or of a mesh's stations: each has its own place in the interval.
func (s *station) holdBeacon(f *frame) {
	if s.beacon != nil { // the stack is early, and this station nearly an interval late
		s.sendBeacon()
	}
	if s.beaconDelay == 0 {
		interval := timeUnit * time.Duration(binary.LittleEndian.Uint16(f.mpdu.bytes[beaconInterval:]))
		s.beaconDelay = 1 + time.Duration(s.rng.Int64N(int64(max(interval, timeUnit))))
	}
	s.beacon = f
	s.beaconGen++
	s.core.events.push(event{at: s.core.now + s.beaconDelay, kind: evBeacon, node: int32(s.index), gen: s.beaconGen})
}

// sendBeacon puts the beacon that is due before all that waits (11.1.3.2).
func (s *station) sendBeacon() {
	s.queue.pushFront(s.beacon)
	s.beacon = nil
	s.serveNext()
}

// appendEthernet makes an Ethernet frame of a data frame (RFC 1042), for what looks
// into it; nothing of any other, and of one that is encrypted or aggregated. What a mesh
// carries for others has their addresses in its own control field (9.2.4.7.3).
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
		if len(frame) < header+qosBytes+meshBytes || frame[header]&aMSDU != 0 {
			return out
		}
		inMesh := frame[header+1]&meshControl != 0
		if header += qosBytes; inMesh {
			more := int(frame[header]&meshMore) * addressBytes
			header += meshBytes
			if len(frame) < header+more {
				return out
			}
			switch more {
			case addressBytes:
				src = frame[header:][:addressBytes]
			case 2 * addressBytes:
				dst, src = frame[header:][:addressBytes], frame[header+addressBytes:][:addressBytes]
			}
			header += more
		}
	}
	if len(frame) < header+llcSnapBytes || binary.BigEndian.Uint32(frame[header:]) != llcSnap {
		return out
	}
	return append(append(append(out, dst...), src...), frame[header+llcSnapBytes-2:]...)
}

// llcSnap begins the header before an Ethernet type.
const llcSnap = 0xaaaa0300
