// Package radios is which channels and rates a standard of 802.11 has, and which radios by name a
// campaign's field may have. What they do is the rehearsal's business.
package radios

import (
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Channels of IEEE 802.11-2020: 15.4.4.3 numbers the 2.4 GHz band (14, in Japan, is for DSSS and CCK
// only), annex E the 20 MHz channels of 5 GHz.
func Channels(standard string) []float64 {
	switch standard {
	case "802.11a":
		return []float64{36, 40, 44, 48, 52, 56, 60, 64, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144,
			149, 153, 157, 161, 165}
	case "802.11b":
		return []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	case "802.11g":
		return []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	case "802.11n":
		return slices.Concat(Channels("802.11g"), Channels("802.11a"))
	case "802.11ac":
		return wider(Channels("802.11a"))
	}
	return nil
}

// wider leaves out the channel that has none beside it to be one of 40 or 80 MHz with.
func wider(channels []float64) []float64 {
	return slices.DeleteFunc(channels, func(c float64) bool { return c == 165 })
}

// Rates are in Mbit/s. Those of the legacy: IEEE 802.11-2020 clauses 15 and 16 (DSSS and CCK) and 17
// (OFDM); an 802.11g station has both (clause 18). Those of one stream with the long guard interval:
// 802.11n in 20 and 40 MHz (19.5), 802.11ac in 80 MHz (21.5).
func Rates(standard string) []float64 {
	cck, ofdm := []float64{1, 2, 5.5, 11}, []float64{6, 9, 12, 18, 24, 36, 48, 54}
	switch standard {
	case "802.11a":
		return ofdm
	case "802.11b":
		return cck
	case "802.11g":
		return append(cck, ofdm...)
	case "802.11n":
		return sorted(ht20(), ht40())
	case "802.11ac":
		return []float64{29.3, 58.5, 87.8, 117, 175.5, 234, 263.3, 292.5, 351, 390}
	}
	return nil
}

func ht20() []float64 { return []float64{6.5, 13, 19.5, 26, 39, 52, 58.5, 65} }
func ht40() []float64 { return []float64{13.5, 27, 40.5, 54, 81, 108, 121.5, 135} }

func sorted(lists ...[]float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(lists...))))
}

// AllRates are those of any standard.
func AllRates() []float64 { return sorted(Rates("802.11g"), Rates("802.11n"), Rates("802.11ac")) }

// Named is a radio by name: the standards that it speaks, and the keys of the field that it decides.
type Named struct {
	Name      string
	Standards []string
	Decides   []string
	// Rates and Channels are those of its width; nil: the standard's.
	Rates, Channels []float64
}

// Two radios by name.
const (
	Disc = "disc" // the disc as a radio
	NS2  = "ns2_wavelan"
)

// Known are the radios by name.
func Known() []Named {
	ofdm := []string{"802.11a", "802.11g"}
	receiver := []string{"noise_figure_db"}
	way := []string{"propagation", "path_loss_exponent", "reference_m"}
	all := slices.Concat(way, receiver, strengths())
	return []Named{
		{Name: NS2, Standards: []string{"802.11b"}, Decides: slices.Concat(all, []string{"carrier_sense_m"})},
		{Name: "dsss_orinoco", Standards: []string{"802.11b"}, Decides: receiver},
		{Name: "ofdm_2003", Standards: ofdm, Decides: receiver},
		{Name: "ofdm_recent", Standards: ofdm, Decides: receiver},
		{Name: "ht20", Standards: []string{"802.11n"}, Decides: receiver, Rates: ht20()},
		{Name: "ht40", Standards: []string{"802.11n"}, Decides: receiver, Rates: ht40(),
			Channels: wider(Channels("802.11n"))},
		{Name: "vht80", Standards: []string{"802.11ac"}, Decides: receiver},
		{Name: Disc, Standards: []string{"802.11a", "802.11b", "802.11g"},
			Decides: slices.Concat(way, VoidInDisc())},
	}
}

// Names are those of the radios by name.
func Names() (names []string) {
	for _, r := range Known() {
		names = append(names, r.Name)
	}
	return names
}

// DecidesPropagation reports whether a radio by name has its own propagation.
func DecidesPropagation(radio string) bool {
	r := ByName(radio)
	return r != nil && slices.Contains(r.Decides, "propagation")
}

// VoidInDisc are the keys of the field that change nothing in a disc, where only distance counts.
func VoidInDisc() []string {
	return slices.Concat([]string{"noise_figure_db"}, strengths(), []string{"tx_power_dbm", "unit_power_offset_db",
		"unit_gain_offset_db"})
}

func strengths() []string {
	return []string{"antenna_height_m", "antenna_gain_dbi", "unit_noise_offset_db", "shadowing", "fading",
		"carrier_sense_dbm", "energy_detect_dbm"}
}

// ByName returns the radio of a name, nil for a name that is none's.
func ByName(name string) *Named {
	for _, r := range Known() {
		if r.Name == name {
			return &r
		}
	}
	return nil
}

// CarrierSenseDbm is the power at which a frame whose start is noticed keeps the channel busy,
// where the field does not say: that of the radio's width (IEEE 802.11-2020, 17.3.10.6,
// 19.3.19.5.4 and 21.3.18.5.3).
func CarrierSenseDbm(radio string) float64 {
	switch radio {
	case "ht40":
		return -79
	case "vht80":
		return -76
	}
	return -82
}

// Of are the names of the radios without which a standard is nobody's; none for one of a real radio.
func Of(standard string) (names []string) {
	if !(wire.Radio{Standard: standard}).Emulated() {
		return nil
	}
	for _, r := range Known() {
		if slices.Contains(r.Standards, standard) {
			names = append(names, r.Name)
		}
	}
	return names
}
