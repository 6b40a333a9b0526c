package simulation

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Capture writes the control packets of a simulation as a pcap file of bare
// IPv4 packets, for a dissector. It takes OnPacket and OnTransmit for itself.
type Capture struct {
	w    io.Writer
	port uint16
	err  error
}

// linkTypeIPv4 is LINKTYPE_IPV4 of the pcap format: a packet begins with its
// IP header.
const linkTypeIPv4 = 228

// CaptureTo begins a file. port is the protocol's UDP port; a carrier, whose
// packets are whole, has none.
func (s *Sim) CaptureTo(w io.Writer, port uint16) (*Capture, error) {
	header := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	header = binary.LittleEndian.AppendUint16(header, 2) // version 2.4
	header = binary.LittleEndian.AppendUint16(header, 4)
	header = append(header, 0, 0, 0, 0, 0, 0, 0, 0) // time zone, accuracy
	header = binary.LittleEndian.AppendUint32(header, 1<<16)
	header = binary.LittleEndian.AppendUint32(header, linkTypeIPv4)
	if _, err := w.Write(header); err != nil {
		return nil, fmt.Errorf("write capture: %w", err)
	}
	c := &Capture{w: w, port: port}
	s.OnPacket = func(node int, a manet.Send) {
		from := s.ports[s.nodes[node].ports[a.Interface]].addr
		to := a.To
		if !to.IsValid() {
			to = netip.AddrFrom4([4]byte{255, 255, 255, 255})
		}
		c.packet(s.now, ipv4(from, to, byte(a.TTL), c.port, a.Data))
	}
	s.OnTransmit = func(_ int, a manet.Transmit) { c.packet(s.now, a.Packet) }
	return c, nil
}

// Err is the first error of writing.
func (c *Capture) Err() error { return c.err }

func (c *Capture) packet(now manet.Time, packet []byte) {
	if c.err != nil {
		return
	}
	record := binary.LittleEndian.AppendUint32(nil, uint32(now/1e9))
	record = binary.LittleEndian.AppendUint32(record, uint32(now%1e9/1e3))
	record = binary.LittleEndian.AppendUint32(record, uint32(len(packet)))
	record = binary.LittleEndian.AppendUint32(record, uint32(len(packet)))
	if _, err := c.w.Write(append(record, packet...)); err != nil {
		c.err = fmt.Errorf("write capture: %w", err)
	}
}

// ipv4 puts IP and UDP headers before a payload. UDP's checksum is left out,
// as IPv4 allows.
func ipv4(from, to netip.Addr, ttl byte, port uint16, payload []byte) []byte {
	b := []byte{0x45, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(headerBytes+len(payload)))
	b = append(b, 0, 0, 0, 0, ttl, 17, 0, 0)
	f, t := from.As4(), to.As4()
	b = append(append(b, f[:]...), t[:]...)
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
	b = binary.BigEndian.AppendUint16(b, port)
	b = binary.BigEndian.AppendUint16(b, port)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	return append(append(b, 0, 0), payload...)
}
