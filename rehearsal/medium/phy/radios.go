package phy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/errorrate"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// The standards.
const (
	Standard80211a = "802.11a"
	Standard80211b = "802.11b"
	Standard80211g = "802.11g"
	// These need a radio of theirs, and have MCS of one stream.
	Standard80211n  = "802.11n"
	Standard80211ac = "802.11ac"
)

// Radios by name.
const (
	// RadioNS2WaveLAN is ns-2's.
	RadioNS2WaveLAN = "ns2_wavelan"
	// RadioDisc is the unit disc, for tests: see propagation.Disc.
	RadioDisc = "disc"
	// RadioDSSSOrinoco is a card of 802.11b's time. Noise figure and implementation
	// loss are such that each rate has its documented sensitivity.
	RadioDSSSOrinoco = "dsss_orinoco"
	// RadioOFDM2003 is a receiver that decides bit by bit before it decodes, with the
	// noise figure that the standard assumes: what simulators had for long. It needs up to
	// 4 dB more than a receiver with soft decisions of the same noise figure.
	RadioOFDM2003 = "ofdm_2003"
	// RadioOFDMRecent is a receiver with soft decisions, which goes over to a much
	// stronger frame at any time.
	RadioOFDMRecent = "ofdm_recent"
	// RadioHT20, RadioHT40 and RadioVHT80 are RadioOFDMRecent with the rates of 802.11n and
	// 802.11ac.
	RadioHT20, RadioHT40, RadioVHT80 = "ht20", "ht40", "vht80"
)

// Radio is what a name stands for.
type Radio struct {
	Name      string
	Standards []string
	// Of the receiver and the transmitter, where nothing else is said.
	noiseFigureDb, txPowerDbm float64
	soft                      bool // decides softly before it decodes
	// Relocks: a frame that is stronger than all else by the capture ratio is received
	// whenever it begins.
	Relocks bool
	// sensitivityDbm is by rate, ascending: the power at which sensitivityLost of the frames of
	// sensitivityBytes are lost. Empty: that of an ideal receiver with the noise figure.
	sensitivityDbm []float64
	OwnPropagation bool // nothing but powers and places counts
	Format         *ht.Format
	basicMbps      []float64 // where the configuration names none; empty: the standard's
}

// The measure of a DSSS receiver's sensitivity (IEEE 802.11-2020, 15.4.6.2 and 16.3.8.2).
const (
	sensitivityLost  = 0.08
	sensitivityBytes = 1024
)

// What a radio has when nothing is said.
const (
	// IEEE 802.11-2020, 17.3.10.2.
	defaultNoiseFigureDb = 10.0
	// The limit at 2.4 GHz (ETSI EN 300 328, 4.3.2.2).
	defaultTxPowerDbm = 20.0
)

// What ns-2.35 sets by default.
const (
	// NS2TxPowerDbm is Pt_, 0.28183815 W (tcl/lib/ns-default.tcl).
	NS2TxPowerDbm = 24.5
	ns2BasicMbps  = 1.0 // basicRate_ (tcl/lan/ns-mac.tcl)

	// ns2PropagationDelay is DSSS_MaxPropagationDelay (mac/mac-802_11.h), by which a frame may be
	// late. Light takes as long from end to end of what is sensed.
	ns2PropagationDelay = 2 * time.Microsecond
)

// KnownRadios is the radios by name; the first has none.
func KnownRadios() []Radio {
	ofdm := []string{Standard80211a, Standard80211g}
	return []Radio{
		{Standards: []string{Standard80211a, Standard80211b, Standard80211g}, noiseFigureDb: defaultNoiseFigureDb,
			txPowerDbm: defaultTxPowerDbm},
		{Name: RadioNS2WaveLAN, Standards: []string{Standard80211b}, noiseFigureDb: defaultNoiseFigureDb,
			txPowerDbm: NS2TxPowerDbm, OwnPropagation: true, basicMbps: []float64{ns2BasicMbps}},
		// Agere's ORiNOCO Mini PCI card, from the manuals of two that were sold as Acer MPCI-101
		// and Toshiba PA3070U-1MPC: 3.2.2 (15 dBm) and 3.3.2 (at 25 °C).
		{Name: RadioDSSSOrinoco, Standards: []string{Standard80211b}, noiseFigureDb: defaultNoiseFigureDb,
			txPowerDbm: 15, sensitivityDbm: []float64{-91, -88, -85, -82}},
		{Name: RadioOFDM2003, Standards: ofdm, noiseFigureDb: defaultNoiseFigureDb, txPowerDbm: defaultTxPowerDbm},
		// Noise figure: IEEE 802.11-14/0980, "TGax simulation scenarios". Capture: Lee et al., "An
		// experimental study on the capture effect in 802.11a networks", WiNTECH 2007.
		{Name: RadioOFDMRecent, Standards: ofdm, noiseFigureDb: 7, txPowerDbm: defaultTxPowerDbm, soft: true,
			Relocks: true},
		htRadio(RadioHT20, Standard80211n, ht.HT20()),
		htRadio(RadioHT40, Standard80211n, ht.HT40()),
		htRadio(RadioVHT80, Standard80211ac, ht.VHT80()),
		{Name: RadioDisc, Standards: []string{Standard80211a, Standard80211b, Standard80211g},
			noiseFigureDb: defaultNoiseFigureDb, txPowerDbm: defaultTxPowerDbm, OwnPropagation: true},
	}
}

func htRadio(name, standard string, f *ht.Format) Radio {
	return Radio{Name: name, Standards: []string{standard}, noiseFigureDb: 7, txPowerDbm: defaultTxPowerDbm, soft: true,
		Relocks: true, Format: f}
}

// RadioNamed finds a radio and refuses one that does not speak the standard.
func RadioNamed(name, standard string) (Radio, error) {
	var names []string
	for _, r := range KnownRadios() {
		if r.Name != name {
			names = append(names, r.Name)
			continue
		}
		if name == "" && (standard == Standard80211n || standard == Standard80211ac) {
			return r, fmt.Errorf("check medium: %s without a radio that has its rates: %s, %s or %s", standard,
				RadioHT20, RadioHT40, RadioVHT80)
		}
		if !slices.Contains(r.Standards, standard) && name != "" {
			return r, fmt.Errorf("check medium: radio %s with %s: it is one of %s", name, standard,
				strings.Join(r.Standards, " and "))
		}
		return r, nil
	}
	return Radio{}, fmt.Errorf("check medium: radio %q: %s are known", name, strings.Join(names[1:], ", "))
}

// RadioDefaults is the noise figure and the transmit power of a radio by name, where
// nothing else is said. A name that is not known has those of the empty one.
func RadioDefaults(name string) (noiseFigureDb, txPowerDbm float64) {
	all := KnownRadios()
	r := all[max(0, slices.IndexFunc(all, func(r Radio) bool { return r.Name == name }))]
	return r.noiseFigureDb, r.txPowerDbm
}

// calibrate gives each rate the loss that its documented sensitivity tells.
func (p *PHY) calibrate(r Radio) {
	for i, dbm := range r.sensitivityDbm {
		m := &p.Modes[i]
		ideal := errorrate.LeastSNR(sensitivityLost, func(snr float64) float64 {
			return LostShare(m.LogSuccess(snr, PayloadBits(m, sensitivityBytes)))
		})
		m.Loss = propagation.DbToRatio(dbm) / (ideal * p.NoiseMw(r.noiseFigureDb))
	}
}
