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
	memoryValues  = 6 // TCP_METRICS_ATTR_VALS
	memoryReorder = 5 // TCP_METRIC_REORDERING + 1
)

// memory is what the kernel has learned of a peer.
type memory struct {
	peer      netip.Addr
	reordered bool // how many duplicate ACKs are no loss
}

// Forget has the kernel forget, in this network namespace, what it has learned of
// peers in a prefix: round trips, and how many duplicate ACKs are no loss. A new
// connection begins with that, for an hour and whatever tcp_no_metrics_save says
// (tcp_init_metrics in net/ipv4/tcp_metrics.c). Root of a container may not, as
// it is not the machine's root (GENL_ADMIN_PERM there): of the peers that it returns the
// kernel goes on remembering round trips. With tcp_no_metrics_save a connection has no
// more from these than its first RTO.
func Forget(peers netip.Prefix) (kept []netip.Addr, err error) {
	c, err := genetlink.Dial(nil)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", memoryFamily, err)
	}
	defer c.Close() // nothing was written that could be lost
	family, err := c.GetFamily(memoryFamily)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", memoryFamily, err)
	}
	known, err := remembered(c, family.ID, peers)
	if err != nil {
		return nil, err
	}
	for _, m := range known {
		e := netlink.NewAttributeEncoder()
		e.Bytes(attributeOf(m.peer), m.peer.AsSlice())
		data, err := e.Encode()
		if err == nil {
			_, err = c.Execute(genetlink.Message{Header: genetlink.Header{Command: memoryDel, Version: memoryVersion},
				Data: data}, family.ID, netlink.Request|netlink.Acknowledge)
		}
		switch {
		case err == nil, errors.Is(err, unix.ESRCH), errors.Is(err, os.ErrNotExist):
		case errors.Is(err, unix.EPERM) && !m.reordered:
			kept = append(kept, m.peer)
		case errors.Is(err, unix.EPERM):
			return nil, fmt.Errorf("forget how connections to %s were reordered: %w; run outside of this container: "+
				"ip tcp_metrics flush", m.peer, err)
		default:
			return nil, fmt.Errorf("forget earlier connections to %s: %w", m.peer, err)
		}
	}
	return kept, nil
}

func attributeOf(addr netip.Addr) uint16 {
	if addr.Is4() {
		return memoryIPv4
	}
	return memoryIPv6
}

// remembered is what the kernel has learned of peers in a prefix.
func remembered(c *genetlink.Conn, family uint16, peers netip.Prefix) (out []memory, err error) {
	messages, err := c.Execute(genetlink.Message{Header: genetlink.Header{Command: memoryGet, Version: memoryVersion}},
		family, netlink.Request|netlink.Dump)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", memoryFamily, err)
	}
	for _, message := range messages {
		d, err := netlink.NewAttributeDecoder(message.Data)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", memoryFamily, err)
		}
		var m memory
		for d.Next() {
			switch d.Type() {
			case memoryIPv4, memoryIPv6:
				m.peer, _ = netip.AddrFromSlice(d.Bytes()) // in no prefix, if it is none
			case memoryValues:
				d.Nested(func(values *netlink.AttributeDecoder) error {
					for values.Next() {
						m.reordered = m.reordered || values.Type() == memoryReorder
					}
					return nil
				})
			}
		}
		if err := d.Err(); err != nil {
			return nil, fmt.Errorf("list %s: %w", memoryFamily, err)
		}
		if peers.Contains(m.peer) {
			out = append(out, m)
		}
	}
	return out, nil
}
