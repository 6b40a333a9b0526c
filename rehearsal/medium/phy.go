package medium

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/errorrate"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// Sizes of IEEE 802.11-2020 clause 9.3 and of the LLC/SNAP header that replaces
// the Ethernet header's type (RFC 1042).
const (
	ethernetHeaderBytes = 14
	macHeaderBytes      = 24
	fcsBytes            = 4
	llcSnapBytes        = 8
	ackBytes            = 14
	ctsBytes            = 14
	rtsBytes            = 20
	maxMSDUBytes        = 2304 // 9.2.4.7.1
)

// mpduBytes is the length on the air of an Ethernet frame.
func mpduBytes(ethernetBytes int) int {
	return ethernetBytes - ethernetHeaderBytes + llcSnapBytes + macHeaderBytes + fcsBytes
}

// Mode is one rate of a PHY.
type Mode struct {
	RateMbps float64

	modulation    errorrate.Modulation
	code          errorrate.CodeRate
	bitsPerSymbol int // data bits an OFDM symbol (N_DBPS); 0 for DSSS and CCK
	basic         bool
	curve         errorrate.Curve
	loss          float64                      // ratio by which the receiver is worse than its noise figure says
	response      int                          // index of the mode of an ACK or CTS to a frame of this one
	last          struct{ snr, error float64 } // what the curve was asked last
	// guest is what comes before a frame of DSSS or CCK in a PHY of OFDM; nil: the PHY's.
	guest *guestHeader
}

// guestHeader is a preamble and header that is not the PHY's.
type guestHeader struct {
	mode    Mode // that the header is modulated with
	lockSNR float64
}

// phy is what a standard fixes.
type phy struct {
	standard    string
	ns2         bool   // the radio is ns-2's
	modes       []Mode // ascending
	slot, sifs  time.Duration
	difs, eifs  time.Duration
	preamble    time.Duration // preamble and PLCP header
	longPLCP    time.Duration // the same at 1 Mbit/s, which has no short one
	extension   time.Duration // ERP-OFDM's signal extension
	cwMin       int
	cwMax       int
	bandwidthHz float64
	header      Mode // what the PLCP header is modulated with
	headerMode  int
	headerBits  float64
	lockSNR     float64       // least SNR (ratio) at which a receiver notices a frame of the PHY
	leastLock   float64       // of any frame
	detection   time.Duration // in which a receiver finds a preamble
}

// newPHY makes the PHY of a standard with IEEE 802.11-2020's characteristics:
// clauses 15 and 16 (DSSS, HR/DSSS), 17 (OFDM), 18 (ERP).
func newPHY(cfg Config) (*phy, error) {
	p := &phy{standard: cfg.Standard, ns2: cfg.Radio == RadioNS2WaveLAN, cwMax: 1023}
	switch cfg.Standard {
	case Standard80211b:
		p.setDSSS(cfg.ShortPreamble)
	case Standard80211a:
		p.setOFDM()
		p.slot, p.sifs = 9*time.Microsecond, 16*time.Microsecond
	case Standard80211g:
		p.setOFDM()
		p.slot, p.sifs = 9*time.Microsecond, 10*time.Microsecond
		if cfg.LongSlot {
			p.slot = 20 * time.Microsecond
		}
		// 18.3.2.4: 6 µs of silence give the receiver 802.11a's longer SIFS to
		// finish decoding.
		p.extension = 6 * time.Microsecond
		if cfg.MPDUs {
			p.addDSSS(cfg.LongSlot)
		}
	default:
		return nil, fmt.Errorf("check medium: standard %q: 802.11a, 802.11b and 802.11g are known", cfg.Standard)
	}
	r, err := radioNamed(cfg.Radio, cfg.Standard)
	if err != nil {
		return nil, err
	}
	basic := cfg.BasicRatesMbps
	if len(basic) == 0 {
		basic = r.basicMbps
	}
	if err := p.setBasic(basic); err != nil {
		return nil, err
	}
	for i := range p.modes {
		m := &p.modes[i]
		m.response = p.responseMode(i)
		m.curve, m.loss = errorrate.Scheme{Modulation: m.modulation, Code: m.code, Soft: r.soft}.Curve(), 1
		if m.guest != nil {
			m.loss = errorrate.DSSSBandwidthHz / p.bandwidthHz // the wider band has more noise
		}
	}
	p.calibrate(r)
	if r.name == RadioNS2WaveLAN {
		p.detection = ns2PropagationDelay
	}
	p.header = p.modes[p.headerMode]
	p.difs = p.sifs + 2*p.slot // 10.3.2.3.5
	// A receiver notices a frame when it is more likely than not to read its
	// PLCP header.
	p.lockSNR = p.readable(p.header, p.headerBits)
	p.leastLock = p.lockSNR
	for i := range p.modes {
		if g := p.modes[i].guest; g != nil {
			g.mode = p.modes[0]
			g.lockSNR = p.readable(g.mode, longHeaderBits)
			p.leastLock = min(p.leastLock, g.lockSNR)
		}
	}
	p.eifs = p.sifs + p.airtime(&p.modes[0], ackBytes) + p.difs // 10.3.2.3.7
	return p, nil
}

