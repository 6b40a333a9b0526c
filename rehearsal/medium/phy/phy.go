// Package phy is the physical layer of the emulated radio: the rates of a standard with their airtimes
// and error rates, and radios by name. When frames are on the air, and who hears them, is package
// medium's.
package phy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/errorrate"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// ACKBytes is the length of an ACK (IEEE 802.11-2020, 9.3.1.4).
const ACKBytes = 14

// Config is what a PHY depends on.
type Config struct {
	Standard string // 802.11a | 802.11b | 802.11g | 802.11n | 802.11ac
	Radio    string // by name, or empty
	Channel  int
	// BasicRatesMbps are the rates that every station knows. Empty: the radio's, or else 1 and
	// 2 Mbit/s of 802.11b, 6, 12 and 24 of the others.
	BasicRatesMbps []float64
	ShortPreamble  bool // of 802.11b
	LongSlot       bool // of 802.11g, and 802.11n at 2.4 GHz
	DSSS           bool // 802.11g has the rates of 802.11b too
	Narrower       bool // frames of 802.11n and 802.11ac may take a part of the channel
}

// Mode is one rate of a PHY.
type Mode struct {
	RateMbps float64

	Modulation    errorrate.Modulation
	Code          errorrate.CodeRate
	bitsPerSymbol int // data bits an OFDM symbol (N_DBPS); 0 for DSSS and CCK
	basic         bool
	Curve         errorrate.Curve
	Loss          float64                      // ratio by which the receiver is worse than its noise figure says
	Response      int                          // index of the mode of an ACK or CTS to a frame of this one
	RTS           int                          // the same of an RTS before it
	last          struct{ snr, error float64 } // what the curve was asked last
	// guest is what comes before a frame of DSSS or CCK in a PHY of OFDM, and before one of 1 Mbit/s
	// where others have the short preamble; nil: the PHY's.
	guest *guestHeader
	// referenceMbps bounds the rate of an answer to a frame of 802.11n or 802.11ac; 0: a mode of
	// another standard.
	referenceMbps float64
	format        *ht.Format // of a frame of 802.11n or 802.11ac
	Share         float64    // of the channel that a frame takes
	answers       int        // where the modes of its answer begin
}

// guestHeader is a preamble and header that is not the PHY's.
type guestHeader struct {
	mode    Mode // that the header is modulated with
	lockSNR float64
}

// PHY is what a standard fixes.
type PHY struct {
	standard   string
	NS2        bool   // the radio is ns-2's
	Modes      []Mode // ascending, those from FirstData on by themselves; behind them narrower ones
	FirstData  int    // below it are modes that unicast data do not go at
	NarrowFrom int    // from it on are modes of a part of the channel, control frames' included
	// Groups are the modes of each width, in minstrel_ht's order: the widest last.
	Groups      [][]int
	HT          *ht.Format // nil: another standard's
	Slot, SIFS  time.Duration
	IFS, EIFS   time.Duration
	Preamble    time.Duration // preamble and PLCP header
	longPLCP    time.Duration // the same at 1 Mbit/s, which has no short one
	extension   time.Duration // ERP-OFDM's signal extension
	CWMin       int
	CWMax       int
	bandwidthHz float64
	Header      Mode // what the PLCP header is modulated with
	headerMode  int
	HeaderBits  float64
	LockSNR     float64       // least SNR (ratio) at which a receiver notices a frame of the PHY
	LeastLock   float64       // of any frame
	Detection   time.Duration // in which a receiver finds a preamble
	minSNRs     []float64     // once they were asked for
}

