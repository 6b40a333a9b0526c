package measure

import (
	"fmt"
	"net/netip"

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

// States that have a meaning here.
const (
	stateEstablished = 1
	stateClose       = 7
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

// diagMessage is one socket as the kernel reports it. Its slices are valid as
// long as the datagram that they lie in.
type diagMessage struct {
	family, state uint8
	id            []byte // struct inet_diag_sockid, to ask for this very socket again
	cookie        uint64
	unread        uint32 // bytes that came, for the program to take
	unacked       uint32 // bytes that the program gave, and the peer has not acknowledged
	info          []byte // struct tcp_info, as long as this kernel has it
	congestion    []byte
}

// parseDiag reads one answer of inet_diag.
func parseDiag(payload []byte) (m diagMessage, ok bool) {
	if len(payload) < diagMessageBytes {
		return m, false
	}
	m.family, m.state = payload[0], payload[1]
	m.id = payload[4 : 4+socketIDBytes]
	// Two 32-bit halves, the lower first (net/core/sock_diag.c).
	m.cookie = uint64(native.Uint32(m.id[40:])) | uint64(native.Uint32(m.id[44:]))<<32
	const queues = 4 + socketIDBytes + 4 // after idiag_expires
	m.unread, m.unacked = native.Uint32(payload[queues:]), native.Uint32(payload[queues+4:])
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

// local is the socket's own address and port.
func (m diagMessage) local() netip.AddrPort { return m.end(m.id[4:], m.id[0:]) }

// remote is the other end's.
func (m diagMessage) remote() netip.AddrPort { return m.end(m.id[20:], m.id[2:]) }

func (m diagMessage) end(address, port []byte) netip.AddrPort {
	n := 4
	if m.family == unix.AF_INET6 {
		n = 16
	}
	ip, _ := netip.AddrFromSlice(address[:n]) // 4 and 16 bytes are always an address
	return netip.AddrPortFrom(ip.Unmap(), uint16(port[0])<<8|uint16(port[1]))
}
