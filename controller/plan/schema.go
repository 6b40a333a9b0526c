package plan

import (
	"net/netip"
	"regexp"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// formatVersion is the version of the campaign file that this program reads.
const formatVersion = 1

// Role names stand for nodes in a trial and so cannot name one.
var roleNames = []string{"car", "roadside", "sender", "receiver", "initiator", "relay", "none"}

const (
	nameForm  = `^[a-z0-9][a-z0-9-]{0,31}$`
	nameWords = "1 to 32 of a-z, 0-9 and -, not beginning with -"
	wordForm  = `^[a-z][a-z0-9_]{0,31}$`
	wordWords = "1 to 32 of a-z, 0-9 and _, beginning with a letter"
	labelForm = `^[A-Za-z0-9][A-Za-z0-9_.+-]{0,31}$`
	labelWord = "1 to 32 of letters, digits, _, ., + and -, beginning with a letter or digit"
)

// maxSpeedMps is 216 km/h: faster than any road, so that a speed given in
// km/h stands out.
const maxSpeedMps = 60

// names are what the file defines and refers to elsewhere; nil while the
// definitions themselves are at fault.
type names struct {
	nodes []string
	units []string
}

// schema is the format, given what the file defines.
type schema struct{ names }

func (s schema) file() object {
	return object{[]field{
		{"fieldmesh", number{least: formatVersion, most: formatVersion, whole: true}, true},
		{"name", pattern{regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`), "1 to 40 of a-z, 0-9 and -"}, true},
		{"title", text{200}, true},
		{"question", text{2000}, false},
		{"notes", text{4000}, false},
		{"paper", object{[]field{{"name", choice(papers.IDs()), true}, {"scenario", pattern{regexp.MustCompile(wordForm), wordWords}, false}}}, false},
		{"nodes", s.nodeTable(), true},
		{"control", choice{wire.ControlOwn, wire.ControlMesh}, false},
		{"trial", s.trial(), true},
		{"factors", anything{"a mapping from a factor's name to its levels"}, false},                                 // checked in cells.go: a level's shape hangs on the factor's key
		{"design", anything{"a mapping with the keys repetitions, order, seed, whole_plots, balance, enough"}, true}, // checked in cells.go: a balanced key can be any key of a trial
		{"acceptance", s.acceptance(true), true},
		{"calibration", object{[]field{{"before", s.calibration(), false}, {"after", s.calibration(), false}}}, false},
		{"site", siteSheet(), false},
		{"field", s.fieldModel(), false},
		{"scales", s.scales(), false}, // taken away before the rest is checked: see scaled
	}}
}

// anything is a rule for parts that other code checks.
type anything struct{ words string }

func (anything) check(*findings, string, *node) {}

func (a anything) allowed() string { return a.words }

func (s schema) nodeTable() table {
	name := pattern{regexp.MustCompile(nameForm), nameWords}
	return table{what: "node", name: regexp.MustCompile(nameForm), names: nameWords, reserved: roleNames,
		row: object{[]field{
			{"unit", name, false},
			{"mesh_address", checked{text{32}, "an IPv4 host address with its prefix length, such as 10.77.0.1/24", isHostPrefix}, true},
		}}}
}

// isHostPrefix tells whether a text is an address that a host can have, with
// its network's prefix length.
func isHostPrefix(n *node) bool {
	p, err := netip.ParsePrefix(n.text)
	if err != nil || !p.Addr().Is4() || p.Bits() < 8 || !p.Addr().IsGlobalUnicast() {
		return false
	}
	// A network of two addresses has neither its own nor a broadcast address (RFC 3021).
	return p.Bits() >= 31 || (p.Addr() != p.Masked().Addr() && p.Addr() != broadcast(p))
}

// broadcast is the last address of an IPv4 network.
func broadcast(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(a)
}

// roleOr allows a role's name where a node's name is.
func (s schema) roleOr(roles ...string) reference {
	if s.nodes == nil {
		return reference{what: "node or role"}
	}
	return reference{"node or role", append(slices.Clone(roles), s.nodes...)}
}

// trial is what one trial can say. Nothing in it is required here: a factor's
// level may bring what the base leaves out, and completeness is judged per cell.
func (s schema) trial() object {
	n := reference{"node", s.nodes}
	return object{[]field{
		{"car", n, false},
		{"roadside", n, false},
		{"sender", s.roleOr("car", "roadside"), false},
		{"receiver", s.roleOr("car", "roadside"), false},
		{"initiator", s.roleOr("car", "roadside", "sender", "receiver"), false},
		{"relays", list{1, 200, n, true}, false},
		{"speed_mps", number{0, maxSpeedMps, true, false, "m/s"}, false},
		{"direction", choice{"outbound", "inbound"}, false},
		{"duration_s", number{1, 3600, false, false, "s"}, false},
		{"course", course(), false},
		{"warmup_s", number{0, maxWarmupS, false, false, "s before the window"}, false},
		{"still", boolean{}, false},
		{"conditions", conditions(), false},
		{"gate", gate(), false},
		{"radio", s.radio(), false},
		{"routing", routing(), false},
		{"tcp", transport(), false},
		{"traffic", table{what: "flow", name: regexp.MustCompile(wordForm), names: wordWords, row: s.flow()}, false},
		{"sample_hz", number{wire.SampleHzMin, wire.SampleHzMax, false, true, "samples of tcp_info a second"}, false},
		{"relay_sample_hz", number{1, wire.SampleHzMin, false, true, "samples a second of a node that only relays"}, false},
		{"capture", object{[]field{
			{"snap_bytes", number{wire.SnapBytesMin, wire.SnapBytesMax, false, true, "bytes of each frame"}, true},
			{"offloads", choice{wire.OffloadsOff, wire.OffloadsRecorded}, false},
		}}, false},
	}}
}

// override is what a factor's level can say: a part of a trial, and the
// acceptance rules too, since a band may have to follow the speed.
func (s schema) override() object {
	t := s.trial()
	t.fields = append(t.fields, field{"acceptance", s.acceptance(false), false})
	return t
}

func routing() object {
	return object{[]field{
		{"protocol", choice(wire.RoutingProtocols()), false},
		{"hello_s", number{0.1, 60, false, false, "s"}, false},
		{"ready", choice(wire.RoutingReadiness()), false},
		{"ready_s", number{1, wire.RoutingReadyMaxS, false, false, "s"}, false},
		{"probe_hz", number{wire.ProbeHzMin, wire.ProbeHzMax, false, false, "packets a second"}, false},
	}}
}

func course() object {
	return object{[]field{
		{"kind", choice{"depart", "pass", "loop", "segment", "parked", "none"}, false},
		{"start_m", number{-5000, 5000, false, false, "m along the road from the roadside node's mark"}, false},
		{"offset_m", number{0, 1000, false, false, "m beside the roadside node"}, false},
		{"segment_m", number{-5000, 5000, false, false, "m along the road from the roadside node's mark"}, false},
		{"length_m", number{1, 10000, false, false, "m"}, false},
		// Tyres on a dry road hold about 1 g: no ordinary car does more.
		{"accel_mps2", number{0, 9.8, true, false, "m/s²"}, false},
		{"brake_mps2", number{0, 9.8, true, false, "m/s²"}, false},
		{"mark_m", number{-5000, 5000, false, false, "m along the road from the roadside node's mark"}, false},
		{"site_lat_deg", number{-90, 90, false, false, "degrees"}, false},
		{"site_lon_deg", number{-180, 180, false, false, "degrees"}, false},
		{"heading_deg", number{0, 360, false, false, "degrees from true north"}, false},
	}}
}

func gate() object {
	return object{[]field{
		{"speed_band", boolean{}, false},
		{"hold_s", number{0, 60, false, false, "s"}, false},
		{"place_m", number{-5000, 5000, false, false, "m along the road from the roadside node's mark"}, false},
		{"after_s", number{0, 3600, false, false, "s since the trial was armed"}, false},
		{"timeout_s", number{1, 3600, false, false, "s"}, false},
		{"lead_s", number{0.1, 10, false, false, "s from the first GO to the window"}, false},
	}}
}

// Channels of IEEE 802.11-2020: 15.4.4.3 numbers the 2.4 GHz band (14, in
// Japan, is for DSSS and CCK only), annex E the 20 MHz channels of 5 GHz.
func channels(standard string) []float64 {
	switch standard {
	case "802.11a":
		return []float64{36, 40, 44, 48, 52, 56, 60, 64, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144, 149, 153, 157, 161, 165}
	case "802.11b":
		return []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	case "802.11g":
		return []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	}
	return nil
}

// rates are the legacy rates in Mbit/s: IEEE 802.11-2020 clauses 15 and 16
// (DSSS and CCK) and 17 (OFDM); an 802.11g station has both (clause 18).
func rates(standard string) []float64 {
	cck, ofdm := []float64{1, 2, 5.5, 11}, []float64{6, 9, 12, 18, 24, 36, 48, 54}
	switch standard {
	case "802.11a":
		return ofdm
	case "802.11b":
		return cck
	case "802.11g":
		return append(cck, ofdm...)
	}
	return nil
}

func (s schema) radio() object {
	// An IBSS's id is an individual, locally administered address (IEEE 802.11-2020, 9.2.4.3.4).
	bssid := pattern{regexp.MustCompile(`^[0-9a-f][26ae](:[0-9a-f]{2}){5}$`),
		`six pairs of 0-9 and a-f, locally administered and not multicast, such as "02:11:22:33:44:55"`}
	return object{[]field{
		{"mode", choice{"adhoc", "mesh", wire.ModeInfrastructure, "none"}, false},
		{"standard", choice{"802.11a", "802.11b", "802.11g"}, false},
		{"channel", number{1, 165, false, true, ""}, false},
		{"ssid", text{32}, false}, // IEEE 802.11-2020, 9.4.2.2
		{"bssid", bssid, false},
		{"legacy_rates_only", boolean{}, false},
		{"tx_power_dbm", number{0, 30, false, false, "dBm"}, false}, // 30 dBm: the most that any 2.4 GHz rule allows (FCC 15.247)
		{"rate_mbps", numberChoice{rates("802.11g"), "Mbit/s"}, false},
		{"rts_threshold_bytes", number{1, wire.RTSNever, false, true, "bytes"}, false}, // dot11RTSThreshold (IEEE 802.11-2020, annex C)
		{"retry_limit", number{1, 255, false, true, ""}, false},
		{"access_point", s.roleOr("car", "roadside", "sender", "receiver"), false},
	}}
}

// Client ports are a range of their own, so that no server may sit in it.
const (
	clientPortFirst = 20000
	clientPortLast  = 29999
)

func (s schema) flow() object {
	ends := s.roleOr("sender", "receiver", "car", "roadside", drawn)
	return object{[]field{
		{"kind", choice{"iperf3_tcp", "iperf3_udp", "cbr"}, false},
		{"background", boolean{}, false},
		{"from", ends, false},
		{"to", ends, false},
		{"flows", number{1, maxDrawn, false, true, ""}, false},
		{"reverse", boolean{}, false},
		{"port", checked{number{1024, 65535, false, true, ""}, "a port from 1024 up to 65535, outside 20000-29999, which are the clients'", func(n *node) bool {
			return n.number < clientPortFirst || n.number > clientPortLast
		}}, false},
		{"streams", number{1, 128, false, true, ""}, false}, // iperf3's own limit (MAX_STREAMS)
		{"window_bytes", number{1024, 64 << 20, false, true, "bytes"}, false},
		// UDP: what fits a 1500-byte MTU in one piece. TCP (the MSS): the kernel's floor is 88 (TCP_MIN_MSS).
		{"payload_bytes", number{16, 1472, false, true, "bytes"}, false},
		{"bitrate_bps", number{100, 1e9, false, false, "bit/s"}, false}, // a packet of 512 bytes in 41 s
		{"total_bps", number{1000, 1e9, false, false, "bit/s"}, false},
		{"start_s", number{-maxWarmupS, 3600, false, false, "s after the window opens; below 0 in the time of warmup_s"}, false},
		{"duration_s", number{0.1, 3600, false, false, "s"}, false},
	}}
}

// acceptance has covariates only. A rule on a result (throughput, a loss, a
// round trip) has no key here on purpose: it would select among results.
func (s schema) acceptance(top bool) object {
	o := object{[]field{
		{"speed_band_mps", number{0, 10, true, false, "m/s either side of the target"}, false},
		{"in_band_share_min", number{0, 1, true, false, ""}, false},
		{"fix_mode_min", numberChoice{[]float64{2, 3}, ""}, false},
		{"fix_age_ms_max", number{50, 60000, false, false, "ms"}, false},
		{"clock_error_ms_max", number{0, 10000, true, false, "ms"}, false},
		{"lateness_share_max", number{0, 1, true, false, ""}, false},
		{"hops_min", number{1, wire.MaxNodes - 1, false, true, "hops"}, false}, // of a cell: see the run's end
	}}
	if top {
		o.fields = append(o.fields, field{"attempts_max", number{1, 20, false, true, ""}, true})
	}
	return o
}

func (s schema) calibration() object {
	return object{[]field{
		{"marks_m", list{1, 50, number{-5000, 5000, false, false, "m along the road from the roadside node's mark"}, true}, true},
		{"duration_s", number{1, 3600, false, false, "s"}, true},
		{"after_s", number{0, 3600, false, false, "s since the trial was armed"}, false},
		{"factors", list{1, 16, text{32}, true}, false}, // that they are factors is checked in cells.go
	}}
}

func siteSheet() object {
	return object{[]field{
		{"place", text{500}, false},
		{"road", text{500}, false},
		{"lane", text{200}, false},
		{"vehicle", text{200}, false},
		{"antenna", text{500}, false},
		{"antenna_height_m", number{0, 100, false, false, "m"}, false},
		{"placement", text{500}, false},
		{"occupants", number{0, 20, false, true, ""}, false},
		{"weather", text{500}, false},
		{"temperature_c", number{-60, 60, false, false, "°C"}, false},
		{"traffic", text{500}, false},
		{"notes", text{4000}, false},
	}}
}
