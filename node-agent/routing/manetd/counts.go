package manetd

import (
	"maps"
	"net/netip"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Counts are what the daemon did since it began. Bytes of packets are those of
// IP; those of messages are the protocol's own.
type Counts struct {
	PacketsSent     int64            `json:"packets_sent"`      // without data
	DataPacketsSent int64            `json:"data_packets_sent"` // of a carrier: data with its header
	BytesSent       int64            `json:"bytes_sent"`        // of packets without data, and of a carrier's headers before data
	PacketsReceived int64            `json:"packets_received"`
	BytesReceived   int64            `json:"bytes_received"`
	Messages        map[string]int64 `json:"messages_sent"`      // by kind
	MessageBytes    map[string]int64 `json:"message_bytes_sent"` // by kind
	Forwarded       int64            `json:"messages_forwarded"` // of those sent, on behalf of others

	RouteChanges int64            `json:"route_changes"`
	Caught       int64            `json:"caught"`    // data packets for which the kernel had no route
	Released     int64            `json:"released"`  // of those, let go along a route
	Delivered    int64            `json:"delivered"` // handed to this node's kernel by a carrier
	Dropped      map[string]int64 `json:"dropped"`   // data packets, by reason: the protocol's word, or the daemon's
	HeldMax      int              `json:"held_max"`  // packets
	Errors       map[string]int64 `json:"errors"`    // what the kernel did not do
	LastError    string           `json:"last_error,omitempty"`
}

func newCounts() Counts {
	return Counts{Messages: map[string]int64{}, MessageBytes: map[string]int64{}, Dropped: map[string]int64{},
		Errors: map[string]int64{}}
}

// sent counts what was sent for routing; whole says that there was nothing else
// in its packet.
func (c *Counts) sent(messages []manet.Message, bytes int, whole bool) {
	if whole {
		c.PacketsSent++
	} else {
		c.DataPacketsSent++
	}
	c.BytesSent += int64(bytes)
	for _, m := range messages {
		c.Messages[m.Kind]++
		c.MessageBytes[m.Kind] += int64(m.Bytes)
		if m.Forwarded {
			c.Forwarded++
		}
	}
}

func (c *Counts) dropped(reason string, packets int) {
	if packets > 0 {
		c.Dropped[reason] += int64(packets)
	}
}

// copied is for a reader on another goroutine.
func (c *Counts) copied() Counts {
	out := *c
	out.Messages, out.MessageBytes = maps.Clone(c.Messages), maps.Clone(c.MessageBytes)
	out.Dropped, out.Errors = maps.Clone(c.Dropped), maps.Clone(c.Errors)
	return out
}

func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func routeNotice(action string, r manet.SetRoute) *RouteNotice {
	n := &RouteNotice{Action: action, Destination: r.Destination.String(), Cause: r.Cause}
	for _, hop := range r.Next {
		n.NextHops = append(n.NextHops, hop.Addr.String())
	}
	if r.Hops > 0 {
		n.Hops = &r.Hops
	}
	n.Metric = &r.Metric
	return n
}
