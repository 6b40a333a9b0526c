package plan

import (
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// tcpVariants are the papers' variants and the congestion controls of the
// kernel's own tree, by the kernel's names. Whether a node has one is its
// probe's to say.
func tcpVariants() choice {
	return choice{"tahoe", "reno", "newreno", "sack", "fack", "vegas", "westwood", "reference",
		"cubic", "bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "veno",
		"yeah"}
}

func transport() object {
	return object{[]field{
		optional("variant", tcpVariants(), "The congestion control, by the papers' or the kernel's name"),
		optional("classic", toggle{},
			"Whether what the papers' TCPs did not have is off: RACK, tail loss probes, F-RTO, timestamps").or(false),
		optional("sack", toggle{}, "Selective acknowledgements"),
		optional("delayed_ack", toggle{}, "Delayed acknowledgements; off: every segment is acknowledged at once"),
		optional("fixed_rto", toggle{}, "Whether from the second timeout in a row on the RTO is not doubled").or(false),
		optional("rto_min_ms", number{wire.RTOMinMsLeast, wire.RTOMinMsMost, false, true, "ms"}, "The least RTO"),
		optional("window_bytes", number{1024, 64 << 20, false, true, "bytes"}, "Socket buffer of flows that give none"),
		optional("window_packets", number{1, wire.MaxWindowPackets, false, true, "segments"},
			"The most that a sender has in the network"),
	}}
}

// toggle is on or off, as the papers' tables have it, or true or false.
type toggle struct{}

func (toggle) allowed() string { return "on or off" }

func (r toggle) check(f *findings, path string, n *node) {
	if n.bad || n.shape == shapeBool || n.shape == shapeText && (n.text == "on" || n.text == "off") {
		return
	}
	reject(f, path, n, r.allowed())
}

// toggleAt is the toggle at a dotted path, nil when absent or at fault.
func (n *node) toggleAt(path string) *bool {
	switch n.textAt(path) {
	case "on", "off":
		on := n.textAt(path) == "on"
		return &on
	}
	return n.boolAt(path)
}

func isOn(b *bool) bool { return b != nil && *b }

func isOff(b *bool) bool { return b != nil && !*b }

// transport judges what cannot go together.
func (c *check) transport() {
	c.need("tcp.variant", "the congestion control that every node pins")
	variant := c.tree.textAt("tcp.variant")
	if (variant == "sack" || variant == "fack") && isOff(c.tree.toggleAt("tcp.sack")) {
		c.unfit("tcp.sack", "for variant "+variant+", which needs SACK", "on, or leave it out")
	}
	if variant == "reference" && isOn(c.tree.toggleAt("tcp.fixed_rto")) {
		c.unfit("tcp.fixed_rto", "for variant reference, which has a timer of its own", "leave it out")
	}
	if err := tcpcc.CheckRTOMin(c.decodeTCP()); err != nil {
		c.add(c.tree.lookup("tcp.rto_min_ms").at, "trial.tcp.rto_min_ms: %v; allowed: from %d ms on", err,
			tcpcc.RTOMinFloorMs(c.decodeTCP()))
	}
}

func (c *check) decodeTCP() wire.TCP {
	m := c.tree.child("tcp")
	return wire.TCP{Variant: m.textAt("variant"), Classic: isOn(m.toggleAt("classic")), SACK: m.toggleAt("sack"),
		DelayedACK: m.toggleAt("delayed_ack"), FixedRTO: isOn(m.toggleAt("fixed_rto")),
		RTOMinMs: m.wholeAt("rto_min_ms"), WindowPackets: m.wholeAt("window_packets")}
}

// tcpWindow is a TCP flow's: its own, or the transport profile's.
func (c *check) tcpWindow(flow *node) *int {
	if own := flow.wholeAt("window_bytes"); own != nil || flow.textAt("kind") != "iperf3_tcp" {
		return own
	}
	return c.tree.wholeAt("tcp.window_bytes")
}

// checkReference keeps the reference TCP to rehearsals: only their radio knows
// why a frame was lost.
func (p *parse) checkReference(root *node, trials []wire.Trial) {
	if root.child("field") == nil && slices.ContainsFunc(trials, isReference) {
		p.findings.add(root.at, "trial.tcp.variant: %s",
			fmt.Sprintf("%q is for rehearsals only, and this campaign has no field; allowed: another variant, or a "+
				"field section", "reference"))
	}
}

func isReference(t wire.Trial) bool { return t.TCP.Variant == "reference" }
