package olsr

import "fieldmesh.dev/fieldmesh/protocols/manet"

// The constants of olsrd's "etx_ff", which is what others on the air expect.
const (
	etxSlots      = 32   // seconds that are looked back on
	etxFirstSlots = 4    // seconds that a new link looks back on, growing
	etxAssumed    = 3    // packets that a second without any counts as lost, at first
	etxMinimum    = 25   // 255ths (0.1): a worse link is not used
	costOne       = 1024 // the cost of a perfect link, and of a hop without ETX
	costBroken    = 1 << 22
)

// etx measures the share of a neighbour's packets that arrive, second by
// second, from the gaps in their sequence numbers and from overdue HELLOs.
type etx struct {
	received, total [etxSlots]uint16
	slots, active   int
	lastSeq         uint16
	overdue         manet.Time // when the next HELLO counts as missed; 0 is not yet known
	missed          int

	current Quality // as of the last second
	used    Quality // what routes and others see; follows current in steps
}

func newETX(seq uint16) etx {
	e := etx{slots: etxFirstSlots, lastSeq: seq - 1}
	for i := range e.total {
		e.total[i] = etxAssumed
	}
	return e
}

// packet counts a packet that arrived and those before it that did not.
func (e *etx) packet(seq uint16) {
	gap := seq - e.lastSeq
	if gap == 0 {
		return // the same packet again
	}
	if gap > 256 { // late, or the neighbour started again
		gap = 1
	}
	e.received[e.active]++
	e.total[e.active] += gap
	e.lastSeq = seq
	e.missed = 0
}

// second closes one second of counting and reports whether what is used
// changed.
func (e *etx) second(now, htime manet.Time) bool {
	if e.overdue != 0 && now >= e.overdue {
		e.missed++
		e.overdue += max(htime, minHTime)
	}
	e.slots = min(e.slots+1, etxSlots)
	received, total := 0, 0
	for i := range e.slots {
		received += int(e.received[i])
		total += int(e.total[i])
	}
	if e.missed > 1 { // silence weighs as the part of the window that it lasts
		silent := min(e.missed*int(htime.Seconds()), etxSlots)
		received = received * (etxSlots - silent) / etxSlots
	}
	e.current.LQ = 0
	if total > 0 {
		e.current.LQ = uint8(min(255*received/total, 255))
	}
	e.active = (e.active + 1) % etxSlots
	e.received[e.active], e.total[e.active] = 0, 0
	if !notable(e.used.LQ, e.current.LQ) && !notable(e.used.NLQ, e.current.NLQ) {
		return false
	}
	e.used = e.current
	return true
}

// notable reports whether a quality changed by more than a tenth or became
// full.
func notable(from, to uint8) bool {
	if to == 255 {
		return from != 255
	}
	return max(from, to)-min(from, to) > from/10
}

func (e *etx) cost() uint32 { return cost(e.used) }

// cost is a link's ETX, 1/(LQ·NLQ), in 1024ths.
func cost(q Quality) uint32 {
	if q.LQ < etxMinimum || q.NLQ < etxMinimum {
		return costBroken
	}
	return max(costOne*255*255/(uint32(q.LQ)*uint32(q.NLQ)), 1)
}

// stable and instable are the rules of section 14.3.
func (n *Node) stable(l *link) {
	l.quality = (1-n.config.HystScaling)*l.quality + n.config.HystScaling
	n.judge(l)
}

func (n *Node) instable(l *link) {
	l.quality *= 1 - n.config.HystScaling
	n.judge(l)
}

func (n *Node) judge(l *link) {
	switch {
	case l.quality > n.config.HystHigh && l.pending:
		l.pending, l.failed = false, 0
		n.linksChanged = true
	case l.quality < n.config.HystLow && !l.pending:
		l.pending = true
		l.failed = min(l.time, n.Now+n.config.NeighborHold)
		n.linksChanged = true
	}
}

// countPacket feeds hysteresis and ETX with a packet's sequence number.
func (n *Node) countPacket(l *link, seq uint16) {
	if n.config.ETX {
		l.etx.packet(seq)
	}
	if !n.config.Hysteresis {
		return
	}
	if l.seqKnown {
		gap := seq - l.lastSeq
		if gap == 0 {
			return
		}
		for i := uint16(1); i < gap && gap <= 64; i++ { // a wider gap is a restart or a late packet
			n.instable(l)
		}
	}
	l.lastSeq, l.seqKnown = seq, true
	l.silence = n.Now + l.htime*3/2
	n.stable(l)
}
