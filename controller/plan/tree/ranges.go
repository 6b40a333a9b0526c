package tree

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// nodeRange is a key of nodes that stands for several, n[01-28], and is taken in relays too.
var nodeRange = regexp.MustCompile(`^([a-z0-9-]*)\[([0-9]{1,3})-([0-9]{1,3})\]$`)

// spread writes ranges of nodes out.
type spread struct{ findings *Findings }

// SpreadRanges writes ranges of nodes out: in the section nodes, whose addresses
// then follow one another, and in every list of relays.
func SpreadRanges(root *Node, f *Findings) *Node {
	p := spread{f}
	nodes := root.Child("nodes")
	if nodes == nil || nodes.Shape != Map {
		return p.spreadRelays(root)
	}
	all := *nodes
	all.Entries = nil
	for _, e := range nodes.Entries {
		for i, name := range p.namesIn(e.Key, e.At) {
			one := e
			one.Key = name
			if i > 0 {
				one.Value = p.nodeAfter(e, i)
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

// nodeAfter is the node that comes i after the first of a range.
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
	if !first.Masked().Contains(addr) {
		p.findings.Add(e.At, "nodes.%s: the network of %s has not so many addresses; allowed: a shorter range",
			e.Key, first)
		return e.Value
	}
	next := *given
	next.Text = netip.PrefixFrom(addr, first.Bits()).String()
	return Merge(e.Value, Nest("mesh_address", &next))
}

// spreadRelays writes ranges in lists of relays out, wherever a list stands.
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
		out.Entries[i] = e
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
