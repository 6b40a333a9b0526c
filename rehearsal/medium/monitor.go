package medium

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"
)

// FrameLoss is a lost data frame, one for each receiver that it was for. A
// broadcast is for those who can notice it: nodes out of its reach are in the
// counters only.
type FrameLoss struct {
	At   time.Duration
	Node int // that sent it, or could not
	Peer int // that should have had it; -1 when there is none
	// Flow is "src:port>dst:port/proto" of the IPv4 packet inside, without
	// ports for a later fragment and for protocols that have none; empty when
	// it is not IPv4.
	Flow string
	Seq  uint32 // TCP's sequence number, the IPv4 identification of others
	// Cause is what made the last attempt fail for a frame that was given up.
	Cause Cause
	// RetryLimit tells a unicast frame given up after all retries.
	RetryLimit bool

	Src, Dst [4]byte // IPv4 addresses, when Flow is set
}

// report tells the monitor of a loss, when there is one.
func (c *Core) report(node, peer int, ethernet []byte, why Cause, retryLimit bool) {
	if c.cfg.FrameLost == nil {
		return
	}
	loss := FrameLoss{At: c.now, Node: node, Peer: peer, Cause: why, RetryLimit: retryLimit}
	if ip, is := ipv4Of(ethernet); is {
		loss.Src, loss.Dst = [4]byte(ip[12:16]), [4]byte(ip[16:20])
		loss.Flow, loss.Seq = flowOf(ip)
	}
	c.cfg.FrameLost(loss)
}

// PacketLoss is the loss of an IPv4 packet that its node's kernel gave up before
// it was a frame: NoRoute, NoNeighbour. Of the packet its beginning is enough.
func PacketLoss(at time.Duration, node int, packet []byte, why Cause) FrameLoss {
	loss := FrameLoss{At: at, Node: node, Peer: -1, Cause: why}
	if isIPv4(packet) {
		loss.Src, loss.Dst = [4]byte(packet[12:16]), [4]byte(packet[16:20])
		loss.Flow, loss.Seq = flowOf(packet)
	}
	return loss
}

const (
	ipv4HeaderBytes = 20

	etherTypeIPv4 = 0x0800
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
)

// flowOf reads an IPv4 header (RFC 791) and the ports of TCP and UDP (RFC 9293,
// RFC 768). Whatever is not there is not told.
func flowOf(ip []byte) (flow string, seq uint32) {
	src, dst := netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
	seq = uint32(binary.BigEndian.Uint16(ip[4:6]))
	name := strconv.Itoa(int(ip[9]))
	switch ip[9] {
	case protoICMP:
		name = "icmp"
	case protoTCP:
		name = "tcp"
	case protoUDP:
		name = "udp"
	}
	laterFragment := binary.BigEndian.Uint16(ip[6:8])&0x1fff != 0
	body := ip[min(len(ip), 4*int(ip[0]&15)):]
	ports := ip[9] == protoTCP || ip[9] == protoUDP
	if !ports || laterFragment || len(body) < 8 {
		return src.String() + ">" + dst.String() + "/" + name, seq
	}
	if ip[9] == protoTCP {
		seq = binary.BigEndian.Uint32(body[4:8])
	}
	from := netip.AddrPortFrom(src, binary.BigEndian.Uint16(body[0:2]))
	to := netip.AddrPortFrom(dst, binary.BigEndian.Uint16(body[2:4]))
	return from.String() + ">" + to.String() + "/" + name, seq
}

// ipv4Of is the IPv4 packet in an Ethernet frame, if there is one.
func ipv4Of(ethernet []byte) ([]byte, bool) {
	if len(ethernet) < ethernetHeaderBytes || binary.BigEndian.Uint16(ethernet[12:14]) != etherTypeIPv4 {
		return nil, false
	}
	ip := ethernet[ethernetHeaderBytes:]
	return ip, isIPv4(ip)
}

// SourceOf is the source address of the IPv4 packet in an Ethernet frame, if
// there is one.
func SourceOf(ethernet []byte) (addr [4]byte, ok bool) {
	ip, ok := ipv4Of(ethernet)
	if ok {
		addr = [4]byte(ip[12:16])
	}
	return addr, ok
}

func isIPv4(ip []byte) bool {
	return len(ip) >= ipv4HeaderBytes && ip[0]>>4 == 4 && ip[0]&15 >= ipv4HeaderBytes/4
}