// New makes the PHY of a standard with IEEE 802.11-2020's characteristics:
// clauses 15 and 16 (DSSS, HR/DSSS), 17 (OFDM), 18 (ERP).
func New(cfg Config) (*PHY, error) {
	p := &PHY{standard: cfg.Standard, NS2: cfg.Radio == RadioNS2WaveLAN, CWMax: 1023}
	switch cfg.Standard {
	case Standard80211b:
		p.setDSSS(cfg.ShortPreamble)
	case Standard80211a:
		p.setOFDM()
		p.Slot, p.SIFS = 9*time.Microsecond, 16*time.Microsecond
	case Standard80211g:
		p.setOFDM()
		p.Slot, p.SIFS = 9*time.Microsecond, 10*time.Microsecond
		if cfg.LongSlot { // the time in which a preamble is found goes with it
			p.Slot, p.Detection = 20*time.Microsecond, 15*time.Microsecond
		}
		// 18.3.2.4: 6 µs of silence give the receiver 802.11a's longer SIFS to
		// finish decoding.
		p.extension = 6 * time.Microsecond
		if cfg.DSSS {
			p.addDSSS()
		}
	case Standard80211n, Standard80211ac:
		p.setOFDM()
	default:
		return nil, fmt.Errorf("check medium: standard %q: 802.11a, 802.11b, 802.11g, 802.11n and 802.11ac are known",
			cfg.Standard)
	}
	r, err := RadioNamed(cfg.Radio, cfg.Standard)
	if err != nil {
		return nil, err
	}
	if r.Format != nil {
		if err := p.setHT(r.Format, cfg); err != nil {
			return nil, err
		}
	} else {
		p.NarrowFrom, p.Groups = len(p.Modes), [][]int{make([]int, len(p.Modes))}
		for i := range p.Modes {
			p.Groups[0][i] = i
		}
	}
	basic := cfg.BasicRatesMbps
	if len(basic) == 0 {
		basic = r.basicMbps
	}
	if err := p.setBasic(basic); err != nil {
		return nil, err
	}
	for i := range p.Modes {
		m := &p.Modes[i]
		m.Response, m.RTS = p.ResponseMode(i), p.rtsMode(i)
		m.Curve = errorrate.Scheme{Modulation: m.Modulation, Code: m.Code, Soft: r.soft}.Curve()
		if m.Share == 0 {
			m.Share = 1
		}
		m.Loss = m.Share // less noise is in it
		if m.guest != nil {
			m.Loss = errorrate.DSSSBandwidthHz / p.bandwidthHz // the wider band has more noise
		}
	}
	p.calibrate(r)
	if r.Name == RadioNS2WaveLAN {
		p.Detection = ns2PropagationDelay
	}
	p.Header = p.Modes[p.headerMode]
	p.IFS = p.SIFS + 2*p.Slot // 10.3.2.3.5
	if p.HT != nil {
		p.IFS = p.SIFS + ht.AIFSN*p.Slot // AIFS of best effort (10.3.2.3.6)
	}
	// A receiver notices a frame when it is more likely than not to read its
	// PLCP header.
	p.LockSNR = p.readable(p.Header, p.HeaderBits)
	p.LeastLock = p.LockSNR
	if p.longPLCP > p.Preamble {
		p.Modes[0].guest = &guestHeader{} // 1 Mbit/s has the long preamble and its header
	}
	for i := range p.Modes {
		if g := p.Modes[i].guest; g != nil {
			g.mode = p.Modes[0]
			g.lockSNR = p.readable(g.mode, longHeaderBits)
		}
		p.LeastLock = min(p.LeastLock, p.LockSNROf(&p.Modes[i]))
	}
	p.EIFS = p.SIFS + p.Airtime(&p.Modes[0], ACKBytes) + p.IFS // 10.3.2.3.7
	return p, nil
}

// readable is the least SNR at which a header is more likely than not to be read.
func (p *PHY) readable(header Mode, bits float64) float64 {
	return errorrate.LeastSNR(0.5, func(snr float64) float64 { return LostShare(header.LogSuccess(snr, bits)) })
}

// setBasic replaces the basic rates, if any are given.
func (p *PHY) setBasic(ratesMbps []float64) error {
	for i := range p.Modes {
		p.Modes[i].basic = p.Modes[i].basic && len(ratesMbps) == 0
	}
	for _, rate := range ratesMbps {
		modes := p.Modes
		if p.HT != nil {
			modes = p.Modes[:p.FirstData]
		}
		i := slices.IndexFunc(modes, func(m Mode) bool { return m.RateMbps == rate })
		if i < 0 {
			return fmt.Errorf("check medium: rate %g Mbit/s: %s has %v", rate, p.standard, ratesOf(modes))
		}
		p.Modes[i].basic = true
	}
	return nil
}

func (p *PHY) setDSSS(short bool) {
	p.Slot, p.SIFS, p.CWMin = 20*time.Microsecond, 10*time.Microsecond, 31
	// 1 and 2 Mbit/s are the basic rates, so that a station of the first
	// standard (clause 15) understands every control frame.
	p.Modes = modesDSSS()
	p.longPLCP = longPLCP
	p.Preamble = p.longPLCP
	p.headerMode, p.HeaderBits = 0, longHeaderBits
	if short {
		p.Preamble = shortPLCP
		p.headerMode = 1
	}
	p.bandwidthHz = errorrate.DSSSBandwidthHz
	p.Detection = 15 * time.Microsecond // aCCATime (PHY characteristics of clauses 15 and 16)
}

