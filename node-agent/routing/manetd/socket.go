package manetd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// readBytes is room for any packet of an interface.
const readBytes = 1 << 16

// port is the UDP socket of one interface.
type port struct {
	iface   int
	address netip.Addr
	number  uint16
	fd      int
	ttl     int // that the socket has
	toAll   *broadcaster

	out, in  unix.Msghdr
	to, from unix.RawSockaddrInet4
	outData  unix.Iovec
	source   []byte // control message that sets the source address
	scratch  []byte
	control  []byte
	inData   unix.Iovec
}

var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// openPort opens the protocol's port on an interface. It is bound to the
// interface and not to its address, since it has to hear what is sent to all;
// a second daemon on the same interface and port is an error.
func openPort(iface, index int, i manet.Interface, number uint16) (*port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open UDP socket: %w", err)
	}
	if err = setOptions(fd, i.Name); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(number)})
	}
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, errors.Join(fmt.Errorf("another routing daemon holds UDP port %d on %s: stop it first (%w)", number,
			i.Name, err), unix.Close(fd))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open UDP port %d on %s: %w", number, i.Name, err), unix.Close(fd))
	}
	toAll, err := openBroadcaster(index, i.MTU, i.Address, number)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	p := &port{iface: iface, address: i.Address, number: number, fd: fd, toAll: toAll,
		source:  unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: i.Address.As4()}),
		scratch: make([]byte, readBytes), control: make([]byte, 256)}
	p.wire()
	return p, nil
}

// wire joins the headers of messages to what they are about.
func (p *port) wire() {
	p.out = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&p.to)), Namelen: unix.SizeofSockaddrInet4, Iov: &p.outData,
		Control: &p.source[0]}
	p.out.SetIovlen(1)
	p.out.SetControllen(len(p.source))
	p.inData.Base = &p.scratch[0]
	p.inData.SetLen(len(p.scratch))
	p.in = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&p.from)), Iov: &p.inData, Control: &p.control[0]}
	p.in.SetIovlen(1)
}

func setOptions(fd int, device string) error {
	for _, option := range []struct{ level, name, value int }{
		{unix.SOL_SOCKET, unix.SO_BROADCAST, 1},
		// A neighbour is on the link, whatever routes say of its address.
		{unix.SOL_SOCKET, unix.SO_DONTROUTE, 1},
		{unix.SOL_SOCKET, unix.SO_PRIORITY, prioritySend},
		{unix.IPPROTO_IP, unix.IP_TOS, tosControl},
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
		if p.toAll.fits(s) {
			return p.toAll.send(s)
		}
		to = limitedBroadcast
	}
	if ttl := min(max(s.TTL, 1), 255); ttl != p.ttl {
		if err := unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_TTL, ttl); err != nil {
			return fmt.Errorf("set TTL to %d: %w", ttl, err)
		}
		p.ttl = ttl
	}
	if len(s.Data) == 0 {
		return fmt.Errorf("send to %s: no data", to)
	}
	p.to = inet4(to, p.number)
	p.outData.Base = &s.Data[0]
	p.outData.SetLen(len(s.Data))
	err := sendNow(p.fd, &p.out)
	p.outData.Base = nil
	if err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

// receive gives the next packet; ok is false where there is none, or one that
// this node itself sent.
func (p *port) receive() (packet manet.Packet, ok bool, err error) {
	p.in.Namelen = unix.SizeofSockaddrInet4
	p.in.SetControllen(len(p.control))
	n, err := receiveNow(p.fd, &p.in)
	if errors.Is(err, unix.EAGAIN) {
		return packet, false, nil
	}
	if err != nil {
		return packet, false, fmt.Errorf("receive: %w", err)
	}
	source := netip.AddrFrom4(p.from.Addr)
	if source == p.address { // what this node sent to all
		return packet, false, nil
	}
	packet = manet.Packet{Interface: p.iface, From: source, Data: append([]byte(nil), p.scratch[:n]...)}
	packet.TTL, packet.Unicast = headerFacts(p.control[:p.in.Controllen], p.address)
	return packet, true, nil
}

// headerFacts reads the TTL that a packet came with and whether it was
// addressed to one node.
func headerFacts(oob []byte, own netip.Addr) (ttl int, unicast bool) {
	for len(oob) > 0 {
		header, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return ttl, unicast
		}
		oob = rest
		switch {
		case header.Level == unix.SOL_IP && header.Type == unix.IP_TTL && len(data) >= 4:
			ttl = int(binary.NativeEndian.Uint32(data))
		case header.Level == unix.SOL_IP && header.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			unicast = netip.AddrFrom4([4]byte(data[8:12])) == own // ipi_addr: the header's destination
		}
	}
	return ttl, unicast
}

func (p *port) close() error { return errors.Join(p.toAll.close(), unix.Close(p.fd)) }
