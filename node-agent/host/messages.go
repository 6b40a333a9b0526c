package host

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

// redump repeats a dump while the kernel says that its tables changed under
// it.
func redump[T any](dump func() ([]T, error)) ([]T, error) {
	var out []T
	var err error
	for range 10 {
		if out, err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	return nil, err
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// dumpMessages reads all messages of a kind; head is the kind's zero header.
func dumpMessages(request, kind uint16, head nl.NetlinkRequestData) ([][]byte, error) {
	return redump(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(int(request), unix.NLM_F_DUMP)
		req.AddData(head)
		return req.Execute(unix.NETLINK_ROUTE, kind)
	})
}

// sendMessage gives a kept message back; an object that is there is no error.
func sendMessage(kind uint16, flags int, message []byte) error {
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

// readInterface reads what an interface loses when it, or its IPv6, goes down.
func readInterface(link netlink.Link) (interfaceState, error) {
	s := interfaceState{Name: link.Attrs().Name, Index: link.Attrs().Index}
	addresses, err := dumpMessages(unix.RTM_GETADDR, unix.RTM_NEWADDR, nl.NewIfAddrmsg(unix.AF_UNSPEC))
	if err != nil {
		return s, fmt.Errorf("list addresses of %q: %w", s.Name, err)
	}
	bare := map[uint8]bool{} // families with addresses whose prefix routes the kernel does not make
	for _, m := range addresses {
		if keepsAddress(m, s.Index) {
			s.Addresses = append(s.Addresses, m)
			bare[m[0]] = bare[m[0]] || withoutRoute(m)
		}
	}
	s.Routes, err = routesWhere(func(r routeMessage) bool {
		lasts := !r.made() || r.head.Protocol == unix.RTPROT_KERNEL && bare[r.head.Family]
		return r.through(s.Index) && r.table() != unix.RT_TABLE_LOCAL && lasts
	})
	if err != nil {
		return s, fmt.Errorf("list routes of %q: %w", s.Name, err)
	}
	return s, nil
}

// keepsAddress tells the addresses of an interface that somebody gave it from
// temporary ones (RFC 8981), which the kernel makes anew.
func keepsAddress(message []byte, index int) bool {
	if len(message) < unix.SizeofIfAddrmsg {
		return false
	}
	family, flags := message[0], message[2]
	if family == unix.AF_INET6 && flags&unix.IFA_F_TEMPORARY != 0 {
		return false
	}
	return binary.NativeEndian.Uint32(message[4:8]) == uint32(index)
}

// withoutRoute tells an address that came without the route to its prefix:
// NetworkManager adds that route itself, marked as the kernel's own.
func withoutRoute(message []byte) bool {
	attrs, err := attributes(message, unix.SizeofIfAddrmsg)
	return err == nil && attributeUint32(attrs, unix.IFA_FLAGS)&unix.IFA_F_NOPREFIXROUTE != 0
}

func revertInterface(u undo) (string, error) {
	if u.Interface == nil {
		return "", nil
	}
	s := *u.Interface
	link, err := sameLink(s.Name, s.Index)
	if err != nil || link == nil {
		return gone(s.Name), err
	}
	if err := setLink(link, s.Up, s.MTUBytes); err != nil {
		return "", err
	}
	var errs []error
	for _, m := range s.Addresses {
		if err := sendMessage(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m); err != nil {
			errs = append(errs, fmt.Errorf("put an address back on %q: %w", s.Name, err))
		}
	}
	if link.Attrs().Flags&net.FlagUp != 0 || (s.Up != nil && *s.Up) {
		if err := putRoutesBack(s.Routes); err != nil {
			errs = append(errs, fmt.Errorf("put routes back on %q: %w", s.Name, err))
		}
	}
	return "", errors.Join(errs...)
}

// putRoutesBack adds those that are missing. A route may need another one for
// its gateway, so what failed is tried again while anything succeeds.
func putRoutesBack(messages [][]byte) error {
	for {
		var failed [][]byte
		var errs []error
		for _, m := range messages {
			flags := unix.NLM_F_CREATE | unix.NLM_F_APPEND
			if m[0] == unix.AF_INET6 {
				flags = unix.NLM_F_CREATE | unix.NLM_F_EXCL // appending would make a multipath route
			}
			if err := sendMessage(unix.RTM_NEWROUTE, flags, m); err != nil {
				failed, errs = append(failed, m), append(errs, err)
			}
		}
		if len(failed) == 0 || len(failed) == len(messages) {
			return errors.Join(errs...)
		}
		messages = failed
	}
}