// modesDSSS are the rates of clauses 15 and 16.
func modesDSSS() []Mode {
	return []Mode{
		{RateMbps: 1, Modulation: errorrate.DBPSK, basic: true},
		{RateMbps: 2, Modulation: errorrate.DQPSK, basic: true},
		{RateMbps: 5.5, Modulation: errorrate.CCK16},
		{RateMbps: 11, Modulation: errorrate.CCK256},
	}
}

// 16.2.2.2: the long preamble and header are 144 bits and 48 bits at 1 Mbit/s; 16.2.2.3: the short
// ones 72 bits at 1 and 48 bits at 2 Mbit/s.
const (
	longPLCP       = 192 * time.Microsecond
	shortPLCP      = 96 * time.Microsecond
	longHeaderBits = 48
)

// addDSSS makes a PHY of OFDM one of ERP with all its rates (18.1.2), DSSS and CCK
// with the long preamble.
func (p *PHY) addDSSS() {
	for _, m := range modesDSSS() {
		m.guest = &guestHeader{}
		p.Modes = append(p.Modes, m)
	}
	header := p.Modes[p.headerMode].RateMbps
	slices.SortFunc(p.Modes, func(a, b Mode) int { return cmp.Compare(a.RateMbps, b.RateMbps) })
	p.headerMode = slices.IndexFunc(p.Modes, func(m Mode) bool { return m.RateMbps == header })
}

func (p *PHY) setOFDM() {
	p.CWMin = 15
	// 17.3.2.2, table 17-4; 6, 12 and 24 are mandatory and taken as basic.
	p.Modes = []Mode{
		{RateMbps: 6, Modulation: errorrate.BPSK, Code: errorrate.CodeHalf, bitsPerSymbol: 24, basic: true},
		{RateMbps: 9, Modulation: errorrate.BPSK, Code: errorrate.CodeThreeQuarters, bitsPerSymbol: 36},
		{RateMbps: 12, Modulation: errorrate.QPSK, Code: errorrate.CodeHalf, bitsPerSymbol: 48, basic: true},
		{RateMbps: 18, Modulation: errorrate.QPSK, Code: errorrate.CodeThreeQuarters, bitsPerSymbol: 72},
		{RateMbps: 24, Modulation: errorrate.QAM16, Code: errorrate.CodeHalf, bitsPerSymbol: 96, basic: true},
		{RateMbps: 36, Modulation: errorrate.QAM16, Code: errorrate.CodeThreeQuarters, bitsPerSymbol: 144},
		{RateMbps: 48, Modulation: errorrate.QAM64, Code: errorrate.CodeTwoThirds, bitsPerSymbol: 192},
		{RateMbps: 54, Modulation: errorrate.QAM64, Code: errorrate.CodeThreeQuarters, bitsPerSymbol: 216},
	}
	p.Preamble = 20 * time.Microsecond // 17.3.2.1: 16 µs of training, 4 µs SIGNAL
	p.longPLCP = p.Preamble
	p.headerMode, p.HeaderBits = 0, 24
	p.bandwidthHz = 20e6
	// 17.3.10.6: the start of a frame is noticed within 4 µs.
	p.Detection = 4 * time.Microsecond
}

// setHT adds a format's rates to those of OFDM, at which control frames and broadcasts go: as non-HT
// duplicates (19.3.2, 21.3.2) in the whole width, so that an SNR is the same at all of them. The
// band's SIFS and the silence after a frame at 2.4 GHz are as in 802.11g and 802.11a (19.4.4).
func (p *PHY) setHT(f *ht.Format, cfg Config) error {
	if f.WidthMHz > 20 && cfg.Channel == lastChannel {
		return fmt.Errorf("check medium: channel %d in %d MHz: it has 20 MHz only", cfg.Channel, f.WidthMHz)
	}
	p.HT, p.FirstData, p.bandwidthHz = f, len(p.Modes), float64(f.WidthMHz)*1e6
	p.Slot, p.SIFS = 9*time.Microsecond, 16*time.Microsecond
	if cfg.Channel <= 14 {
		p.SIFS, p.extension = 10*time.Microsecond, 6*time.Microsecond
		if cfg.LongSlot {
			p.Slot = 20 * time.Microsecond
		}
	}
	wide := p.addRates(f, 1, 0)
	p.NarrowFrom = len(p.Modes)
	parts := f.Narrower
	if !cfg.Narrower {
		parts = nil
	}
	for _, n := range parts {
		share, answers := float64(n.WidthMHz)/float64(f.WidthMHz), len(p.Modes)
		for _, m := range p.Modes[:p.FirstData] { // an answer is as wide as its frame
			m.Share, m.answers = share, answers
			p.Modes = append(p.Modes, m)
		}
		p.Groups = append(p.Groups, p.addRates(n, share, answers))
	}
	p.Groups = append(p.Groups, wide)
	return nil
}

