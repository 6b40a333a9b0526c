package medium

import (
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/errorrate"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// Radios by name, for Config.Radio. See also RadioNS2WaveLAN.
const (
	// RadioDisc is the unit disc, for tests: see Disc.
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
)

// radio is what a name stands for.
type radio struct {
	name      string
	standards []string
	// Of the receiver and the transmitter, where nothing else is said.
	noiseFigureDb, txPowerDbm float64
	soft                      bool // decides softly before it decodes
	// relocks: a frame that is stronger than all else by the capture ratio is received
	// whenever it begins.
	relocks bool
	// sensitivityDbm is by rate, ascending: the power at which sensitivityLost of the frames of
	// sensitivityBytes are lost. Empty: that of an ideal receiver with the noise figure.
	sensitivityDbm []float64
	ownPropagation bool      // nothing but powers and places counts
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

// knownRadios is the radios by name; the first has none.
func knownRadios() []radio {
	ofdm := []string{Standard80211a, Standard80211g}
	return []radio{
		{standards: []string{Standard80211a, Standard80211b, Standard80211g}, noiseFigureDb: defaultNoiseFigureDb,
			txPowerDbm: defaultTxPowerDbm},
		{name: RadioNS2WaveLAN, standards: []string{Standard80211b}, noiseFigureDb: defaultNoiseFigureDb,
			txPowerDbm: NS2TxPowerDbm, ownPropagation: true, basicMbps: []float64{ns2BasicMbps}},
		// Agere's ORiNOCO Mini PCI card, from the manuals of two that were sold as Acer MPCI-101
		// and Toshiba PA3070U-1MPC: 3.2.2 (15 dBm) and 3.3.2 (at 25 °C).
		{name: RadioDSSSOrinoco, standards: []string{Standard80211b}, noiseFigureDb: defaultNoiseFigureDb,
			txPowerDbm: 15, sensitivityDbm: []float64{-91, -88, -85, -82}},
		{name: RadioOFDM2003, standards: ofdm, noiseFigureDb: defaultNoiseFigureDb, txPowerDbm: defaultTxPowerDbm},
		// Noise figure: IEEE 802.11-14/0980, "TGax simulation scenarios". Capture: Lee et al., "An
		// experimental study on the capture effect in 802.11a networks", WiNTECH 2007.
		{name: RadioOFDMRecent, standards: ofdm, noiseFigureDb: 7, txPowerDbm: defaultTxPowerDbm, soft: true,
			relocks: true},
		{name: RadioDisc, standards: []string{Standard80211a, Standard80211b, Standard80211g},
			noiseFigureDb: defaultNoiseFigureDb, txPowerDbm: defaultTxPowerDbm, ownPropagation: true},
	}
}

// radioNamed finds a radio and refuses one that does not speak the standard.
func radioNamed(name, standard string) (radio, error) {
	var names []string
	for _, r := range knownRadios() {
		if r.name != name {
			names = append(names, r.name)
			continue
		}
		if !slices.Contains(r.standards, standard) && name != "" {
			return r, fmt.Errorf("check medium: radio %s with %s: it is one of %s", name, standard,
				strings.Join(r.standards, " and "))
		}
		return r, nil
	}
	return radio{}, fmt.Errorf("check medium: radio %q: %s are known", name, strings.Join(names[1:], ", "))
}

// RadioDefaults is the noise figure and the transmit power of a radio by name, where
// nothing else is said. A name that is not known has those of the empty one.
func RadioDefaults(name string) (noiseFigureDb, txPowerDbm float64) {
	all := knownRadios()
	r := all[max(0, slices.IndexFunc(all, func(r radio) bool { return r.name == name }))]
	return r.noiseFigureDb, r.txPowerDbm
}

// calibrate gives each rate the loss that its documented sensitivity tells.
func (p *phy) calibrate(r radio) {
	for i, dbm := range r.sensitivityDbm {
		m := &p.modes[i]
		ideal := errorrate.LeastSNR(sensitivityLost, func(snr float64) float64 {
			return lostShare(m.logSuccess(snr, payloadBits(m, sensitivityBytes)))
		})
		m.loss = propagation.DbToRatio(dbm) / (ideal * p.noiseMw(r.noiseFigureDb))
	}
}
