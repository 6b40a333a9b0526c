package plan

import (
	"net/netip"
	"regexp"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/controller/plan/radios"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// formatVersion is the version of the campaign file that this program reads.
const formatVersion = 1

// Role names stand for nodes in a trial and so cannot name one.
var roleNames = []string{"car", "roadside", "sender", "receiver", "initiator", "relay", "none"}

const (
	nameForm  = `^[a-z0-9][a-z0-9-]{0,31}$`
	nodesForm = `^[a-z0-9][a-z0-9-]{0,31}(\[[0-9]{1,3}-[0-9]{1,3}\])?$`
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

// schema is the format, given what the file defines. Every key is declared once,
// with what it means: a trial's in protocols/wire, all others here or in the files
// of their section. The JSON Schema of campaigns, which editors use, is written
// from these declarations.
//
//go:generate go test -run "^TestFaultsAreReported$|^TestCampaignSchemaIsCurrent$" -update .
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
			"How the controller reaches the nodes: by a link of its own, so that the agents' port is closed to the "+
				"network under test for the run, or over the mesh; absent: either will do, and the port stays open"),
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
		optional("deviations", list{1, 40, text{500}, true},
			"In what the campaign is not as the paper has it, and how it was read where the paper is silent"),
	}}
}

// anything is a rule for parts that other code checks.
type anything struct{ words string }

func (anything) check(*tree.Findings, string, *tree.Node) {}

func (a anything) allowed() string { return a.words }

func (s schema) nodeTable() table {
	name := pattern{regexp.MustCompile(nameForm), nameWords}
	address := checked{text{32}, "an IPv4 host address with its prefix length, such as 10.77.0.1/24", isHostPrefix,
		map[string]any{"pattern": `^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(\.|/\b)){4}([89]|[12][0-9]|3[0-2])$`}}
	return table{what: "node", name: regexp.MustCompile(nodesForm),
		names: nameWords + ", or several, such as n[01-28]", reserved: roleNames, row: object{[]field{
			optional("unit", name, "The hardware that carries the node"),
			required("mesh_address", address, "IPv4 address on the interface under test, with the prefix length; of "+
				"several nodes the first one's, and the others have those after it"),
		}}}
}

// isHostPrefix reports whether a text is an address that a host can have, with
// its network's prefix length.
func isHostPrefix(n *tree.Node) bool {
	p, err := netip.ParsePrefix(n.Text)
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
//
// The keys that a node's trial has too are declared with it, in protocols/wire;
// keys.go lists them. What is written here the planner turns into something else.
func (s schema) trial() object {
	return object{append(s.trialKeys(),
		optional("warmup_s", number{0, maxWarmupS, false, false, "s before the window"}, "When background flows begin").
			or(0))}
}

func (s schema) node() reference { return reference{"node", s.nodes} }

func (s schema) relays() list { return list{1, 200, s.node(), true} }

func (s schema) carOrRoadside() reference { return s.roleOr("car", "roadside") }

// anyRole is a node, by name or by the role that has it in the trial.
func (s schema) anyRole() reference { return s.roleOr("car", "roadside", "sender", "receiver") }

func (s schema) traffic() table {
	return table{what: "flow", name: regexp.MustCompile(wordForm), names: wordWords, row: s.flow()}
}

// override is what a factor's level can say: a part of a trial, and the
// acceptance rules too, since a band may have to follow the speed.
func (s schema) override() object {
	t := s.trial()
	rules := optional("acceptance", s.acceptance(false), "The rules by which a trial of this level is accepted")
	t.fields = append(t.fields, rules)
	return t
}

// Bounds that are narrower in a campaign than on the wire.
const (
	maxCarMps2      = 9.8 // tyres on a dry road hold about 1 g: no ordinary car does more
	maxChannel      = 165
	maxTxPowerDbm   = 30 // the most that any 2.4 GHz rule allows (FCC 15.247)
	maxWindowBytes  = 64 << 20
	maxPayloadBytes = 1472 // UDP: what fits a 1500-byte MTU in one piece
)

// ownBSSID is an IBSS's id: an individual, locally administered address (IEEE 802.11-2020, 9.2.4.3.4).
func ownBSSID() pattern {
	return pattern{regexp.MustCompile(`^[0-9a-f][26ae](:[0-9a-f]{2}){5}$`),
		`six pairs of 0-9 and a-f, locally administered and not multicast, such as "02:11:22:33:44:55"`}
}

func anyRate() numberChoice { return numberChoice{radios.AllRates(), "Mbit/s"} }

func legacyRate() numberChoice { return numberChoice{radios.Rates("802.11g"), "Mbit/s"} }

// Client ports are a range of their own, so that no server may sit in it.
const (
	clientPortFirst = 20000
	clientPortLast  = 29999
)

func serverPort() rule {
	return checked{number{1024, 65535, false, true, ""},
		"a port from 1024 up to 65535, outside 20000-29999, which are the clients'",
		func(n *tree.Node) bool { return n.Number < clientPortFirst || n.Number > clientPortLast },
		map[string]any{"not": map[string]any{"minimum": clientPortFirst, "maximum": clientPortLast}}}
}

func flowName() pattern { return pattern{regexp.MustCompile(wordForm), wordWords} }

func flowKinds() choice { return choice{"iperf3_tcp", "iperf3_udp", wire.KindDelay, wire.KindCBR} }

func (s schema) flowEnds() reference {
	return s.roleOr("sender", "receiver", "car", "roadside", draw.Random)
}

func (s schema) flow() object {
	return object{append(s.flowKeys(),
		optional("flows", number{1, maxDrawn, false, true, ""}, "How many flows are drawn").or(1),
		optional("total_bps", number{1000, 1e9, false, false, "bit/s"},
			"Bit rate of all flows that are drawn together"))}
}

// acceptance has covariates only. A rule on a result (throughput, a loss, a
// round trip) has no key here on purpose: it would select among results.
func (s schema) acceptance(top bool) object {
	o := object{s.acceptanceKeys()}
	if top {
		attempts := required("attempts_max", number{1, 20, false, true, ""}, "Attempts at a trial, the first included")
		o.fields = append(o.fields, attempts)
	}
	return o
}

func fixModes() numberChoice { return numberChoice{[]float64{2, 3}, ""} }

func (s schema) calibration() object {
	mark := number{-5000, 5000, false, false, "m along the road from the roadside node's mark"}
	return object{[]field{
		required("marks_m", list{1, 50, mark, true}, "Where the car is parked, one pass each"),
		required("duration_s", number{1, 3600, false, false, "s"}, "Length of a pass's window"),
		optional("after_s", number{0, 3600, false, false, "s"}, "When the window opens: so long after the trial was "+
			"armed or, where the course has a site, after the car has stood at its mark").or(0),
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