// addRates adds the rates of a format in a share of the channel.
func (p *PHY) addRates(f *ht.Format, share float64, answers int) (group []int) {
	for _, r := range f.Rates {
		group = append(group, len(p.Modes))
		p.Modes = append(p.Modes, Mode{RateMbps: r.Mbps, Modulation: r.Modulation, Code: r.Code, format: f,
			bitsPerSymbol: r.BitsPerSymbol, referenceMbps: r.ReferenceMbps, Share: share, answers: answers})
	}
	return group
}

// lastChannel of 5 GHz has no neighbour to share a wider one with (annex E).
const lastChannel = 165

// PLCP is the time of preamble and PLCP header before a frame of a mode.
func (p *PHY) PLCP(m *Mode) time.Duration {
	if m.guest != nil {
		return longPLCP
	}
	if m.format != nil {
		return m.format.Preamble
	}
	if m.Modulation == errorrate.DBPSK {
		return p.longPLCP
	}
	return p.Preamble
}

// Airtime is how long a frame of so many bytes (MAC header and FCS included)
// holds the channel, ERP's signal extension included.
func (p *PHY) Airtime(m *Mode, bytes int) time.Duration {
	return p.PLCP(m) + p.PayloadTime(m, bytes) + p.ExtensionOf(m)
}

// ExtensionOf is the silence after a frame, which belongs to it.
func (p *PHY) ExtensionOf(m *Mode) time.Duration {
	if m.guest != nil {
		return 0
	}
	return p.extension
}

// HeaderLogSuccess is the chance that a share of a frame's header comes through.
func (p *PHY) HeaderLogSuccess(m *Mode, snr, share float64) float64 {
	if m.guest != nil {
		return m.guest.mode.LogSuccess(snr, share*longHeaderBits)
	}
	snr /= m.Share
	if m.format != nil {
		return p.Header.LogSuccess(snr, share*m.format.HeaderBits)
	}
	return p.Header.LogSuccess(snr, share*p.HeaderBits)
}

// LockSNROf is the least SNR at which a receiver notices a frame of a mode.
func (p *PHY) LockSNROf(m *Mode) float64 {
	if g := m.guest; g != nil {
		return g.lockSNR
	}
	return p.LockSNR * m.Share
}

// PayloadTime is the time of the PSDU: whole symbols of 4 µs for OFDM (17.4.3),
// whole microseconds for DSSS and CCK (16.3.4).
func (p *PHY) PayloadTime(m *Mode, bytes int) time.Duration {
	if m.bitsPerSymbol > 0 {
		symbols := (ofdmServiceAndTailBits + 8*bytes + m.bitsPerSymbol - 1) / m.bitsPerSymbol
		return time.Duration(symbols) * 4 * time.Microsecond
	}
	return time.Duration(math.Ceil(8*float64(bytes)/m.RateMbps)) * time.Microsecond
}

// PayloadBits is how many bits the receiver has to decode.
func PayloadBits(m *Mode, bytes int) float64 {
	if m.bitsPerSymbol > 0 {
		return float64(ofdmServiceAndTailBits + 8*bytes)
	}
	return float64(8 * bytes)
}

const ofdmServiceAndTailBits = 16 + 6 // 17.3.5.2, 17.3.5.3

