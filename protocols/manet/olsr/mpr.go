package olsr

import (
	"net/netip"
	"slices"
)

// candidate is a neighbour that could become an MPR, while they are chosen.
type candidate struct {
	nb     *neighbor
	covers []int // the 2-hop neighbours that it reaches, by index
	degree int   // D(y)
	chosen bool
}

// chooseMPRs is section 8.3.1 with the coverage of section 16.2, for each
// interface; the MPR set is the union.
func (n *Node) chooseMPRs() {
	n.mprsChanged = false
	before := n.mprList()
	for _, nb := range n.neighbors {
		nb.mpr = false
	}
	if n.config.ETX {
		n.chooseByCost()
	} else {
		for i := range n.ifaces {
			n.chooseFor(i)
		}
	}
	if after := n.mprList(); !slices.Equal(before, after) {
		if n.config.TCRedundancy == 1 {
			n.advertisedChanged = true
		}
		if n.config.TriggeredHello {
			n.hurryHellos()
		}
	}
}

func (n *Node) mprList() []netip.Addr {
	var out []netip.Addr
	for _, nb := range n.neighbors {
		if nb.mpr {
			out = append(out, nb.main)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// chooseFor chooses for one interface.
func (n *Node) chooseFor(iface int) {
	all, reached := n.candidates(iface)
	covered := make([]int, reached) // by how many chosen
	choose := func(c *candidate) {
		if c.chosen {
			return
		}
		c.chosen, c.nb.mpr = true, true
		for _, t := range c.covers {
			covered[t]++
		}
	}
	// Steps 1 and 3: those that always relay, then those that alone (or with
	// too few others for the coverage) reach a node.
	by := make([][]*candidate, reached)
	for _, c := range all {
		if c.nb.willingness == WillAlways {
			choose(c)
		}
		for _, t := range c.covers {
			by[t] = append(by[t], c)
		}
	}
	wanted := make([]int, reached)
	for t, reachers := range by {
		wanted[t] = min(n.config.MPRCoverage, len(reachers))
		if len(reachers) <= n.config.MPRCoverage {
			for _, c := range reachers {
				choose(c)
			}
		}
	}
	// Step 4: the most willing, then the most useful, then the best connected.
	for {
		var best *candidate
		useful := 0
		for _, c := range all {
			if u := usefulness(c, covered, wanted); u > 0 && (best == nil || preferable(c, best, u, useful)) {
				best, useful = c, u
			}
		}
		if best == nil {
			break
		}
		choose(best)
	}
	dropRedundant(all, covered, wanted)
}

func usefulness(c *candidate, covered, wanted []int) int {
	if c.chosen {
		return 0
	}
	useful := 0
	for _, t := range c.covers {
		if covered[t] < wanted[t] {
			useful++
		}
	}
	return useful
}

func preferable(c, best *candidate, useful, bestUseful int) bool {
	switch {
	case c.nb.willingness != best.nb.willingness:
		return c.nb.willingness > best.nb.willingness
	case useful != bestUseful:
		return useful > bestUseful
	}
	return c.degree > best.degree // candidates come by address: that breaks a tie
}

// dropRedundant is step 5's optimisation: the least willing first, an MPR
// without which all is still covered is none.
func dropRedundant(all []*candidate, covered, wanted []int) {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b *candidate) int { return int(a.nb.willingness) - int(b.nb.willingness) })
	for _, c := range order {
		if !c.chosen || c.nb.willingness == WillAlways {
			continue
		}
		needed := false
		for _, t := range c.covers {
			needed = needed || covered[t] <= wanted[t]
		}
		if needed {
			continue
		}
		c.chosen, c.nb.mpr = false, false
		for _, t := range c.covers {
			covered[t]--
		}
	}
}

// candidates are the symmetric neighbours over an interface that are willing
// at all, by address, and the number of strict 2-hop neighbours that they
// reach together.
func (n *Node) candidates(iface int) ([]*candidate, int) {
	var all []*candidate
	for _, l := range n.links {
		if l.local != iface || !l.symmetric(n.Now, n.config.Hysteresis) {
			continue
		}
		nb := n.neighbors[l.main]
		if nb == nil || nb.willingness == WillNever || slices.ContainsFunc(all, func(c *candidate) bool {
			return c.nb == nb
		}) {
			continue
		}
		all = append(all, &candidate{nb: nb})
	}
	slices.SortFunc(all, func(a, b *candidate) int { return a.nb.main.Compare(b.nb.main) })
	ids := map[netip.Addr]int{}
	for _, c := range all {
		for _, e := range c.nb.twoHop {
			if other := n.neighbors[e.to]; e.expires <= n.Now || other != nil && other.symmetric {
				continue
			}
			id, ok := ids[e.to]
			if !ok {
				id = len(ids)
				ids[e.to] = id
			}
			c.covers = append(c.covers, id)
		}
		c.degree = len(c.covers)
	}
	return all, len(ids)
}

// chooseByCost is what the ETX option does: for each 2-hop neighbour the
// neighbours with the cheapest paths, unless the direct link is cheaper.
func (n *Node) chooseByCost() {
	type path struct {
		nb   *neighbor
		cost uint32
	}
	paths := map[netip.Addr][]path{}
	for _, nb := range n.neighbors {
		if !nb.symmetric || nb.willingness == WillNever {
			continue
		}
		nb.mpr = nb.willingness == WillAlways
		for _, e := range nb.twoHop {
			second := cost(e.quality)
			if e.expires > n.Now && second < costBroken && nb.best.etx.cost() < costBroken {
				paths[e.to] = append(paths[e.to], path{nb, nb.best.etx.cost() + second})
			}
		}
	}
	for to, list := range paths {
		direct := uint32(costBroken)
		if nb := n.neighbors[to]; nb != nil && nb.symmetric {
			direct = nb.best.etx.cost()
		}
		slices.SortFunc(list, func(a, b path) int {
			if a.cost != b.cost {
				return int(a.cost) - int(b.cost)
			}
			return a.nb.main.Compare(b.nb.main)
		})
		for i, p := range list {
			if i >= n.config.MPRCoverage || p.cost >= direct {
				break
			}
			p.nb.mpr = true
		}
	}
}
