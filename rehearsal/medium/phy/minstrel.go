package phy

import (
	"math/bits"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/ratecontrol"
)

// MinstrelTimes are those of the modes of unicast data. The kernel has a group's times in 16 bits, of as many
// nanoseconds as the slowest needs (GROUP_SHIFT): only by that do the two rates of 58.5 Mbit/s differ.
func (p *PHY) MinstrelTimes() (out ratecontrol.MinstrelTimes) {
	out.Overhead, out.OverheadRTS = p.Overheads()
	out.Frame = make([]time.Duration, len(p.Modes)-p.FirstData)
	for _, modes := range p.Groups {
		group := make([]int, len(modes))
		for place, mode := range modes {
			i := mode - p.FirstData
			group[place] = i
			out.Frame[i] = p.SampleTime(&p.Modes[mode], ratecontrol.MinstrelBytes, ratecontrol.MinstrelFrames)
		}
		out.Groups = append(out.Groups, group)
	}
	// The kernel has the rates above 1 Mbit/s of 802.11b with the short preamble too, 4 places on. Where no
	// frame has that preamble they are sampled in vain (minstrel_ht_get_rate).
	if saves := p.savedByShortPreamble(); saves > 0 {
		long := out.Groups[0]
		out.Groups[0] = append(long, -1)
		for _, mode := range long[1:] {
			out.Unsent = append(out.Unsent, len(out.Frame))
			out.Groups[0] = append(out.Groups[0], len(out.Frame))
			out.Frame = append(out.Frame, out.Frame[mode]-saves)
		}
	}
	for _, modes := range out.Groups {
		step := time.Duration(1) << max(0, bits.Len64(uint64(out.Frame[modes[0]]))-16)
		for _, mode := range modes {
			if mode >= 0 {
				out.Frame[mode] = out.Frame[mode].Truncate(step)
			}
		}
	}
	return out
}

// SampleTime is a frame's time by which minstrel_ht compares rates: with SIFS, or its share of an
// A-MPDU of so many (CCK_DURATION, OFDM_DURATION and MCS_DURATION of rc80211_minstrel_ht.c, which
// leave out a part of the last symbol and the service bits).
func (p *PHY) SampleTime(m *Mode, bytes, frames int) time.Duration {
	if m.format != nil {
		symbols := (8*bytes*frames + m.bitsPerSymbol - 1) / m.bitsPerSymbol
		return time.Duration(symbols) * 4 * time.Microsecond / time.Duration(frames)
	}
	took, bits := p.SIFS+p.PLCP(m)+p.ExtensionOf(m), 8*(bytes+fcsBytes)
	if m.bitsPerSymbol > 0 {
		return took + time.Duration((10*bits+ofdmServiceAndTailBits)/(10*m.bitsPerSymbol))*4*time.Microsecond
	}
	return took + time.Duration(float64(bits)/m.RateMbps)*time.Microsecond
}

// savedByShortPreamble is by how much a frame of 802.11b would be shorter with the short preamble; 0: the
// standard has none, or frames have it.
func (p *PHY) savedByShortPreamble() time.Duration {
	if p.headerMode > 0 || p.Modes[0].bitsPerSymbol > 0 {
		return 0
	}
	return longPLCP - shortPLCP
}

// Overheads are what minstrel_ht adds to a frame's time, without and with RTS: an ACK at the
// lowest rate, with the short preamble, and an empty frame before an A-MPDU
// (minstrel_ht_update_caps, ieee80211_frame_duration).
func (p *PHY) Overheads() (plain, rts time.Duration) {
	low := &p.Modes[0]
	answer := p.SIFS + p.Airtime(low, ACKBytes)
	if low.bitsPerSymbol == 0 {
		answer += shortPLCP - p.PLCP(low)
	}
	plain = answer
	if p.HT != nil {
		plain += p.SIFS + p.Airtime(low, fcsBytes)
	}
	return plain, plain + 2*answer
}
