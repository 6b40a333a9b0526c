package tree

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// nodeRange is a key of nodes that stands for several, n[01-28], and is taken in relays too.
var nodeRange = regexp.MustCompile(`^([a-z0-9-]*)\[([0-9]{1,3})-([0-9]{1,3})\]$`)

// spread writes ranges of nodes out.
type spread struct {
	findings *Findings
	factors  []string // whose levels are lists of relays
}

// SpreadRanges writes ranges of nodes out: in the section nodes, whose addresses
// then follow one another, in every list of relays, and in levels that are one.
func SpreadRanges(root *Node, f *Findings) *Node {
	p := spread{findings: f}
	for _, e := range root.Child("factors").EntriesOrNone() {
		if e.Value.TextAt("key") == "relays" {
			p.factors = append(p.factors, e.Key)
		}
	}
	nodes := root.Child("nodes")
	if nodes == nil || nodes.Shape != Map {
		return p.spreadRelays(root)
	}
	all := *nodes
	all.Entries = nil
	for _, e := range nodes.Entries {
		full := false
		for i, name := range p.namesIn(e.Key, e.At) {
			one := e
			one.Key = name
			switch {
			case full: // reported, and defined all the same: what names them is not at fault
				one.Value = &Node{Shape: Map, At: e.At, Home: e.At, Bad: true}
			case i > 0:
				one.Value = p.nodeAfter(e, i)
				full = one.Value.Bad
			}
			all.Entries = append(all.Entries, one)
		}
	}
	out := *root
	out.Entries = nil
	for _, e := range root.Entries {
		if e.Key == "nodes" {
			e.Value = &all
		}
		out.Entries = append(out.Entries, e)
	}
	return p.spreadRelays(&out)
}

// namesIn are the names that a range stands for; of any other text, itself.
func (p spread) namesIn(text string, at Position) []string {
	found := nodeRange.FindStringSubmatch(text)
	if found == nil {
		return []string{text}
	}
	first, errFirst := strconv.Atoi(found[2])
	last, errLast := strconv.Atoi(found[3])
	if errFirst != nil || errLast != nil || last < first || last-first >= wire.MaxNodes ||
		len(found[2]) != len(found[3]) {
		p.findings.Add(at, "%q is no range of nodes; allowed: numbers of equal length that count up, at most %d, such "+
			"as n[01-28]", text, wire.MaxNodes)
		return nil
	}
	var out []string
	for i := first; i <= last; i++ {
		out = append(out, fmt.Sprintf("%s%0*d", found[1], len(found[2]), i))
	}
	return out
}

// nodeAfter is the node that comes i after the first of a range; a bad one beyond its network.
func (p spread) nodeAfter(e Entry, i int) *Node {
	given := e.Value.Child("mesh_address")
	if given == nil || given.Shape != Text {
		return e.Value
	}
	first, err := netip.ParsePrefix(given.Text)
	if err != nil {
		return e.Value
	}
	addr := first.Addr()
	for range i {
		addr = addr.Next()
	}
	last := addr
	if first.Bits() < 31 { // the last is the broadcast address
		last = addr.Next()
	}
	if !first.Masked().Contains(last) {
		p.findings.Add(e.At, "nodes.%s: the network of %s has not so many addresses; allowed: a shorter range",
			e.Key, first)
		return &Node{Shape: Map, At: e.At, Home: e.At, Bad: true}
	}
	next := *given
	next.Text = netip.PrefixFrom(addr, first.Bits()).String()
	return Merge(e.Value, Nest("mesh_address", &next))
}

// spreadRelays writes ranges in lists of relays out, wherever a list stands, and in levels that are such lists.
func (p spread) spreadRelays(n *Node) *Node {
	if n == nil || n.Shape != Map {
		return n
	}
	out := *n
	out.Entries = make([]Entry, len(n.Entries))
	for i, e := range n.Entries {
		if e.Key == "relays" && e.Value.Shape == List {
			e.Value = p.spreadList(e.Value)
		} else {
			e.Value = p.spreadRelays(e.Value)
		}
		if slices.Contains(p.factors, e.Key) {
			e.Value = p.spreadLevels(e.Value)
		}
		out.Entries[i] = e
	}
	return &out
}

// spreadLevels does so in the levels of a factor whose key is relays.
func (p spread) spreadLevels(n *Node) *Node {
	levels := n.Child("levels")
	if levels == nil || levels.Shape != Map {
		return n
	}
	all := *levels
	all.Entries = slices.Clone(levels.Entries)
	for i, l := range all.Entries {
		if l.Value.Shape == List {
			all.Entries[i].Value = p.spreadList(l.Value)
		}
	}
	out := *n
	out.Entries = slices.Clone(n.Entries)
	for i, e := range out.Entries {
		if e.Key == "levels" {
			out.Entries[i].Value = &all
		}
	}
	return &out
}

func (p spread) spreadList(n *Node) *Node {
	out := *n
	out.Items = nil
	for _, item := range n.Items {
		if item.Shape != Text {
			out.Items = append(out.Items, item)
			continue
		}
		for _, name := range p.namesIn(item.Text, item.At) {
			out.Items = append(out.Items, NewText(name, item.At))
		}
	}
	return &out
}
