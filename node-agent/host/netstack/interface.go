package netstack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// FindLink finds an interface that must be there.
func FindLink(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find interface %q: %w", name, err)
	}
	return link, nil
}

// LookForLink finds an interface; it is nil when there is none.
func LookForLink(name string) (netlink.Link, error) {
	link, err := FindLink(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil, nil
	}
	return link, err
}

// SameLink finds the very interface that an undo is about, whatever it is called meanwhile. It is nil when the
// interface vanished, or was made again under its name: then it bears nothing of what was changed. In the life of a
// network namespace the kernel gives an index once (dev_new_index in net/core/dev.c).
func SameLink(index int) (netlink.Link, error) {
	link, err := netlink.LinkByIndex(index)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find interface %d: %w", index, err)
	}
	return link, nil
}

// Vanished reports whether that interface is not there any more; 0 is none.
func Vanished(index int) bool {
	link, err := SameLink(index)
	return index != 0 && err == nil && link == nil
}

// Gone says that an interface has.
func Gone(name string) string { return fmt.Sprintf("interface %s is gone", name) }

// IsUp reports whether an interface is set up.
func IsUp(link netlink.Link) bool { return link.Attrs().Flags&net.FlagUp != 0 }

// SetLink sets what is given and differs.
func SetLink(link netlink.Link, up *bool, mtuBytes *int) error {
	name := link.Attrs().Name
	if mtuBytes != nil && *mtuBytes != link.Attrs().MTU {
		if err := netlink.LinkSetMTU(link, *mtuBytes); err != nil {
			return fmt.Errorf("set mtu of %q to %d: %w", name, *mtuBytes, err)
		}
	}
	if up == nil || *up == IsUp(link) {
		return nil
	}
	set, word := netlink.LinkSetDown, "down"
	if *up {
		set, word = netlink.LinkSetUp, "up"
	}
	if err := set(link); err != nil {
		return fmt.Errorf("set %q %s: %w", name, word, err)
	}
	return nil
}

// InterfaceState is what setting an interface down, or its IPv6 off, loses.
type InterfaceState struct {
	Name      string   `json:"name"`
	Index     int      `json:"index"`
	Up        *bool    `json:"up,omitempty"` // Absent: not touched
	MTUBytes  *int     `json:"mtu_bytes,omitempty"`
	Addresses [][]byte `json:"addresses,omitempty"` // the kernel's own messages
	Routes    [][]byte `json:"routes,omitempty"`
}

// FindInterface finds an interface that must be there, and reads it.
func FindInterface(name string) (netlink.Link, InterfaceState, error) {
	link, err := FindLink(name)
	if err != nil {
		return nil, InterfaceState{}, err
	}
	state, err := ReadInterface(link)
	return link, state, err
}

// ReadInterface reads what an interface loses when it, or its IPv6, goes down.
func ReadInterface(link netlink.Link) (InterfaceState, error) {
	s := InterfaceState{Name: link.Attrs().Name, Index: link.Attrs().Index}
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
	s.Routes, err = RoutesWhere(func(r RouteMessage) bool {
		lasts := !r.made() || r.Head.Protocol == unix.RTPROT_KERNEL && bare[r.Head.Family]
		return r.Through(s.Index) && r.Table() != unix.RT_TABLE_LOCAL && lasts
	})
	if err != nil {
		return s, fmt.Errorf("list routes of %q: %w", s.Name, err)
	}
	return s, nil
}

// keepsAddress tells the addresses of an interface that somebody gave it from
// temporary ones (RFC 8981), which the kernel makes again.
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

// Prefixes are its addresses, each with the length of its prefix.
func (s *InterfaceState) Prefixes() (out []netip.Prefix) {
	for _, m := range s.Addresses {
		attrs, err := attributes(m, unix.SizeofIfAddrmsg)
		if err != nil {
			continue
		}
		local := attribute(attrs, unix.IFA_LOCAL)
		if local == nil { // IPv6 has it at the other end of a line only
			local = attribute(attrs, unix.IFA_ADDRESS)
		}
		if addr, ok := netip.AddrFromSlice(local); ok {
			out = append(out, netip.PrefixFrom(addr, int(m[1])))
		}
	}
	return out
}

// Void reports whether the interface has vanished.
func (s *InterfaceState) Void() bool { return s != nil && Vanished(s.Index) }

// Revert puts back what is missing. note tells that the interface has gone.
func (s *InterfaceState) Revert() (note string, err error) {
	if s == nil {
		return "", nil
	}
	link, err := SameLink(s.Index)
	if err != nil || link == nil {
		return Gone(s.Name), err
	}
	if err := SetLink(link, s.Up, s.MTUBytes); err != nil {
		return "", err
	}
	var errs []error
	for _, m := range s.Addresses {
		if err := SendMessage(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m); err != nil {
			errs = append(errs, fmt.Errorf("put an address back on %q: %w", s.Name, err))
		}
	}
	if IsUp(link) || (s.Up != nil && *s.Up) {
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
			if err := SendMessage(unix.RTM_NEWROUTE, flags, m); err != nil {
				failed, errs = append(failed, m), append(errs, err)
			}
		}
		if len(failed) == 0 || len(failed) == len(messages) {
			return errors.Join(errs...)
		}
		messages = failed
	}
}
