package measure

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Offsets in struct tcp_info (linux/tcp.h). It has only ever grown at its end.
const (
	offCAState       = 1
	offRetransmits   = 2
	offRTO           = 8
	offSndMSS        = 16
	offUnacked       = 24
	offSacked        = 28
	offLost          = 32
	offRTT           = 68
	offRTTVar        = 72
	offSndSsthresh   = 76
	offSndCwnd       = 80
	offReordering    = 88
	offTotalRetrans  = 100
	offPacingRate    = 104
	offBytesAcked    = 120
	offBytesReceived = 128
	offMinRTT        = 148 // Linux 4.6
	offDataSegsIn    = 152 // Linux 4.6
	offDataSegsOut   = 156 // Linux 4.6
	offDeliveryRate  = 160 // Linux 4.9
	offBytesSent     = 200 // Linux 4.19
	offBytesRetrans  = 208 // Linux 4.19
	offDSACKs        = 216 // Linux 4.19
	offReordSeen     = 220 // Linux 4.19
	offOutOfOrder    = 224 // Linux 5.4
	offTotalRTO      = 240 // Linux 6.7; 16 bits

	minInfoBytes     = offBytesReceived + 8 // Linux 4.1; older kernels do not count what was received
	infiniteSsthresh = 0x7fffffff           // TCP_INFINITE_SSTHRESH, net/tcp.h; every other value is told as it is
	noMinRTT         = ^uint32(0)           // tcp_min_rtt before the first round trip
)

// caStates are those of enum tcp_ca_state (linux/tcp.h), by number.
var caStates = [...]string{"open", "disorder", "cwr", "recovery", "loss"}

// sample is a TCPSample together with what its pointers point at, so that a
// tick costs one allocation.
type sample struct {
	wire.TCPSample
	stream            int
	unread, unacked   uint32 // as the socket's queues are
	ssthresh          uint32
	sent, retrans     uint64
	delivered, pacing float64
	more              [11]uint32
}

// fill decodes tcp_info. Fields that this kernel does not have stay absent.
// Rates are bits per second; the kernel's are bytes.
func (s *sample) fill(info []byte) error {
	if len(info) < minInfoBytes {
		return fmt.Errorf("the kernel's tcp_info has %d bytes, %d are needed to know what was received: Linux 4.1 or "+
			"later is needed", len(info), minInfoBytes)
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
	if s.ssthresh = u32(offSndSsthresh); s.ssthresh != infiniteSsthresh {
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
	// All ones: there is none yet. 32-bit kernels have 32 ones.
	if rate, ok := u64(offPacingRate); ok && rate > 0 && rate != ^uint64(0) && rate != 1<<32-1 {
		s.pacing = float64(rate) * 8
		s.PacingRateBps = &s.pacing
	}
	s.fillMore(info)
	return nil
}

// fillMore decodes what says how the sender is doing.
func (s *sample) fillMore(info []byte) {
	if n := int(info[offCAState]); n < len(caStates) {
		s.CongestionState = caStates[n]
	}
	s.more[0] = uint32(info[offRetransmits])
	s.RTOsInARow = &s.more[0]
	for i, f := range [...]struct {
		off  int
		into **uint32
	}{
		{offUnacked, &s.Unacked}, {offSacked, &s.Sacked}, {offReordering, &s.Reordering},
		{offDataSegsIn, &s.DataSegsIn},
		{offDataSegsOut, &s.DataSegsOut}, {offDSACKs, &s.DSACKs}, {offReordSeen, &s.ReorderSeen},
		{offOutOfOrder, &s.OutOfOrder},
	} {
		if len(info) >= f.off+4 {
			s.more[1+i] = native.Uint32(info[f.off:])
			*f.into = &s.more[1+i]
		}
	}
	if len(info) >= offMinRTT+4 {
		if s.more[10] = native.Uint32(info[offMinRTT:]); s.more[10] != noMinRTT {
			s.MinRTTUs = &s.more[10]
		}
	}
	if len(info) >= offTotalRTO+2 {
		s.more[9] = uint32(native.Uint16(info[offTotalRTO:]))
		s.RTOsTotal = &s.more[9]
	}
}