// ResponseMode is the rate of an ACK or CTS: the highest basic rate not above
// the rate of the frame that it answers, or else the highest mandatory one
// (10.6.6.5.2), of the frame's own modulation: DSSS and CCK, or OFDM. The rate of a frame of
// 802.11n or 802.11ac is its non-HT reference rate.
func (p *PHY) ResponseMode(to int) int {
	narrower := p.Modes[to].answers
	best, mandatory := -1, 0
	for i, m := range p.upTo(to) {
		if (m.guest == nil) != (p.Modes[to].guest == nil) {
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
		return narrower + mandatory
	}
	return narrower + best
}

// rtsMode is the rate of an RTS, with which an exchange begins (10.6.6.2): the highest basic rate not above that
// of the frame behind it, or else the lowest, of any modulation (rate_fixup_ratelist of mac80211).
func (p *PHY) rtsMode(before int) int {
	best := p.GroupMode()
	for i, m := range p.upTo(before) {
		if m.basic {
			best = i
		}
	}
	return p.Modes[before].answers + best
}

// upTo are the modes of control frames that are not above the rate of a frame.
func (p *PHY) upTo(of int) []Mode {
	last := of - p.Modes[of].answers
	if reference := p.Modes[of].referenceMbps; reference > 0 {
		last = slices.IndexFunc(p.Modes, func(m Mode) bool { return m.RateMbps == reference })
	}
	return p.Modes[:last+1]
}

// mandatory: every rate of 802.11b (16.1.1), and 6, 12 and 24 Mbit/s (17.1.1).
func (m Mode) mandatory() bool {
	return m.bitsPerSymbol == 0 || m.Code == errorrate.CodeHalf
}

// GroupMode is the rate of frames to everybody: the lowest basic one (10.6.4.2).
func (p *PHY) GroupMode() int {
	return slices.IndexFunc(p.Modes, func(m Mode) bool { return m.basic })
}

// ModeIndex finds a rate of unicast data.
func (p *PHY) ModeIndex(rateMbps float64) (int, error) {
	rates := p.RatesMbps()
	for i, r := range rates {
		if r == rateMbps {
			return p.FirstData + i, nil
		}
	}
	return 0, fmt.Errorf("check medium: rate %g Mbit/s: %s has %v", rateMbps, p.standard, rates)
}

// DataModes are those of unicast data, in all of the channel and in parts of it.
func (p *PHY) DataModes() []int { return slices.Concat(p.Groups...) }

// RatesMbps are those of unicast data in all of the channel.
func (p *PHY) RatesMbps() []float64 { return ratesOf(p.Modes[p.FirstData:p.NarrowFrom]) }

// AllRatesMbps are those of unicast data, ascending.
func (p *PHY) AllRatesMbps() []float64 {
	var out []float64
	for _, mode := range p.DataModes() {
		out = append(out, p.Modes[mode].RateMbps)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func ratesOf(modes []Mode) []float64 {
	out := make([]float64, len(modes))
	for i, m := range modes {
		out[i] = m.RateMbps
	}
	return out
}

// NoiseMw is the noise of a receiver: thermal noise of 290 K in the band
// (k = 1.380649e-23 J/K, SI) times the noise figure.
func (p *PHY) NoiseMw(noiseFigureDb float64) float64 {
	const boltzmannJPerK, temperatureK = 1.380649e-23, 290
	return boltzmannJPerK * temperatureK * p.bandwidthHz * 1000 * propagation.DbToRatio(noiseFigureDb)
}

// FrameErrorRate is the chance that a frame of so many bytes is lost to noise
// alone at an SNR (a ratio, over the PHY's bandwidth).
func (p *PHY) FrameErrorRate(m Mode, snr float64, bytes int) float64 {
	return LostShare(p.HeaderLogSuccess(&m, snr, 1) + m.LogSuccess(snr, PayloadBits(&m, bytes)))
}

// LogSuccess is the natural logarithm of the chance that so many bits come
// through at an SNR that stays the same.
func (m *Mode) LogSuccess(snr, bits float64) float64 {
	if snr /= m.Loss; snr != m.last.snr || snr == 0 {
		m.last.snr, m.last.error = snr, m.Curve.At(snr)
	}
	return -bits / m.Modulation.DecidedBits() * m.last.error
}

// LostShare is the chance of an error that goes with the logarithm of the chance of none.
func LostShare(logSuccess float64) float64 { return -math.Expm1(logSuccess) }

const (
	// TargetErrorRate and TargetBytes say which rate the SNR-driven control
	// takes: the highest at which a full frame is lost to noise at most this
	// often.
	TargetErrorRate = 0.10
	TargetBytes     = 1500
)

// MinSNRs is the least SNR (ratio) of each mode from FirstData on for the target error rate.
func (p *PHY) MinSNRs() []float64 {
	if p.minSNRs == nil {
		for _, m := range p.Modes[p.FirstData:] {
			p.minSNRs = append(p.minSNRs, errorrate.LeastSNR(TargetErrorRate, func(snr float64) float64 {
				return p.FrameErrorRate(m, snr, TargetBytes)
			}))
		}
	}
	return p.minSNRs
}

const fcsBytes = 4
