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

func (s schema) transport() object {
	return object{append(s.tcpKeys(),
		optional("window_bytes", number{1024, maxWindowBytes, false, true, "bytes"},
			"Socket buffer of flows that give none"))}
}

// toggle is on or off, as the papers' tables have it, or true or false.
type toggle struct{}

func (toggle) allowed() string { return "on or off" }

// check turns on and off into truth values: what reads the tree later knows no toggles.
func (r toggle) check(f *findings, path string, n *node) {
	switch {
	case n.bad || n.shape == shapeBool:
	case n.shape == shapeText && (n.text == "on" || n.text == "off"):
		n.shape, n.truth = shapeBool, n.text == "on"
	default:
		reject(f, path, n, r.allowed())
	}
}

func isOn(b *bool) bool { return b != nil && *b }

func isOff(b *bool) bool { return b != nil && !*b }

// transport judges what cannot go together.
func (c *check) transport() {
	c.need("tcp.variant", "the congestion control that every node pins")
	variant := c.tree.textAt("tcp.variant")
	if (variant == "sack" || variant == "fack") && isOff(c.tree.boolAt("tcp.sack")) {
		c.unfit("tcp.sack", "for variant "+variant+", which needs SACK", "on, or leave it out")
	}
	if variant == "reference" && isOn(c.tree.boolAt("tcp.fixed_rto")) {
		c.unfit("tcp.fixed_rto", "for variant reference, which has a timer of its own", "leave it out")
	}
	if err := tcpcc.CheckRTOMin(c.decodeTCP()); err != nil {
		c.add(c.tree.lookup("tcp.rto_min_ms").at, "trial.tcp.rto_min_ms: %v; allowed: from %d ms on", err,
			tcpcc.RTOMinFloorMs(c.decodeTCP()))
	}
}

func (c *check) decodeTCP() wire.TCP {
	var out wire.TCP
	c.tree.child("tcp").into(&c.p.findings, &out)
	return out
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
