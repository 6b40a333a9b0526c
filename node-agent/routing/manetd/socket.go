package manetd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// port is the UDP socket of one interface.
type port struct {
	iface   int
	address netip.Addr
	number  uint16
	conn    *net.UDPConn
	raw     syscall.RawConn
	ttl     int    // that the socket has; the loop's alone
	from    []byte // control message that sets the source address
}

var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// openPort opens the protocol's port on an interface. It is bound to the
// interface and not to its address, since it has to hear what is sent to all;
// a second daemon on the same interface and port is an error.
func openPort(ctx context.Context, iface int, i manet.Interface, number uint16) (*port, error) {
	var setting error
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(c.Control(func(fd uintptr) { setting = setOptions(int(fd), i.Name) }), setting)
	}}
	conn, err := config.ListenPacket(ctx, "udp4", fmt.Sprintf("0.0.0.0:%d", number))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("another routing daemon holds UDP port %d on %s: stop it first (%w)", number, i.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open UDP port %d on %s: %w", number, i.Name, err)
	}
	p := &port{iface: iface, address: i.Address, number: number, conn: conn.(*net.UDPConn),
		from: unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: i.Address.As4()})}
	if p.raw, err = p.conn.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("open UDP port %d on %s: %w", number, i.Name, err), conn.Close())
	}
	return p, nil
}

func setOptions(fd int, device string) error {
	for _, option := range []struct{ level, name, value int }{
		{unix.SOL_SOCKET, unix.SO_BROADCAST, 1},
		// A neighbour is on the link, whatever routes say of its address.
		{unix.SOL_SOCKET, unix.SO_DONTROUTE, 1},
		{unix.SOL_SOCKET, unix.SO_PRIORITY, 6}, // before data in the queue, as the kernel has "control" (TC_PRIO_INTERACTIVE)
		{unix.IPPROTO_IP, unix.IP_TOS, 0xc0},   // internetwork control: RFC 791, section 3.1
		{unix.IPPROTO_IP, unix.IP_RECVTTL, 1},
		{unix.IPPROTO_IP, unix.IP_PKTINFO, 1},
		{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT},
	} {
		if err := unix.SetsockoptInt(fd, option.level, option.name, option.value); err != nil {
			return fmt.Errorf("set socket option %d: %w", option.name, err)
		}
	}
	if err := unix.BindToDevice(fd, device); err != nil {
		return fmt.Errorf("bind socket to %q: %w", device, err)
	}
	return nil
}

// send sends from the interface's address with the TTL that is asked for.
func (p *port) send(s manet.Send) error {
	to := s.To
	if !to.IsValid() {
		to = limitedBroadcast
	}
	if ttl := min(max(s.TTL, 1), 255); ttl != p.ttl {
		if err := p.setTTL(ttl); err != nil {
			return err
		}
	}
	_, _, err := p.conn.WriteMsgUDPAddrPort(s.Data, p.from, netip.AddrPortFrom(to, p.number))
	if err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

func (p *port) setTTL(ttl int) error {
	var setting error
	if err := p.raw.Control(func(fd uintptr) {
		setting = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TTL, ttl)
	}); err != nil || setting != nil {
		return fmt.Errorf("set TTL to %d: %w", ttl, errors.Join(err, setting))
	}
	p.ttl = ttl
	return nil
}

// receive gives the next packet that another node sent.
func (p *port) receive(scratch, oob []byte) (manet.Packet, error) {
	for {
		n, oobn, _, from, err := p.conn.ReadMsgUDPAddrPort(scratch, oob)
		if err != nil {
			return manet.Packet{}, fmt.Errorf("receive: %w", err)
		}
		source := from.Addr().Unmap()
		if source == p.address { // what this node sent to all
			continue
		}
		packet := manet.Packet{Interface: p.iface, From: source, Data: append([]byte(nil), scratch[:n]...)}
		packet.TTL, packet.Unicast = headerFacts(oob[:oobn], p.address)
		return packet, nil
	}
}

// headerFacts reads the TTL that a packet came with and whether it was
// addressed to one node.
func headerFacts(oob []byte, own netip.Addr) (ttl int, unicast bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_TTL && len(m.Data) >= 4:
			ttl = int(binary.NativeEndian.Uint32(m.Data))
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			unicast = netip.AddrFrom4([4]byte(m.Data[8:12])) == own // ipi_addr: the header's destination
		}
	}
	return ttl, unicast
}
