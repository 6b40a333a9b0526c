package topology

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// Path is the flow's path from a moment on.
type Path struct {
	S     float64 // since the window opened; the first may lie before
	Nodes []string
	Whole bool   // it ends at the receiver
	Out   string // the next node, which is out of reach; empty where there is no next
}

// Hops is how many links a whole path has.
func (p Path) Hops() int { return len(p.Nodes) - 1 }

// table is a node's routes at a moment.
type table map[netip.Prefix]netip.Addr

func (t table) apply(c change) {
	if c.action == "delete" {
		delete(t, c.destination)
		return
	}
	t[c.destination] = c.next
}

// next is the longest prefix's next hop.
func (t table) next(to netip.Addr) (netip.Addr, bool) {
	var best netip.Prefix
	for p := range t {
		if p.Contains(to) && (!best.IsValid() || p.Bits() > best.Bits()) {
			best = p
		}
	}
	return t[best], best.IsValid()
}

// Paths are the flow's paths over time, by what each node's kernel had as the
// next hop at the moment, or, where packets hold their route, by what the
// sender put into them. Each differs from the one before. A way is no more one
// when its packets are lost out of reach, where the radio reports that.
func (m *Mesh) Paths() []Path {
	if len(m.ways) > 0 {
		return m.broken(m.ways)
	}
	return m.broken(m.kernelPaths())
}

