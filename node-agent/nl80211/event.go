package nl80211

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Event is something that the radio reported by itself about another station.
type Event struct {
	Index int // of the interface
	Kind  string
	MAC   string
}

// Kinds of events.
const (
	NewStation  = "new"  // heard for the first time
	GoneStation = "gone" // not heard for long, or it left
	Lost        = "lost" // many frames to it in a row were not acknowledged
)

// past is a deadline that wakes a reader.
var past = time.Unix(1, 0)

// Watch calls f with the events of all radios of this namespace until ctx
// ends, whose error it returns, or the connection fails. The connection is
// for nothing else then.
func (c *Conn) Watch(ctx context.Context, f func(Event)) error {
	if err := c.join("mlme"); err != nil {
		return err
	}
	return c.listen(ctx, "hear of the radio", func(m genetlink.Message) (bool, error) {
		if e, ok := event(m); ok {
			f(e)
		}
		return false, nil
	})
}

// listen calls f with what comes by itself until f is done or fails, ctx ends,
// whose error it returns, or the connection fails.
func (c *Conn) listen(ctx context.Context, doing string, f func(genetlink.Message) (done bool, err error)) error {
	defer context.AfterFunc(ctx, func() { _ = c.c.SetReadDeadline(past) })()
	for {
		messages, _, err := c.c.Receive()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		for _, m := range messages {
			if done, err := f(m); done || err != nil {
				return err
			}
		}
	}
}

func (c *Conn) join(group string) error {
	for _, g := range c.family.Groups {
		if g.Name == group {
			return c.c.JoinGroup(g.ID)
		}
	}
	return fmt.Errorf("nl80211 has no group %q", group)
}

// event reads a message; false for one that is about something else.
func event(m genetlink.Message) (Event, bool) {
	e := Event{}
	switch m.Header.Command {
	case unix.NL80211_CMD_NEW_STATION:
		e.Kind = NewStation
	case unix.NL80211_CMD_DEL_STATION:
		e.Kind = GoneStation
	case unix.NL80211_CMD_NOTIFY_CQM:
	default:
		return e, false
	}
	err := each(m.Data, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case unix.NL80211_ATTR_IFINDEX:
			e.Index = int(d.Uint32())
		case unix.NL80211_ATTR_MAC:
			e.MAC = net.HardwareAddr(d.Bytes()).String()
		case unix.NL80211_ATTR_CQM:
			nested(d, func(a *netlink.AttributeDecoder) {
				if a.Type() == unix.NL80211_ATTR_CQM_PKT_LOSS_EVENT {
					e.Kind = Lost
				}
			})
		}
	})
	return e, err == nil && e.Kind != "" && e.MAC != ""
}
