package plan

import (
	"slices"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// tcpVariants are the papers' variants and the congestion controls of the kernel's own tree, by the kernel's names.
// Whether a node has one is its probe's to say.
func tcpVariants() choice {
	return choice{"tahoe", "reno", "newreno", "sack", "fack", "vegas", "vegas1995", "westwood", "westwood2001",
		"reference", "cubic", "bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv",
		"scalable", "veno", "yeah"}
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
func (r toggle) check(f *tree.Findings, path string, n *tree.Node) {
	switch {
	case n.Bad || n.Shape == tree.Bool:
	case n.Shape == tree.Text && (n.Text == "on" || n.Text == "off"):
		n.Shape, n.Truth = tree.Bool, n.Text == "on"
	default:
		reject(f, path, n, r.allowed())
	}
}

func isOn(b *bool) bool { return b != nil && *b }

func isOff(b *bool) bool { return b != nil && !*b }

// transport judges what cannot go together.
func (c *check) transport() {
	c.need("tcp.variant", "the congestion control that every node pins")
	variant := c.tree.TextAt("tcp.variant")
	if (variant == "sack" || variant == "fack") && isOff(c.tree.BoolAt("tcp.sack")) {
		c.unfit("tcp.sack", "for variant "+variant+", which needs SACK", "on, or leave it out")
	}
	if variant == "reference" && isOn(c.tree.BoolAt("tcp.fixed_rto")) {
		c.unfit("tcp.fixed_rto", "for variant reference, which has a timer of its own", "leave it out")
	}
	if err := tcpcc.CheckRTOMin(c.decodeTCP()); err != nil {
		c.add(c.tree.Lookup("tcp.rto_min_ms").At, "trial.tcp.rto_min_ms: %v", err)
	}
	if err := tcpcc.CheckRTOMax(c.decodeTCP()); err != nil {
		c.add(c.tree.Lookup("tcp.rto_max_ms").At, "trial.tcp.rto_max_ms: %v", err)
	}
}

func (c *check) decodeTCP() wire.TCP {
	var out wire.TCP
	c.tree.Child("tcp").Into(&c.p.findings, &out)
	return out
}

// tcpWindow is a TCP flow's: its own, or the transport profile's.
func (c *check) tcpWindow(flow *tree.Node) *int {
	if own := flow.WholeAt("window_bytes"); own != nil || flow.TextAt("kind") != "iperf3_tcp" {
		return own
	}
	return c.tree.WholeAt("tcp.window_bytes")
}

// checkReference keeps the reference TCP to rehearsals: only their radio knows why a frame was lost.
func (p *parse) checkReference(root *tree.Node, trials []wire.Trial) {
	if root.Child("field") == nil && slices.ContainsFunc(trials, isReference) {
		p.findings.Add(root.At, `trial.tcp.variant: "reference" is for rehearsals only, and this campaign has `+
			"no field; allowed: another variant, or a field section")
	}
}

func isReference(t wire.Trial) bool { return t.TCP.Variant == "reference" }
