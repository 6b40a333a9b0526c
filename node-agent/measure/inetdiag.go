package measure

import (
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"golang.org/x/sys/unix"
)

// Sizes and numbers of linux/inet_diag.h and linux/sock_diag.h.
const (
	sockDiagByFamily = 20
	socketIDBytes    = 48
	diagRequestBytes = 8 + socketIDBytes      // struct inet_diag_req_v2
	diagMessageBytes = 4 + socketIDBytes + 20 // struct inet_diag_msg
	diagInfo         = 2                      // INET_DIAG_INFO: struct tcp_info
	diagCong         = 4                      // INET_DIAG_CONG: the congestion control's name
	diagExtensions   = 1<<(diagInfo-1) | 1<<(diagCong-1)

	// liveStates leaves out LISTEN, TIME_WAIT, SYN_RECV and CLOSE: they are
	// of no connection that carries data, or have no tcp_info.
	liveStates = 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11
)

// stateNames are those of include/net/tcp_states.h, by number.
var stateNames = [...]string{
	1: "ESTABLISHED", 2: "SYN_SENT", 3: "SYN_RECV", 4: "FIN_WAIT1", 5: "FIN_WAIT2", 6: "TIME_WAIT",
	7: "CLOSE", 8: "CLOSE_WAIT", 9: "LAST_ACK", 10: "LISTEN", 11: "CLOSING", 12: "NEW_SYN_RECV",
}

func stateName(n uint8) string {
	if int(n) < len(stateNames) && stateNames[n] != "" {
		return stateNames[n]
	}
	return fmt.Sprintf("STATE_%d", n)
}

// diagMessage is one socket as the kernel tells of it. Its slices are valid
// as long as the datagram that they lie in.
type diagMessage struct {
	family, state         uint8
	localPort, remotePort uint16
	id                    []byte // struct inet_diag_sockid, to ask for this very socket again
	cookie                uint64
	info                  []byte // struct tcp_info, as long as this kernel has it
	congestion            []byte
}

// parseDiag reads one answer of inet_diag.
func parseDiag(payload []byte) (m diagMessage, ok bool) {
	if len(payload) < diagMessageBytes {
		return m, false
	}
	m.family, m.state = payload[0], payload[1]
	m.id = payload[4 : 4+socketIDBytes]
	m.localPort = uint16(m.id[0])<<8 | uint16(m.id[1])
	m.remotePort = uint16(m.id[2])<<8 | uint16(m.id[3])
	// Two 32-bit halves, the lower first (net/core/sock_diag.c).
	m.cookie = uint64(native.Uint32(m.id[40:])) | uint64(native.Uint32(m.id[44:]))<<32
	attributes(payload[diagMessageBytes:], func(kind uint16, v []byte) {
		switch kind {
		case diagInfo:
			m.info = v
		case diagCong:
			m.congestion = v
			for i, c := range v {
				if c == 0 {
					m.congestion = v[:i]
					break
				}
			}
		}
	})
	return m, true
}

// addresses are the socket's ends as addr:port.
func (m diagMessage) addresses() (local, remote string) {
	address := func(b []byte, port uint16) string {
		n := 4
		if m.family == unix.AF_INET6 {
			n = 16
		}
		ip, _ := netip.AddrFromSlice(b[:n]) // 4 and 16 bytes are always an address
		return netip.AddrPortFrom(ip.Unmap(), port).String()
	}
	return address(m.id[4:], m.localPort), address(m.id[20:], m.remotePort)
}

// Offsets in struct tcp_info (linux/tcp.h). It has only ever grown at its end.
const (
	offRTO           = 8
	offSndMSS        = 16
	offLost          = 32
	offRTT           = 68
	offRTTVar        = 72
	offSndSsthresh   = 76
	offSndCwnd       = 80
	offTotalRetrans  = 100
	offPacingRate    = 104
	offBytesAcked    = 120
	offBytesReceived = 128
	offDeliveryRate  = 160 // Linux 4.9
	offBytesSent     = 200 // Linux 4.19
	offBytesRetrans  = 208 // Linux 4.19

	minInfoBytes     = offBytesReceived + 8 // Linux 4.1; older kernels do not count what was received
	infiniteSsthresh = 0x7fffffff           // TCP_INFINITE_SSTHRESH, net/tcp.h
)

// sample is a TCPSample together with what its pointers point at, so that a
// tick costs one allocation.
type sample struct {
	wire.TCPSample
	stream            int
	ssthresh          uint32
	sent, retrans     uint64
	delivered, pacing float64
}

// fill decodes tcp_info. Fields that this kernel does not have stay absent.
// Rates are bits per second; the kernel's are bytes.
func (s *sample) fill(info []byte) error {
	if len(info) < minInfoBytes {
		return fmt.Errorf("the kernel's tcp_info has %d bytes, %d are needed to know what was received: Linux 4.1 or later is needed", len(info), minInfoBytes)
	}
	u32 := func(off int) uint32 { return native.Uint32(info[off:]) }
	u64 := func(off int) (uint64, bool) {
		if len(info) < off+8 {
			return 0, false
		}
		return native.Uint64(info[off:]), true
	}
	s.RTOUs, s.MSSBytes, s.Lost = u32(offRTO), u32(offSndMSS), u32(offLost)
	s.RTTUs, s.RTTVarUs = u32(offRTT), u32(offRTTVar)
	s.CwndSegments, s.Retransmits = u32(offSndCwnd), u32(offTotalRetrans)
	s.BytesAcked, _ = u64(offBytesAcked)
	s.BytesReceived, _ = u64(offBytesReceived)
	if s.ssthresh = u32(offSndSsthresh); s.ssthresh < infiniteSsthresh {
		s.SsthreshSegments = &s.ssthresh
	}
	var ok bool
	if s.sent, ok = u64(offBytesSent); ok {
		s.BytesSent = &s.sent
	}
	if s.retrans, ok = u64(offBytesRetrans); ok {
		s.BytesRetrans = &s.retrans
	}
	// 0: not measured yet.
	if rate, ok := u64(offDeliveryRate); ok && rate > 0 {
		s.delivered = float64(rate) * 8
		s.DeliveryRateBps = &s.delivered
	}
	// All ones: not paced. 32-bit kernels have 32 ones.
	if rate, ok := u64(offPacingRate); ok && rate > 0 && rate != ^uint64(0) && rate != 1<<32-1 {
		s.pacing = float64(rate) * 8
		s.PacingRateBps = &s.pacing
	}
	return nil
}
