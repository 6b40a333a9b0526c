// Package ht is what 802.11n (HT) and 802.11ac (VHT) have beyond 802.11a and g, for one stream and
// the long guard interval: formats with their rates, the lengths of an A-MPDU, and the buffer in
// which a receiver puts frames in order. When they are on the air, and what is lost there, is package
// medium's. Sections are those of IEEE 802.11-2020.
package ht

import (
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/errorrate"
)

// Format is a PPDU's at one width of the channel.
type Format struct {
	WidthMHz   int
	Preamble   time.Duration // preamble and header of one stream
	HeaderBits float64       // of all of the header's fields, at rate 1/2 in BPSK
	MaxBytes   int           // of an A-MPDU
	// Delimited: a frame by itself goes as an A-MPDU of one, which is acknowledged as any frame.
	Delimited bool
	Rates     []Rate // ascending
	// Narrower are the formats of the part of the channel that a rate control may choose besides,
	// the narrowest first.
	Narrower []*Format
	// CarrierSenseDbm is the power of a frame's start from which on the channel is busy, and
	// EnergyDbm that of anything else.
	CarrierSenseDbm, EnergyDbm float64
}

// Rate is one modulation and coding scheme.
type Rate struct {
	Mbps          float64
	Modulation    errorrate.Modulation
	Code          errorrate.CodeRate
	BitsPerSymbol int     // N_DBPS
	ReferenceMbps float64 // the non-HT reference rate, which bounds that of an answer (10.6.11)
}

const (
	// Window is how many MPDUs a block acknowledgement is of (9.4.1.13, 9.3.1.8.2).
	Window = 64
	// MaxTime is the longest PPDU, aPPDUMaxTime of VHT (21.4.4): L-SIG tells no longer one, of
	// HT either (10.27.4).
	MaxTime = 5484 * time.Microsecond
	// DelimiterBytes go before each MPDU of an A-MPDU (9.7.1).
	DelimiterBytes = 4
	// AIFSN is how many slots follow SIFS in the wait of best effort (9.4.2.28). Its windows
	// of 15 and 1023 are the PHY's, and it may send one PPDU at a time (TXOP limit 0).
	AIFSN = 3
	// BlockACKBytes is a compressed block acknowledgement: 16 of header, 2 of control, 2 of
	// start and 8 of bitmap, and the FCS (9.3.1.8.2).
	BlockACKBytes = 32
	// RequestBytes is the request for one: header, control, start and FCS (9.3.1.7.2).
	RequestBytes = 24
)

// The preamble and header of one stream. HT-mixed: L-STF 8, L-LTF 8, L-SIG 4, HT-SIG 8, HT-STF 4 and
// HT-LTF 4 µs (19.3.9); L-SIG has 24 bits and HT-SIG 48. VHT: VHT-SIG-A in the place of
// HT-SIG, and VHT-SIG-B of 4 µs, of 26, 27 and 29 bits in 20, 40 and 80 MHz (21.3.8).
const (
	mixedPreamble = 36 * time.Microsecond
	mixedBits     = 24 + 48
	vhtPreamble   = 40 * time.Microsecond
	vhtBits       = 24 + 48
)

// HT20 is 802.11n in 20 MHz: MCS 0 to 7 (19.5). Its A-MPDU has an exponent of 3 (9.4.2.55.3).
// A frame's start counts from -82 dBm on, and anything from -62 dBm on (19.3.19.5.2).
func HT20() *Format {
	return &Format{WidthMHz: 20, Preamble: mixedPreamble, HeaderBits: mixedBits, MaxBytes: 65_535,
		CarrierSenseDbm: -82, EnergyDbm: -62,
		Rates: rates([]float64{6.5, 13, 19.5, 26, 39, 52, 58.5, 65}, 26, 52, 78, 104, 156, 208, 234, 260)}
}

