package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Rules and routes may lead a program's packets elsewhere than to an interface, as Android leads those of apps to its
// default network. The kernel lets any program have a socket of its own keep to an interface (SO_BINDTODEVICE, from
// Linux 5.7 on), and a datagram leave by one (IP_PKTINFO).

// MayBind says why this program may not bind sockets to an interface; nil: it may.
func MayBind() error {
	return withSocket(func(fd int) error { return unix.BindToDevice(fd, "lo") })
}

// Bind binds the sockets of net.Dialer and net.ListenConfig to an interface, as their Control; empty: it leaves them.
func Bind(iface string) func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) (err error) {
		if iface == "" {
			return nil
		}
		failed := raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), iface) })
		if err != nil {
			err = fmt.Errorf("bind to interface %q: %w", iface, err)
		}
		return errors.Join(failed, err)
	}
}

// BindToNeighbours binds the sockets of a net.Dialer to an interface where who is called is in one of its networks.
// Where this program may not bind sockets, the routes have them.
func BindToNeighbours(iface string) func(network, address string, raw syscall.RawConn) error {
	return func(network, address string, raw syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err == nil && isNeighbour(iface, to.Addr().Unmap()) {
			_ = Bind(iface)(network, address, raw)
		}
		return nil
	}
}

// UDP is a socket for IPv4 whose datagrams to neighbours on an interface leave by it; others go as the routes have it.
type UDP struct {
	*net.UDPConn
	iface string // empty: all go as the routes have it
}

// ListenUDP opens one.
func ListenUDP(ctx context.Context, at netip.AddrPort, iface string) (UDP, error) {
	var lc net.ListenConfig
	c, err := lc.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return UDP{}, err
	}
	return UDP{c.(*net.UDPConn), iface}, nil
}

// WriteTo is that of net.PacketConn.
func (u UDP) WriteTo(b []byte, to net.Addr) (int, error) {
	udp, ok := to.(*net.UDPAddr)
	if !ok {
		return u.UDPConn.WriteTo(b, to)
	}
	return u.WriteToUDPAddrPort(b, udp.AddrPort())
}

// WriteToUDP is that of net.UDPConn.
func (u UDP) WriteToUDP(b []byte, to *net.UDPAddr) (int, error) {
	return u.WriteToUDPAddrPort(b, to.AddrPort())
}

// WriteToUDPAddrPort is that of net.UDPConn.
func (u UDP) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if u.iface == "" || !isNeighbour(u.iface, to.Addr()) {
		return u.UDPConn.WriteToUDPAddrPort(b, to)
	}
	index, err := indexOf(u.iface)
	if err != nil {
		return 0, err
	}
	// By itself IP_PKTINFO would have the route choose the source (ip_cmsg_send).
	own := u.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	n, _, err := u.WriteMsgUDPAddrPort(b, unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: index, Spec_dst: own.As4()}), to)
	return n, err
}

// isNeighbour reports whether an interface has an address in the network of another.
func isNeighbour(iface string, other netip.Addr) bool {
	for _, own := range addresses() {
		if own.name != iface {
			continue
		}
		if bits, has := Has(iface, own.address); has && netip.PrefixFrom(own.address, bits).Contains(other) {
			return true
		}
	}
	return false
}

func indexOf(iface string) (index int32, err error) {
	err = ask(iface, func(fd int, ifr *unix.Ifreq) error {
		err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr)
		index = int32(ifr.Uint32())
		return err
	})
	return index, err
}
