// Package netstack reads and sets the network stack of this machine's kernel:
// interfaces, their addresses and what their drivers merge, routes, sysctls. It
// keeps what was there in the kernel's own words, to be given back. It decides
// nothing and remembers nothing: node-agent/host does, and alone uses it.
package netstack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What was there before is kept as the kernel's own netlink messages and given
// back as such, so that no attribute is lost that this package does not know.

// Redump repeats a dump while the kernel says that its tables changed under
// it.
func Redump[T any](dump func() ([]T, error)) ([]T, error) {
	var out []T
	var err error
	for range 10 {
		if out, err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	return nil, err
}

// IPNet is a prefix as the netlink library takes it.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// dumpMessages reads all messages of a kind; head is the kind's zero header.
func dumpMessages(request, kind uint16, head nl.NetlinkRequestData) ([][]byte, error) {
	return Redump(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(int(request), unix.NLM_F_DUMP)
		req.AddData(head)
		return req.Execute(unix.NETLINK_ROUTE, kind)
	})
}

// SendMessage gives a kept message back; an object that is there is no error.
func SendMessage(kind uint16, flags int, message []byte) error {
	req := nl.NewNetlinkRequest(int(kind), unix.NLM_F_ACK|flags)
	req.AddRawData(message)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// attributes of a message after a header of n bytes.
func attributes(message []byte, n int) ([]syscall.NetlinkRouteAttr, error) {
	if len(message) < n {
		return nil, fmt.Errorf("netlink message of %d bytes is shorter than its header", len(message))
	}
	return nl.ParseRouteAttr(message[n:])
}

func attribute(attrs []syscall.NetlinkRouteAttr, kind uint16) []byte {
	for _, a := range attrs {
		if a.Attr.Type&nl.NLA_TYPE_MASK == kind {
			return a.Value
		}
	}
	return nil
}

func attributeUint32(attrs []syscall.NetlinkRouteAttr, kind uint16) uint32 {
	if v := attribute(attrs, kind); len(v) >= 4 {
		return binary.NativeEndian.Uint32(v)
	}
	return 0
}