func (m *Mesh) kernelPaths() []Path {
	type dated struct {
		change
		node string
	}
	var all []dated
	for node, list := range m.changes {
		for _, c := range list {
			all = append(all, dated{c, node})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int {
		switch {
		case a.s < b.s:
			return -1
		case a.s > b.s:
			return 1
		}
		return 0
	})
	tables := map[string]table{}
	for _, n := range m.Nodes {
		tables[n] = table{}
	}
	var out []Path
	for i, c := range all {
		if tables[c.node] == nil {
			continue
		}
		tables[c.node].apply(c.change)
		if i+1 < len(all) && all[i+1].s == c.s {
			continue
		}
		p := m.walk(tables)
		p.S = c.s
		if len(out) == 0 || !slices.Equal(out[len(out)-1].Nodes, p.Nodes) {
			out = append(out, p)
		}
	}
	return out
}

// broken ends every way where one of its links was lost and nothing came
// through any more until the way was changed.
func (m *Mesh) broken(paths []Path) []Path {
	var out []Path
	for i, p := range paths {
		out = append(out, p)
		end := m.Seconds
		if i+1 < len(paths) {
			end = paths[i+1].S
		}
		if p.Whole {
			if cut, ok := m.cut(p, end); ok {
				out = append(out, cut)
			}
		}
	}
	return out
}

// cut finds the first frame that was lost out of reach on a way after the last
// data, or answer to a probe, that came over it before a moment.
func (m *Mesh) cut(p Path, end float64) (Path, bool) {
	since := max(p.S, lastBefore(m.answers, end), lastBefore(m.grew(), end))
	for _, f := range m.lost {
		i := slices.Index(p.Nodes, f.from)
		if f.s >= since && f.s < end && i >= 0 && i+1 < len(p.Nodes) && p.Nodes[i+1] == f.to {
			return Path{S: f.s, Nodes: p.Nodes[: i+1 : i+1], Out: f.to}, true
		}
	}
	return Path{}, false
}

// lastBefore is the last of sorted moments before another, or −∞.
func lastBefore(moments []float64, s float64) float64 {
	i, _ := slices.BinarySearch(moments, s)
	if i == 0 {
		return math.Inf(-1)
	}
	return moments[i-1]
}

// walk follows next hops from the sender until there is none, the receiver is
// reached, or a node comes again.
func (m *Mesh) walk(tables map[string]table) Path {
	p := Path{Nodes: []string{m.From}}
	to := m.byNode[m.To]
	for at := m.From; at != m.To; {
		next, ok := tables[at].next(to)
		at = m.addresses[next]
		if !ok || at == "" || slices.Contains(p.Nodes, at) {
			return p
		}
		p.Nodes = append(p.Nodes, at)
	}
	p.Whole = true
	return p
}

// PathAt is the flow's path at a moment.
func (m *Mesh) PathAt(s float64) Path {
	if p := latest(m.Paths(), s, func(p Path) float64 { return p.S }); p != nil {
		return *p
	}
	return Path{Nodes: []string{m.From}, S: s}
}

// Outage is the longest time inside the window in which something was missing.
type Outage struct{ FromS, Seconds float64 }

// WaysKnown reports whether the whole paths are known to have been ways: a field that did not
// tell all its losses may not have told the one that ended a way.
func (m *Mesh) WaysKnown() bool { return !m.untold }

// GapsKnown reports whether the flow is known to have had no way where no whole path is told.
// A node of batman-adv goes by hardware addresses, and tells a route only to an address that
// it has seen resolved: there, what is not told throughout is not known.
func (m *Mesh) GapsKnown() bool { return m.Protocol != batman || m.RouteOutage().Seconds == 0 }

// OutagesKnown reports whether the flow had a way where a whole path is told, and none
// elsewhere.
func (m *Mesh) OutagesKnown() bool { return m.WaysKnown() && m.GapsKnown() }

const batman = "batman-adv"

// RouteOutage is the longest time in which the flow had no whole path. See OutagesKnown.
func (m *Mesh) RouteOutage() Outage {
	var worst Outage
	paths := m.Paths()
	at := func(i int) float64 { return min(max(paths[i].S, 0), m.Seconds) }
	if len(paths) == 0 {
		return Outage{0, m.Seconds}
	}
	gap := func(from, to float64) {
		if to-from > worst.Seconds {
			worst = Outage{from, to - from}
		}
	}
	gap(0, at(0))
	for i := 0; i < len(paths); {
		if paths[i].Whole {
			i++
			continue
		}
		k := i
		for k < len(paths) && !paths[k].Whole {
			k++
		}
		end := m.Seconds
		if k < len(paths) {
			end = at(k)
		}
		gap(at(i), end)
		i = k
	}
	return worst
}

// TCPOutage returns the longest time in which the receiver got nothing of the
// measured flows, to within the beat of its samples. It reports false when the
// receiver was not sampled, or its sampler stalled: then nobody knows. Where its sockets were
// sampled and there was none, it got nothing in the whole window.
func (m *Mesh) TCPOutage() (Outage, bool) {
	sampled := len(m.received) > 0 || m.tcp && m.edges["open"] && m.edges["close"]
	if !sampled || m.stalled {
		return Outage{}, false
	}
	return m.longestGap(m.grew()), true
}

// grew returns the moments within the window at which a data socket of the
// receiver had new bytes, sorted.
func (m *Mesh) grew() (out []float64) {
	for _, samples := range m.received {
		var last uint64
		for _, x := range samples {
			if x.bytes > last && x.s >= 0 && x.s <= m.Seconds {
				out = append(out, x.s)
			}
			last = max(last, x.bytes)
		}
	}
	slices.Sort(out)
	return out
}

// PingOutage is the longest time in which no probe came back to the flow's
// sender; false when none were sent, or nobody knows when they came back.
func (m *Mesh) PingOutage() (Outage, bool) { return m.longestGap(m.answers), m.probed }

// longestGap is the longest time of the window without any of the moments,
// which are sorted.
func (m *Mesh) longestGap(moments []float64) Outage {
	var worst Outage
	since := 0.0
	gap := func(to float64) {
		if to-since > worst.Seconds {
			worst = Outage{since, to - since}
		}
	}
	for _, s := range moments {
		if s >= 0 && s <= m.Seconds {
			gap(s)
			since = s
		}
	}
	gap(m.Seconds)
	return worst
}

// PathText is the flow's path over the window, a line for each change.
func (m *Mesh) PathText() string {
	var b strings.Builder
	for _, p := range m.PathsInWindow() {
		fmt.Fprintf(&b, "%7.2f s  %s\n", p.S, p)
	}
	if !m.WaysKnown() {
		b.WriteString("The field did not tell all its losses: of these ways some may have carried nothing.\n")
	}
	return b.String()
}

// PathsInWindow are the paths from the window's opening to its close: the first
// is the one that was there at the opening.
func (m *Mesh) PathsInWindow() []Path {
	first := m.PathAt(0)
	first.S = 0
	out := []Path{first}
	for _, p := range m.Paths() {
		if p.S > 0 && p.S <= m.Seconds && p.String() != out[len(out)-1].String() {
			out = append(out, p)
		}
	}
	return out
}

// String is a path in words.
func (p Path) String() string {
	text := strings.Join(p.Nodes, " → ")
	if p.Out != "" {
		return text + " → " + p.Out + " is out of reach"
	}
	if !p.Whole {
		return text + " → no route"
	}
	return fmt.Sprintf("%s (%d hops)", text, p.Hops())
}