// readable is the least SNR at which a header is more likely than not to be read.
func (p *phy) readable(header Mode, bits float64) float64 {
	return errorrate.LeastSNR(0.5, func(snr float64) float64 { return lostShare(header.logSuccess(snr, bits)) })
}

// setBasic replaces the basic rates, if any are given.
func (p *phy) setBasic(ratesMbps []float64) error {
	for i := range p.modes {
		p.modes[i].basic = p.modes[i].basic && len(ratesMbps) == 0
	}
	for _, rate := range ratesMbps {
		i, err := p.modeIndex(rate)
		if err != nil {
			return err
		}
		p.modes[i].basic = true
	}
	return nil
}

func (p *phy) setDSSS(short bool) {
	p.slot, p.sifs, p.cwMin = 20*time.Microsecond, 10*time.Microsecond, 31
	// 1 and 2 Mbit/s are the basic rates, so that a station of the first
	// standard (clause 15) understands every control frame.
	p.modes = modesDSSS()
	p.longPLCP = longPLCP
	p.preamble = p.longPLCP
	p.headerMode, p.headerBits = 0, longHeaderBits
	if short {
		p.preamble = 96 * time.Microsecond // 16.2.2.3: 72 bits at 1, 48 bits at 2 Mbit/s
		p.headerMode = 1
	}
	p.bandwidthHz = errorrate.DSSSBandwidthHz
	p.detection = 15 * time.Microsecond // aCCATime (PHY characteristics of clauses 15 and 16)
}

// modesDSSS are the rates of clauses 15 and 16.
func modesDSSS() []Mode {
	return []Mode{
		{RateMbps: 1, modulation: errorrate.DBPSK, basic: true},
		{RateMbps: 2, modulation: errorrate.DQPSK, basic: true},
		{RateMbps: 5.5, modulation: errorrate.CCK16},
		{RateMbps: 11, modulation: errorrate.CCK256},
	}
}

// 16.2.2.2: the long preamble and header are 144 bits and 48 bits at 1 Mbit/s.
const (
	longPLCP       = 192 * time.Microsecond
	longHeaderBits = 48
)

// addDSSS makes a PHY of OFDM one of ERP with all its rates (18.1.2), DSSS and CCK
// with the long preamble. The time in which a preamble is found goes with the slot.
func (p *phy) addDSSS(longSlot bool) {
	for _, m := range modesDSSS() {
		m.guest = &guestHeader{}
		p.modes = append(p.modes, m)
	}
	header := p.modes[p.headerMode].RateMbps
	slices.SortFunc(p.modes, func(a, b Mode) int { return cmp.Compare(a.RateMbps, b.RateMbps) })
	p.headerMode = slices.IndexFunc(p.modes, func(m Mode) bool { return m.RateMbps == header })
	if longSlot {
		p.detection = 15 * time.Microsecond
	}
}

func (p *phy) setOFDM() {
	p.cwMin = 15
	// 17.3.2.2, table 17-4; 6, 12 and 24 are mandatory and taken as basic.
	p.modes = []Mode{
		{RateMbps: 6, modulation: errorrate.BPSK, code: errorrate.CodeHalf, bitsPerSymbol: 24, basic: true},
		{RateMbps: 9, modulation: errorrate.BPSK, code: errorrate.CodeThreeQuarters, bitsPerSymbol: 36},
		{RateMbps: 12, modulation: errorrate.QPSK, code: errorrate.CodeHalf, bitsPerSymbol: 48, basic: true},
		{RateMbps: 18, modulation: errorrate.QPSK, code: errorrate.CodeThreeQuarters, bitsPerSymbol: 72},
		{RateMbps: 24, modulation: errorrate.QAM16, code: errorrate.CodeHalf, bitsPerSymbol: 96, basic: true},
		{RateMbps: 36, modulation: errorrate.QAM16, code: errorrate.CodeThreeQuarters, bitsPerSymbol: 144},
		{RateMbps: 48, modulation: errorrate.QAM64, code: errorrate.CodeTwoThirds, bitsPerSymbol: 192},
		{RateMbps: 54, modulation: errorrate.QAM64, code: errorrate.CodeThreeQuarters, bitsPerSymbol: 216},
	}
	p.preamble = 20 * time.Microsecond // 17.3.2.1: 16 µs of training, 4 µs SIGNAL
	p.longPLCP = p.preamble
	p.headerMode, p.headerBits = 0, 24
	p.bandwidthHz = 20e6
	// 17.3.10.6: the start of a frame is noticed within 4 µs.
	p.detection = 4 * time.Microsecond
}

// plcp is the time of preamble and PLCP header before a frame of a mode.
func (p *phy) plcp(m *Mode) time.Duration {
	if m.guest != nil {
		return longPLCP
	}
	if m.modulation == errorrate.DBPSK {
		return p.longPLCP
	}
	return p.preamble
}

