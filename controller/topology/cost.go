package topology

import (
	"maps"
	"slices"
)

// Cost is what routing sent inside the window, summed over the nodes. Rates are
// per node; absent where the daemon does not count.
type Cost struct {
	Nodes        int // that counted
	PacketsPerS  *float64
	BytesPerS    *float64      // of IP
	Messages     []MessageCost // by type, sorted
	RouteChanges int           // of all nodes' routes, or of the sender's where packets hold their route
	// on the air, ACKs too, by what they are for, summed over the nodes; nil where the radio does not tell
	FramesPerS  map[string]float64
	DiscoveryMs []float64 // of those that came to a route, sorted
	Failed      int       // discoveries that did not
	// from a daemon's start to the routes that arming waits for, at the node where it took longest
	ReadyS *float64
}

// dataHeader is what DSR's daemon calls the header that a data packet has with
// it. Its bytes are routing's; the packet is not.
const dataHeader = "SR"

// dataAmongRouting reports whether daemons counted data packets with a header of
// theirs as routing packets, too. One that does not says how many it sent; older
// ones say nothing, but the headers of one that does cannot outgrow its packets.
// A trial's daemons are alike.
func (m *Mesh) dataAmongRouting() bool {
	for _, counts := range m.counts {
		for i, c := range counts {
			if c.DataPacketsSent != nil {
				return false
			}
			if i == 0 || c.PacketsSent == nil || counts[i-1].PacketsSent == nil {
				continue
			}
			before := counts[i-1]
			headers := float64(c.Messages[dataHeader]) - float64(before.Messages[dataHeader])
			if headers > float64(*c.PacketsSent)-float64(*before.PacketsSent) {
				return false
			}
		}
	}
	return true
}

// MessageCost is one type of message.
type MessageCost struct {
	Kind                   string
	PerS, BytesPerS, Share float64 // Share of all bytes of messages
}

// Cost sums up.
func (m *Mesh) Cost() Cost {
	var c Cost
	packets, bytes, seconds := 0.0, 0.0, 0.0
	withData := m.dataAmongRouting()
	kinds, kindBytes := map[string]float64{}, map[string]float64{}
	for _, node := range m.Nodes {
		first, last := m.span(node)
		if first == nil || last.s <= first.s || last.PacketsSent == nil || first.PacketsSent == nil || last.BytesSent ==
			nil || first.BytesSent == nil {
			continue
		}
		c.Nodes++
		seconds += last.s - first.s
		packets += float64(*last.PacketsSent) - float64(*first.PacketsSent)
		if withData {
			packets -= float64(last.Messages[dataHeader]) - float64(first.Messages[dataHeader])
		}
		bytes += float64(*last.BytesSent) - float64(*first.BytesSent)
		for kind, n := range last.Messages {
			kinds[kind] += float64(n) - float64(first.Messages[kind])
			kindBytes[kind] += float64(last.MessageBytes[kind]) - float64(first.MessageBytes[kind])
		}
	}
	if seconds > 0 {
		p, b := packets/seconds, bytes/seconds
		c.PacketsPerS, c.BytesPerS = &p, &b
	}
	total := 0.0
	for _, b := range kindBytes {
		total += b
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if kinds[kind] > 0 {
			c.Messages = append(c.Messages, MessageCost{kind, kinds[kind] / seconds, kindBytes[kind] / seconds,
				kindBytes[kind] / max(total, 1)})
		}
	}
	c.FramesPerS = m.frames
	m.happened(&c)
	return c
}

// span is a node's newest count at the window's open and that at its close. Both
// are nil where either is missing or older than staleS, as nobody knows what the
// node sent since, or where the daemon began to count from 0 again between them.
func (m *Mesh) span(node string) (first, last *count) {
	at := func(s float64) *count {
		c := latest(m.counts[node], s, func(c count) float64 { return c.s })
		if c == nil || s-c.s > staleS {
			return nil
		}
		return c
	}
	first, last = at(0), at(m.Seconds)
	if first == nil || last == nil || fell(first.PacketsSent, last.PacketsSent) ||
		fell(first.BytesSent, last.BytesSent) {
		return nil, nil
	}
	return first, last
}

func fell(first, last *uint64) bool { return first != nil && last != nil && *last < *first }

func (m *Mesh) happened(c *Cost) {
	for _, list := range m.changes {
		for _, x := range list {
			if x.action != "present" && x.s >= 0 && x.s <= m.Seconds {
				c.RouteChanges++
			}
		}
	}
	for _, p := range m.ways {
		if p.S >= 0 && p.S <= m.Seconds {
			c.RouteChanges++
		}
	}
	for _, e := range m.events {
		switch {
		case e.s > m.Seconds:
		case e.name == "routing_ready_s" && e.value != nil:
			if c.ReadyS == nil || *e.value > *c.ReadyS {
				c.ReadyS = e.value
			}
		case e.name == "discovery_us" && e.value != nil:
			c.DiscoveryMs = append(c.DiscoveryMs, *e.value/1e3)
		case e.name == "discovery_failed":
			c.Failed++
		}
	}
	slices.Sort(c.DiscoveryMs)
}
