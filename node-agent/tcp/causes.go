package tcp

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// Cause is why a segment was lost, by the numbers of causes.h.
type Cause uint32

// The causes that the reference TCP tells apart.
const (
	CauseCongestion Cause = iota + 1
	CauseChannelError
	CauseDisconnection
	CauseRouteChange
)

// CauseOf maps a cause of the radio feedback's FrameLost to what the reference
// TCP tells apart, as Fu, Meng and Lu 2002 do in section 2: a full interface queue
// is congestion, bit errors are the channel's, a peer out of range is a
// disconnection. A frame that was lost to collisions has used up the MAC's
// retries, which is a route change, as a missing route or neighbour is. Once
// the node that lost a segment out of range, or the one that sent it, has another
// route there, the feedback tells that it was a route change instead. Every other is
// congestion.
func CauseOf(frameLost string) Cause {
	switch frameLost {
	case "channel_error":
		return CauseChannelError
	case "out_of_range":
		return CauseDisconnection
	case "collision", "no_route", "no_neighbour", "route_change":
		return CauseRouteChange
	}
	return CauseCongestion
}

// segment is struct segment of causes.h.
type segment struct {
	Seq      uint32
	FromPort uint16
	ToPort   uint16
}

// Lost tells the reference TCP why the segment was lost that begins at seq and
// goes from a port of this node to one of its peer.
func (c *Congestion) Lost(fromPort, toPort uint16, seq uint32, why Cause) error {
	if c.losses == nil {
		return fmt.Errorf("tell %q of a loss: it is not the reference TCP", c.Name)
	}
	if err := c.losses.Update(segment{Seq: seq, FromPort: fromPort, ToPort: toPort}, uint32(why),
		ebpf.UpdateAny); err != nil {
		return fmt.Errorf("tell %q of a loss: %w", c.Name, err)
	}
	return nil
}
