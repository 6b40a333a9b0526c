// Package pcapng reads and writes packet captures in the pcapng format
// (draft-ietf-opsawg-pcapng), as a stream and in constant memory: what an agent
// captures, the controller analyses and tshark opens. It knows blocks, times
// and lengths; what is in a packet is its user's to say.
package pcapng

import (
	"encoding/binary"
	"fmt"
)

// Types of blocks, section 4 of the draft.
const (
	blockSection   = 0x0A0D0D0A // 4.1
	blockInterface = 1          // 4.2
	blockSimple    = 3          // 4.4
	blockStats     = 5          // 4.6
	blockEnhanced  = 6          // 4.3
)

// Options: 3.5 for all blocks, 4.1 to 4.6 for each.
const (
	optEnd         = 0
	optComment     = 1
	optApplication = 4  // shb_userappl
	optName        = 2  // if_name
	optResolution  = 9  // if_tsresol
	optFilter      = 11 // if_filter
	optTimeOffset  = 14 // if_tsoffset
	optFlags       = 2  // epb_flags
	optReceived    = 4  // isb_ifrecv
	optIfDropped   = 5  // isb_ifdrop
	optOSDropped   = 7  // isb_osdrop
)

const (
	byteOrderMagic = 0x1A2B3C4D
	nanoseconds    = 9 // if_tsresol: 10^-9 s
	minBlockBytes  = 12
	maxBlockBytes  = 16 << 20 // tshark takes as much
	maxInterfaces  = 1024     // of a section; what more would need is memory
	microPerSecond = 1_000_000
	nanosPerSecond = 1_000_000_000
)

// LinkEthernet is the link type of frames with an Ethernet header
// (LINKTYPE_ETHERNET).
const LinkEthernet = 1

// LinkIP is the link type of packets that begin with their IP header
// (LINKTYPE_RAW).
const LinkIP = 101

// Direction is where a frame went, epb_flags (section 4.3.1).
type Direction uint32

// The directions.
const (
	Unknown  Direction = 0
	Inbound  Direction = 1
	Outbound Direction = 2
)

// Interface describes what packets were captured on.
type Interface struct {
	Name      string
	Filter    string // in words
	LinkType  uint16
	SnapBytes int // most that is kept of a packet; 0: no limit
}

// Packet is one captured packet. Data is the reader's until the next call.
type Packet struct {
	Interface int       // its number within the capture
	LinkType  uint16    // of that interface
	TimeNs    int64     // since 1970; 0 where the block has none
	WireBytes int       // its length on the wire
	Direction Direction // where it is known
	Data      []byte    // its first bytes
}

// Counts are what a capture says of itself at its end.
type Counts struct {
	Received *uint64 // by the interface
	Dropped  *uint64 // for lack of room
}

// CorruptError says where a capture is not one.
type CorruptError struct {
	Offset int64 // of the block, in bytes from the beginning
	Packet int   // packets read before it
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt pcapng: block at byte %d, after %d packets: %s", e.Offset, e.Packet, e.Reason)
}

// pad is n rounded up to 32 bits.
func pad(n int) int { return (n + 3) &^ 3 }

// options reads the options of a block one by one; bad
// says what is wrong with them.
func options(order binary.ByteOrder, b []byte, f func(code uint16, value []byte)) (bad string) {
	for len(b) >= 4 {
		code, n := order.Uint16(b), int(order.Uint16(b[2:]))
		if code == optEnd {
			return ""
		}
		if len(b) < 4+n {
			return fmt.Sprintf("option %d of %d bytes does not fit", code, n)
		}
		f(code, b[4:4+n])
		b = b[min(len(b), 4+pad(n)):]
	}
	return ""
}