// HT40 is 802.11n in 40 MHz: MCS 0 to 7 (19.5). A frame's start counts from -79 dBm on, and
// anything from -62 dBm on in each 20 MHz, which is -59 dBm in both (19.3.19.5.4).
func HT40() *Format {
	return &Format{WidthMHz: 40, Preamble: mixedPreamble, HeaderBits: mixedBits, MaxBytes: 65_535,
		CarrierSenseDbm: -79, EnergyDbm: -59, Narrower: []*Format{HT20()},
		Rates: rates([]float64{13.5, 27, 40.5, 54, 81, 108, 121.5, 135}, 54, 108, 162, 216, 324, 432, 486, 540)}
}

// VHT80 is 802.11ac in 80 MHz: MCS 0 to 9 of one stream (21.5). Its A-MPDU has an exponent of 7
// (9.4.2.157.2). A frame's start counts from -76 dBm on (21.3.18.5.3), and anything from -62 dBm on in
// each 20 MHz.
func VHT80() *Format {
	vht20 := &Format{WidthMHz: 20, Preamble: vhtPreamble, HeaderBits: vhtBits + 26, // without MCS 9
		Rates: rates([]float64{6.5, 13, 19.5, 26, 39, 52, 58.5, 65, 78}, 26, 52, 78, 104, 156, 208, 234, 260, 312)}
	vht40 := &Format{WidthMHz: 40, Preamble: vhtPreamble, HeaderBits: vhtBits + 27,
		Rates: rates([]float64{13.5, 27, 40.5, 54, 81, 108, 121.5, 135, 162, 180},
			54, 108, 162, 216, 324, 432, 486, 540, 648, 720)}
	return &Format{WidthMHz: 80, Preamble: vhtPreamble, HeaderBits: vhtBits + 29, MaxBytes: 1_048_575, Delimited: true,
		CarrierSenseDbm: -76, EnergyDbm: -56, Narrower: []*Format{vht20, vht40},
		Rates: rates([]float64{29.3, 58.5, 87.8, 117, 175.5, 234, 263.3, 292.5, 351, 390},
			117, 234, 351, 468, 702, 936, 1053, 1170, 1404, 1560)}
}

// rates are the schemes of MCS 0 on (19.5, 21.5): the same in all formats.
func rates(mbps []float64, bitsPerSymbol ...int) []Rate {
	schemes := []Rate{
		{Modulation: errorrate.BPSK, Code: errorrate.CodeHalf, ReferenceMbps: 6},
		{Modulation: errorrate.QPSK, Code: errorrate.CodeHalf, ReferenceMbps: 12},
		{Modulation: errorrate.QPSK, Code: errorrate.CodeThreeQuarters, ReferenceMbps: 18},
		{Modulation: errorrate.QAM16, Code: errorrate.CodeHalf, ReferenceMbps: 24},
		{Modulation: errorrate.QAM16, Code: errorrate.CodeThreeQuarters, ReferenceMbps: 36},
		{Modulation: errorrate.QAM64, Code: errorrate.CodeTwoThirds, ReferenceMbps: 48},
		{Modulation: errorrate.QAM64, Code: errorrate.CodeThreeQuarters, ReferenceMbps: 54},
		{Modulation: errorrate.QAM64, Code: errorrate.CodeFiveSixths, ReferenceMbps: 54},
		{Modulation: errorrate.QAM256, Code: errorrate.CodeThreeQuarters, ReferenceMbps: 54},
		{Modulation: errorrate.QAM256, Code: errorrate.CodeFiveSixths, ReferenceMbps: 54},
	}[:len(mbps)]
	for i := range schemes {
		schemes[i].Mbps, schemes[i].BitsPerSymbol = mbps[i], bitsPerSymbol[i]
	}
	return schemes
}

// Append is the length of an A-MPDU of so many bytes when one more MPDU is put behind: its
// subframes but the last are padded to four bytes (9.7.1).
func Append(bytes, mpduBytes int) int { return (bytes+3)/4*4 + DelimiterBytes + mpduBytes }
