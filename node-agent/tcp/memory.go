package tcp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// linux/tcp_metrics.h
const (
	memoryFamily  = "tcp_metrics"
	memoryVersion = 1
	memoryGet     = 1 // TCP_METRICS_CMD_GET
	memoryDel     = 2 // TCP_METRICS_CMD_DEL
	memoryIPv4    = 1 // TCP_METRICS_ATTR_ADDR_IPV4
	memoryIPv6    = 2 // TCP_METRICS_ATTR_ADDR_IPV6
)

// Forget has the kernel forget, in this network namespace, what it has learned of
// peers in a prefix: round trips, and how many duplicate ACKs are no loss. A new
// connection begins with that, for an hour and whatever tcp_no_metrics_save says
// (tcp_init_metrics in net/ipv4/tcp_metrics.c).
func Forget(peers netip.Prefix) error {
	c, err := genetlink.Dial(nil)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", memoryFamily, err)
	}
	defer c.Close() // nothing was written that could be lost
	family, err := c.GetFamily(memoryFamily)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", memoryFamily, err)
	}
	known, err := remembered(c, family.ID, peers)
	if err != nil {
		return err
	}
	for _, addr := range known {
		e := netlink.NewAttributeEncoder()
		e.Bytes(attributeOf(addr), addr.AsSlice())
		data, err := e.Encode()
		if err == nil {
			_, err = c.Execute(genetlink.Message{Header: genetlink.Header{Command: memoryDel, Version: memoryVersion},
				Data: data}, family.ID, netlink.Request|netlink.Acknowledge)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget earlier connections to %s: %w", addr, err)
		}
	}
	return nil
}

func attributeOf(addr netip.Addr) uint16 {
	if addr.Is4() {
		return memoryIPv4
	}
	return memoryIPv6
}

// remembered are the peers in a prefix of whom the kernel has learned something.
func remembered(c *genetlink.Conn, family uint16, peers netip.Prefix) (out []netip.Addr, err error) {
	messages, err := c.Execute(genetlink.Message{Header: genetlink.Header{Command: memoryGet, Version: memoryVersion}},
		family, netlink.Request|netlink.Dump)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", memoryFamily, err)
	}
	for _, m := range messages {
		d, err := netlink.NewAttributeDecoder(m.Data)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", memoryFamily, err)
		}
		for d.Next() {
			if d.Type() != memoryIPv4 && d.Type() != memoryIPv6 {
				continue
			}
			if addr, ok := netip.AddrFromSlice(d.Bytes()); ok && peers.Contains(addr) {
				out = append(out, addr)
			}
		}
		if err := d.Err(); err != nil {
			return nil, fmt.Errorf("list %s: %w", memoryFamily, err)
		}
	}
	return out, nil
}