// airtime is how long a frame of so many bytes (MAC header and FCS included)
// holds the channel, ERP's signal extension included.
func (p *phy) airtime(m *Mode, bytes int) time.Duration {
	return p.plcp(m) + p.payloadTime(m, bytes) + p.extensionOf(m)
}

// extensionOf is the silence after a frame, which belongs to it.
func (p *phy) extensionOf(m *Mode) time.Duration {
	if m.guest != nil {
		return 0
	}
	return p.extension
}

// headerLogSuccess is the chance that a share of a frame's header comes through.
func (p *phy) headerLogSuccess(m *Mode, snr, share float64) float64 {
	if m.guest != nil {
		return m.guest.mode.logSuccess(snr, share*longHeaderBits)
	}
	return p.header.logSuccess(snr, share*p.headerBits)
}

// lockSNROf is the least SNR at which a receiver notices a frame of a mode.
func (p *phy) lockSNROf(m *Mode) float64 {
	if g := m.guest; g != nil {
		return g.lockSNR
	}
	return p.lockSNR
}

// payloadTime is the time of the PSDU: whole symbols of 4 µs for OFDM (17.4.3),
// whole microseconds for DSSS and CCK (16.3.4).
func (p *phy) payloadTime(m *Mode, bytes int) time.Duration {
	if m.bitsPerSymbol > 0 {
		symbols := (ofdmServiceAndTailBits + 8*bytes + m.bitsPerSymbol - 1) / m.bitsPerSymbol
		return time.Duration(symbols) * 4 * time.Microsecond
	}
	return time.Duration(math.Ceil(8*float64(bytes)/m.RateMbps)) * time.Microsecond
}

// payloadBits is how many bits the receiver has to decode.
func payloadBits(m *Mode, bytes int) float64 {
	if m.bitsPerSymbol > 0 {
		return float64(ofdmServiceAndTailBits + 8*bytes)
	}
	return float64(8 * bytes)
}

const ofdmServiceAndTailBits = 16 + 6 // 17.3.5.2, 17.3.5.3

// responseMode is the rate of an ACK or CTS: the highest basic rate not above
// the rate of the frame that it answers, or else the highest mandatory one
// (10.6.6.5.2), of the frame's own modulation: DSSS and CCK, or OFDM.
func (p *phy) responseMode(to int) int {
	best, mandatory := -1, 0
	for i, m := range p.modes[:to+1] {
		if (m.guest == nil) != (p.modes[to].guest == nil) {
			continue
		}
		if m.basic {
			best = i
		}
		if m.mandatory() {
			mandatory = i
		}
	}
	if best < 0 {
		return mandatory
	}
	return best
}

// mandatory: every rate of 802.11b (16.1.1), and 6, 12 and 24 Mbit/s (17.1.1).
func (m Mode) mandatory() bool {
	return m.bitsPerSymbol == 0 || m.code == errorrate.CodeHalf
}

// groupMode is the rate of frames to everybody: the lowest basic one (10.6.4.2).
func (p *phy) groupMode() int {
	return slices.IndexFunc(p.modes, func(m Mode) bool { return m.basic })
}

// modeIndex finds a rate.
func (p *phy) modeIndex(rateMbps float64) (int, error) {
	rates := p.ratesMbps()
	for i, r := range rates {
		if r == rateMbps {
			return i, nil
		}
	}
	return 0, fmt.Errorf("check medium: rate %g Mbit/s: %s has %v", rateMbps, p.standard, rates)
}

func (p *phy) ratesMbps() []float64 {
	out := make([]float64, len(p.modes))
	for i, m := range p.modes {
		out[i] = m.RateMbps
	}
	return out
}

// noiseMw is the noise of a receiver: thermal noise of 290 K in the band
// (k = 1.380649e-23 J/K, SI) times the noise figure.
func (p *phy) noiseMw(noiseFigureDb float64) float64 {
	const boltzmannJPerK, temperatureK = 1.380649e-23, 290
	return boltzmannJPerK * temperatureK * p.bandwidthHz * 1000 * propagation.DbToRatio(noiseFigureDb)
}

// frameErrorRate is the chance that a frame of so many bytes is lost to noise
// alone at an SNR (a ratio, over the PHY's bandwidth).
func (p *phy) frameErrorRate(m Mode, snr float64, bytes int) float64 {
	return lostShare(p.headerLogSuccess(&m, snr, 1) + m.logSuccess(snr, payloadBits(&m, bytes)))
}

// logSuccess is the natural logarithm of the chance that so many bits come
// through at an SNR that stays the same.
func (m *Mode) logSuccess(snr, bits float64) float64 {
	if snr /= m.loss; snr != m.last.snr || snr == 0 {
		m.last.snr, m.last.error = snr, m.curve.At(snr)
	}
	return -bits / m.modulation.DecidedBits() * m.last.error
}

// lostShare is the chance of an error that goes with the logarithm of the chance of none.
func lostShare(logSuccess float64) float64 { return -math.Expm1(logSuccess) }
