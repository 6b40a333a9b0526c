package manetd

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// broadcaster sends to all neighbours by a packet socket. By a UDP socket, the
// kernel would hand each such packet to this node too, and wake the daemon to
// read what it has just sent; IP_MULTICAST_LOOP is not for broadcasts.
type broadcaster struct {
	fd     int
	mtu    int
	id     uint16
	packet []byte // with headers; used again
	data   unix.Iovec
	link   unix.RawSockaddrLinklayer
	header unix.Msghdr
}

const (
	tosControl   = 0xc0 // internetwork control: RFC 791, section 3.1
	prioritySend = 6    // before data in the queue, as the kernel has "control" (TC_PRIO_INTERACTIVE)
	protocolUDP  = 17
)

func openBroadcaster(index, mtu int, from netip.Addr, port uint16) (*broadcaster, error) {
	// 0: it receives nothing
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open packet socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, prioritySend); err != nil {
		_ = unix.Close(fd) // nothing was sent by it
		return nil, fmt.Errorf("set priority of packet socket: %w", err)
	}
	b := &broadcaster{fd: fd, mtu: mtu, packet: make([]byte, headerBytes, max(mtu, headerBytes))}
	b.link = unix.RawSockaddrLinklayer{Family: unix.AF_PACKET, Protocol: networkOrder(unix.ETH_P_IP),
		Ifindex: int32(index), Halen: 6,
		Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	b.header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&b.link)), Namelen: unix.SizeofSockaddrLinklayer, Iov: &b.data}
	b.header.SetIovlen(1)
	p := b.packet
	p[0], p[1], p[9] = 0x45, tosControl, protocolUDP
	copy(p[12:16], from.AsSlice())
	copy(p[16:20], limitedBroadcast.AsSlice())
	binary.BigEndian.PutUint16(p[20:], port)
	binary.BigEndian.PutUint16(p[22:], port)
	return b, nil
}

// fits reports whether a packet needs no fragments, which the kernel makes of
// those of UDP sockets only.
func (b *broadcaster) fits(s manet.Send) bool { return len(s.Data)+headerBytes <= b.mtu }

func (b *broadcaster) send(s manet.Send) error {
	p := append(b.packet[:headerBytes], s.Data...)
	b.id++
	binary.BigEndian.PutUint16(p[4:], b.id)
	p[8] = byte(min(max(s.TTL, 1), 255))
	seal(p)
	sealUDP(p)
	b.packet = p
	b.data.Base = &p[0]
	b.data.SetLen(len(p))
	if err := sendNow(b.fd, &b.header); err != nil {
		return fmt.Errorf("send to all: %w", err)
	}
	return nil
}

// sealUDP writes length and checksum of the UDP header of a packet without IP
// options (RFC 768).
func sealUDP(p []byte) {
	udp := p[ipv4HeaderBytes:]
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	udp[6], udp[7] = 0, 0
	pseudo := uint32(protocolUDP) + uint32(len(udp))
	for i := 12; i < 20; i += 2 { // both addresses
		pseudo += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	sum := checksumOn(pseudo, udp)
	if sum == 0 {
		sum = 0xffff // 0 would mean that there is none
	}
	binary.BigEndian.PutUint16(udp[6:], sum)
}

func (b *broadcaster) close() error { return unix.Close(b.fd) }
