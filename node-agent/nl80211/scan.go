package nl80211

import (
	"context"
	"errors"
	"fmt"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Scan has the radio of an interface, which must be up, listen and ask on one
// channel, and returns when it has, or when ctx ends. What was heard is then
// among BSSes. It needs privileges. The kernel refuses to have an access point that
// sends beacons do so, for its stations would not hear it meanwhile, unless it is forced.
func Scan(ctx context.Context, ifindex, mhz int, force bool) (err error) {
	events, err := Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, events.Close()) }()
	if err := events.join("scan"); err != nil {
		return err
	}
	c, err := Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	err = c.do(unix.NL80211_CMD_TRIGGER_SCAN, ifindex, func(e *netlink.AttributeEncoder) {
		if force {
			e.Uint32(unix.NL80211_ATTR_SCAN_FLAGS, unix.NL80211_SCAN_FLAG_AP)
		}
		e.Nested(unix.NL80211_ATTR_SCAN_FREQUENCIES, func(f *netlink.AttributeEncoder) error {
			f.Uint32(1, uint32(mhz))
			return nil
		})
		e.Nested(unix.NL80211_ATTR_SCAN_SSIDS, func(s *netlink.AttributeEncoder) error {
			s.Bytes(1, []byte{}) // whoever is there
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("scan %d MHz: %w", mhz, err)
	}
	return events.awaitScan(ctx, ifindex)
}

func (c *Conn) awaitScan(ctx context.Context, ifindex int) error {
	return c.listen(ctx, "wait for the scan", func(m genetlink.Message) (bool, error) {
		index := 0
		err := each(m.Data, func(d *netlink.AttributeDecoder) {
			if d.Type() == unix.NL80211_ATTR_IFINDEX {
				index = int(d.Uint32())
			}
		})
		switch {
		case err != nil || index != ifindex:
		case m.Header.Command == unix.NL80211_CMD_NEW_SCAN_RESULTS:
			return true, nil
		case m.Header.Command == unix.NL80211_CMD_SCAN_ABORTED:
			return false, errors.New("the driver gave the scan up")
		}
		return false, nil
	})
}
