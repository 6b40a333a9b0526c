package manetd

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

const (
	ipv4HeaderBytes = 20                  // RFC 791, section 3.1, without options
	headerBytes     = ipv4HeaderBytes + 8 // and of UDP
	protocolTCP     = 6
	flagSYN         = 0x02
)

// endpoints reads the addresses of an IPv4 packet; ok is false for anything
// else, and for a header that is cut off.
func endpoints(packet []byte) (source, destination netip.Addr, ok bool) {
	if len(packet) < ipv4HeaderBytes || packet[0]>>4 != 4 || headerLength(packet) < ipv4HeaderBytes ||
		headerLength(packet) > len(packet) {
		return netip.Addr{}, netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20])), true
}

func headerLength(packet []byte) int { return int(packet[0]&0x0f) * 4 }

// establishedTCP tells a segment of a connection that stands from one that
// opens it, and from what is no TCP.
func establishedTCP(packet []byte) bool {
	if _, _, ok := endpoints(packet); !ok || packet[9] != protocolTCP {
		return false
	}
	segment := packet[headerLength(packet):]
	return len(segment) >= 14 && segment[13]&flagSYN == 0
}

// checksum is RFC 1071's over bytes whose own checksum field is 0.
func checksum(b []byte) uint16 { return checksumOn(0, b) }

// checksumOn goes on from what was added up before.
func checksumOn(sum uint32, b []byte) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// unreachable is the ICMP message "host unreachable" (RFC 792) about a packet,
// from an address to the packet's source, as a whole IPv4 packet.
func unreachable(packet []byte, from netip.Addr) []byte {
	source, _, ok := endpoints(packet)
	if !ok {
		return nil
	}
	quoted := packet[:min(len(packet), headerLength(packet)+8)]
	out := make([]byte, ipv4HeaderBytes+8+len(quoted))
	out[0], out[8], out[9] = 0x45, 64, 1
	binary.BigEndian.PutUint16(out[2:], uint16(len(out)))
	copy(out[12:16], from.AsSlice())
	copy(out[16:20], source.AsSlice())
	binary.BigEndian.PutUint16(out[10:], checksum(out[:ipv4HeaderBytes]))
	icmp := out[ipv4HeaderBytes:]
	icmp[0], icmp[1] = 3, 1 // destination unreachable: host
	copy(icmp[8:], quoted)
	binary.BigEndian.PutUint16(icmp[2:], checksum(icmp))
	return out
}

// guard recognises packets that come back to the daemon after it let them go
// along a route: the route went meanwhile, or the kernel never had it. They
// may wait again, but not for ever.
type guard struct {
	seen map[uint64]injected
	seed maphash.Seed
}

type injected struct {
	at    manet.Time
	times int
}

const (
	guardFor   = 5 * time.Second
	guardTimes = 3
	guardMax   = 4 * heldPackets
)

// key is a packet's own, whatever its TTL and checksum have become.
func (g *guard) key(packet []byte) uint64 {
	if g.seed == (maphash.Seed{}) {
		g.seed = maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(g.seed)
	_, _ = h.Write(packet[:8])
	_, _ = h.Write(packet[9:10])
	_, _ = h.Write(packet[12:])
	return h.Sum64()
}

// note remembers a packet that is let go.
func (g *guard) note(now manet.Time, packet []byte) {
	if len(g.seen) >= guardMax {
		for k, i := range g.seen {
			if now-i.at > guardFor {
				delete(g.seen, k)
			}
		}
		if len(g.seen) >= guardMax {
			clear(g.seen)
		}
	}
	k := g.key(packet)
	g.seen[k] = injected{at: now, times: g.seen[k].times + 1}
}

// admit reports whether a packet may wait for a route.
func (g *guard) admit(now manet.Time, packet []byte) bool {
	i, ok := g.seen[g.key(packet)]
	return !ok || now-i.at > guardFor || i.times < guardTimes
}
