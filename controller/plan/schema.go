package plan

import (
	"fmt"
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
	nodes   []string
	units   []string
	factors []string
}

// schema is the format, given what the file defines. Every key is declared here
// or in the files of its section, once, with what it means; the JSON Schema of
// campaigns, which editors use, is written from these declarations.
//
//go:generate go test -run TestCampaignSchemaIsCurrent -update .
type schema struct{ names }

func (s schema) file() object {
	return object{[]field{
		required("fieldmesh", number{least: formatVersion, most: formatVersion, whole: true}, "Version of the format"),
		required("name", pattern{regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`), "1 to 40 of a-z, 0-9 and -"},
			"Name of the campaign, after which its runs are named"),
		required("title", text{200}, "Title, in one line"),
		optional("question", text{2000}, "The question that the campaign puts"),
		optional("asks", anything{"a list of effects"}, // checked in design.go: a factor's name is one
			"Effects that the question is about, which the report answers for first; absent: what the design varies"),
		optional("notes", text{4000}, "Whatever else a reader should know"),
		optional("paper", paper(), "The paper whose question it is; the report sets the paper's figures beside "+
			"the run's"),
		required("nodes", s.nodeTable(), "The nodes, by name"),
		optional("control", choice{wire.ControlOwn, wire.ControlMesh},
			"How the controller reaches the nodes: by a link of its own or over the mesh under test; absent: either "+
				"will do"),
		required("trial", s.trial(), "One trial; a factor's levels may set any of its keys"),
		// factors.go: what a level may be depends on the factor's key
		optional("factors", anything{"a mapping from a factor's name to its levels"},
			"What is varied; each combination of the factors' levels is a cell of the design"),
		// design.go: it names factors
		required("design", anything{"a mapping with the keys repetitions, order, seed, whole_plots, balance, " +
			"stop_when"},
			"How the cells become an order of trials"),
		required("acceptance", s.acceptance(true), "The rules by which a trial is accepted; none of them judges "+
			"a result"),
		optional("calibration", object{[]field{
			optional("before", s.calibration(), "Passes before the first block"),
			optional("after", s.calibration(), "Passes after the last block"),
		}}, "Passes with the car parked at marks: the day's radio without velocity"),
		optional("site", siteSheet(), "The site and vehicle sheet; it is kept and shown, never judged"),
		optional("field", s.fieldModel(), "What a rehearsal assumes of the road; on a road it is ignored"),
		optional("scales", s.scales(), // taken away before the rest is checked: see scaled
			"Declared reductions of the campaign, by name, for when there is less time"),
	}}
}

func paper() object {
	return object{[]field{
		required("name", choice(papers.IDs()), "The paper"),
		optional("scenario", pattern{regexp.MustCompile(wordForm), wordWords},
			"The paper's word for the scenario, where it has several"),
	}}
}

// anything is a rule for parts that other code checks.
type anything struct{ words string }

func (anything) check(*findings, string, *node) {}

func (a anything) allowed() string { return a.words }

func (s schema) nodeTable() table {
	name := pattern{regexp.MustCompile(nameForm), nameWords}
	address := checked{text{32}, "an IPv4 host address with its prefix length, such as 10.77.0.1/24", isHostPrefix,
		map[string]any{"pattern": `^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(\.|/\b)){4}([89]|[12][0-9]|3[0-2])$`}}
	return table{what: "node", name: regexp.MustCompile(nameForm), names: nameWords, reserved: roleNames,
		row: object{[]field{
			optional("unit", name, "The hardware that carries the node"),
			required("mesh_address", address, "IPv4 address on the interface under test, with the prefix length"),
		}}}
}

// isHostPrefix reports whether a text is an address that a host can have, with
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
		optional("car", n, "The node that moves"),
		optional("roadside", n, "The node that stands beside the road"),
		optional("sender", s.roleOr("car", "roadside"), "The node that sends the measured data, by name or role"),
		optional("receiver", s.roleOr("car", "roadside"), "The node that receives the measured data, by name or role"),
		optional("initiator", s.roleOr("car", "roadside", "sender", "receiver"),
			"The node whose gate opens the window, by name or role; absent: the car's, without a car the sender's"),
		optional("relays", list{1, 200, n, true}, "The nodes that only forward"),
		optional("speed_mps", number{0, maxSpeedMps, true, false, "m/s"}, "Target speed of the car"),
		optional("direction", choice{"outbound", "inbound"}, "Direction of the drive along the road").or("outbound"),
		optional("duration_s", number{1, 3600, false, false, "s"},
			"Length of the measuring window; absent in a segment: its length over the speed"),
		optional("course", course(), "Where the car drives relative to the roadside node"),
		optional("warmup_s", number{0, maxWarmupS, false, false, "s before the window"}, "When background flows begin").
			or(0),
		optional("still", boolean{}, "Whether the nodes of a rehearsal stay where their movement begins").or(false),
		optional("conditions", conditions(),
			"What a rehearsal's field is like in this trial, where not as section field says"),
		optional("gate", gate(), "When the window opens: all that is given here must hold at once"),
		optional("radio", s.radio(), "What the interface under test is to be"),
		optional("routing", routing(), "The routing protocol"),
		optional("tcp", transport(), "The transport profile, the same on every node; absent keys: as the "+
			"kernel has it"),
		optional("traffic", table{what: "flow", name: regexp.MustCompile(wordForm), names: wordWords, row: s.flow()},
			"The flows, by name"),
		optional("sample_hz", number{wire.SampleHzMin, wire.SampleHzMax, false, true, "samples of tcp_info a second"},
			"How often TCP is sampled").or(wire.SampleHzMin),
		optional("relay_sample_hz", number{1, wire.SampleHzMin, false, true, "samples a second of a node that " +
			"only relays"},
			"How often a relay is sampled").or(wire.SampleHzMin),
		optional("capture", object{[]field{
			required("snap_bytes", number{wire.SnapBytesMin, wire.SnapBytesMax, false, true, "bytes of each frame"},
				"How much of a frame is kept, from its link-layer header on"),
			optional("offloads", choice{wire.OffloadsOff, wire.OffloadsRecorded},
				"Whether offloads, which merge or split segments, are turned off or only recorded").
				or(wire.OffloadsOff),
		}}, "Packet captures at every node; absent: none"),
	}}
}

// override is what a factor's level can say: a part of a trial, and the
// acceptance rules too, since a band may have to follow the speed.
func (s schema) override() object {
	t := s.trial()
	rules := optional("acceptance", s.acceptance(false), "The rules by which a trial of this level is accepted")
	t.fields = append(t.fields, rules)
	return t
}

func routing() object {
	return object{[]field{
		optional("protocol", choice(wire.RoutingProtocols()), "The protocol, or the daemon that speaks it").
			or(noRouting),
		optional("hello_s", number{0.1, 60, false, false, "s"}, "Interval of the daemon's hellos; absent: its own"),
		optional("ready", choice(wire.RoutingReadiness()), "What arming waits for; absent: what suits the protocol"),
		optional("ready_s", number{1, wire.RoutingReadyMaxS, false, false, "s"},
			"How long arming waits at most").or(wire.RoutingReadyS),
		optional("probe_hz", number{wire.ProbeHzMin, wire.ProbeHzMax, false, false, "packets a second"},
			"How often a small packet goes there and back between the ends of the measured flow; absent: never"),
	}}
}

func course() object {
	along := number{-5000, 5000, false, false, "m along the road from the roadside node's mark"}
	return object{[]field{
		optional("kind", choice{"depart", "pass", "loop", "segment", "parked", "none"}, "Kind of the drive"),
		optional("start_m", along, "Where the car stands before it sets off"),
		optional("offset_m", number{0, 1000, false, false, "m beside the roadside node"},
			"How far the road is from the roadside node").or(0),
		optional("segment_m", along, "Where the segment begins, at whose edge the window opens"),
		optional("length_m", number{1, 10000, false, false, "m"}, "Length of the segment, or round the loop"),
		// Tyres on a dry road hold about 1 g: no ordinary car does more.
		optional("accel_mps2", number{0, 9.8, true, false, "m/s²"}, "How the car gathers speed"),
		optional("brake_mps2", number{0, 9.8, true, false, "m/s²"}, "How the car brakes"),
		optional("mark_m", along, "Where the parked car stands"),
		optional("site_lat_deg", number{-90, 90, false, false, "degrees"},
			"Latitude of the roadside node; absent: a rehearsal chooses"),
		optional("site_lon_deg", number{-180, 180, false, false, "degrees"},
			"Longitude of the roadside node; absent: a rehearsal chooses"),
		optional("heading_deg", number{0, 360, false, false, "degrees from true north"},
			"Bearing of the outbound drive"),
	}}
}

func gate() object {
	return object{[]field{
		optional("speed_band", boolean{}, "Whether the GPS speed must be in acceptance.speed_band_mps").or(false),
		optional("hold_s", number{0, 60, false, false, "s"}, "How long the speed must have been in the band").or(0),
		optional("place_m", number{-5000, 5000, false, false, "m along the road from the roadside node's mark"},
			"Where the car must have passed"),
		optional("after_s", number{0, 3600, false, false, "s since the trial was armed"},
			"When the window opens at the earliest"),
		optional("timeout_s", number{1, 3600, false, false, "s"}, "When the attempt is given up and rejected"),
		optional("lead_s", number{0.1, 10, false, false, "s from the first GO to the window"},
			"How much earlier GO is sent"),
	}}
}

func channel() number { return number{1, 165, false, true, ""} }

// Channels of IEEE 802.11-2020: 15.4.4.3 numbers the 2.4 GHz band (14, in
// Japan, is for DSSS and CCK only), annex E the 20 MHz channels of 5 GHz.
func channels(standard string) []float64 {
	switch standard {
	case "802.11a":
		return []float64{36, 40, 44, 48, 52, 56, 60, 64, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144,
			149, 153, 157, 161, 165}
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
		optional("mode", choice{"adhoc", "mesh", wire.ModeInfrastructure, "none"},
			"Kind of the network; none leaves the interface as it is"),
		optional("standard", choice{"802.11a", "802.11b", "802.11g"}, "Standard of the radio"),
		optional("channel", channel(), "Channel, one of the standard's"),
		optional("ssid", text{32}, "Name of the network"), // IEEE 802.11-2020, 9.4.2.2
		optional("bssid", bssid, "BSSID of the ad hoc network"),
		optional("legacy_rates_only", boolean{}, "Whether 802.11n and later (HT, VHT) stay off").or(false),
		// 30 dBm: the most that any 2.4 GHz rule allows (FCC 15.247)
		optional("tx_power_dbm", number{0, 30, false, false, "dBm"}, "Transmit power; absent: as the driver has it"),
		optional("rate_mbps", numberChoice{rates("802.11g"), "Mbit/s"}, "Fixed rate; absent: the driver's rate "+
			"control"),
		// dot11RTSThreshold (IEEE 802.11-2020, annex C)
		optional("rts_threshold_bytes", number{1, wire.RTSNever, false, true, "bytes"},
			fmt.Sprintf("Longer frames are announced by RTS, %d is never; absent: as the driver has it",
				wire.RTSNever)),
		optional("retry_limit", number{1, 255, false, true, ""},
			"How often a frame is sent at most; absent: as the driver has it"),
		optional("access_point", s.roleOr("car", "roadside", "sender", "receiver"),
			"The node that is the infrastructure's access point"),
	}}
}

// Client ports are a range of their own, so that no server may sit in it.
const (
	clientPortFirst = 20000
	clientPortLast  = 29999
)

func serverPort() rule {
	return checked{number{1024, 65535, false, true, ""},
		"a port from 1024 up to 65535, outside 20000-29999, which are the clients'",
		func(n *node) bool { return n.number < clientPortFirst || n.number > clientPortLast },
		map[string]any{"not": map[string]any{"minimum": clientPortFirst, "maximum": clientPortLast}}}
}

func (s schema) flow() object {
	start := number{-maxWarmupS, 3600, false, false, "s after the window opens; below 0 in the time of warmup_s"}
	ends := s.roleOr("sender", "receiver", "car", "roadside", drawn)
	return object{[]field{
		optional("kind", choice{"iperf3_tcp", "iperf3_udp", "cbr"}, "What iperf3 sends; cbr is iperf3_udp in the "+
			"background"),
		optional("background", boolean{}, "Whether the flow only loads the network and is not measured").or(false),
		optional("from", ends, "The node that sends, by name or role, or drawn by the seed").or("sender"),
		optional("to", ends, "The node that receives, by name or role, or drawn by the seed").or("receiver"),
		optional("flows", number{1, maxDrawn, false, true, ""}, "How many flows are drawn").or(1),
		optional("reverse", boolean{}, "Whether the receiver is iperf3's client (iperf3 -R)").or(false),
		optional("port", serverPort(), "Port of iperf3's server").or(iperf3Port),
		optional("streams", number{1, 128, false, true, ""}, // iperf3's own limit (MAX_STREAMS)
			"Parallel streams").or(oneStream),
		optional("window_bytes", number{1024, 64 << 20, false, true, "bytes"},
			"Socket buffer; absent: tcp.window_bytes"),
		// UDP: what fits a 1500-byte MTU in one piece. TCP (the MSS): the kernel's floor is 88 (TCP_MIN_MSS).
		optional("payload_bytes", number{16, 1472, false, true, "bytes"}, "Payload of a datagram, or TCP's MSS"),
		optional("bitrate_bps", number{100, 1e9, false, false, "bit/s"}, // a packet of 512 bytes in 41 s
			"Constant bit rate of a UDP flow"),
		optional("total_bps", number{1000, 1e9, false, false, "bit/s"}, "Bit rate of all flows that are drawn "+
			"together"),
		optional("start_s", start, "When the flow begins; absent: with the window, in the background with warmup_s"),
		optional("duration_s", number{0.1, 3600, false, false, "s"}, "How long the flow lasts; absent: to the "+
			"window's end"),
	}}
}

// acceptance has covariates only. A rule on a result (throughput, a loss, a
// round trip) has no key here on purpose: it would select among results.
func (s schema) acceptance(top bool) object {
	o := object{[]field{
		optional("speed_band_mps", number{0, 10, true, false, "m/s either side of the target"},
			"How far the car's speed may be off"),
		optional("in_band_share_min", number{0, 1, true, false, ""}, "Least share of the window with the speed in "+
			"the band"),
		optional("fix_mode_min", numberChoice{[]float64{2, 3}, ""}, "Least mode of the GPS fix: two or three "+
			"dimensions"),
		optional("fix_age_ms_max", number{50, 60000, false, false, "ms"}, "Greatest age of a GPS fix"),
		optional("clock_error_ms_max", number{0, 10000, true, false, "ms"}, "Greatest uncertainty of the "+
			"clocks' offset"),
		optional("lateness_share_max", number{0, 1, true, false, ""},
			"Greatest share of frames that a rehearsal's radio handled late"),
		optional("hops_min", number{1, wire.MaxNodes - 1, false, true, "hops"}, // of a cell: see the run's end
			"Least hops between sender and receiver, as the forwarding showed"),
	}}
	if top {
		attempts := required("attempts_max", number{1, 20, false, true, ""}, "Attempts at a trial, the first included")
		o.fields = append(o.fields, attempts)
	}
	return o
}

func (s schema) calibration() object {
	mark := number{-5000, 5000, false, false, "m along the road from the roadside node's mark"}
	return object{[]field{
		required("marks_m", list{1, 50, mark, true}, "Where the car is parked, one pass each"),
		required("duration_s", number{1, 3600, false, false, "s"}, "Length of a pass's window"),
		optional("after_s", number{0, 3600, false, false, "s since the trial was armed"},
			"When the window opens").or(0),
		optional("factors", list{1, 16, text{32}, true}, // that they are factors is checked in calibration.go
			"Factors in each of whose levels the passes are made; the others stay as the section trial has them"),
	}}
}

func siteSheet() object {
	return object{[]field{
		optional("place", text{500}, "Where it was"),
		optional("road", text{500}, "The road: surface, slope, what stands beside it"),
		optional("lane", text{200}, "The lane that the car drove in"),
		optional("vehicle", text{200}, "The car"),
		optional("antenna", text{500}, "The antennas"),
		optional("antenna_height_m", number{0, 100, false, false, "m"}, "Height of the antennas over the road"),
		optional("placement", text{500}, "Where in the car and beside the road the nodes were"),
		optional("occupants", number{0, 20, false, true, ""}, "People in the car"),
		optional("weather", text{500}, "The weather"),
		optional("temperature_c", number{-60, 60, false, false, "°C"}, "Temperature of the air"),
		optional("traffic", text{500}, "Other traffic on the road"),
		optional("notes", text{4000}, "Whatever else there is to say"),
	}}
}
