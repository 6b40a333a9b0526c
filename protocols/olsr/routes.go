package olsr

import (
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// route is an entry of the routing table (RFC 3626 section 10).
type route struct {
	next  netip.Addr
	iface int
	hops  int
	cost  uint32
}

// vertex is a node of the network while routes are computed.
type vertex struct {
	addr netip.Addr
	cost uint32
	hops int
	via  *link
	done bool
}

// graph is the space that computing routes needs, kept between times.
type graph struct {
	ids      map[netip.Addr]int32
	vertices []vertex
	heap     []entry
}

type entry struct {
	cost uint32
	hops int
	id   int32
}

func (g *graph) less(a, b entry) bool {
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	if a.hops != b.hops {
		return a.hops < b.hops
	}
	return g.vertices[a.id].addr.Less(g.vertices[b.id].addr)
}

func (g *graph) push(e entry) {
	h := append(g.heap, e)
	i := len(h) - 1
	for i > 0 && g.less(h[i], h[(i-1)/2]) {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
	g.heap = h
}

func (g *graph) pop() entry {
	h := g.heap
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && g.less(h[child+1], h[child]) {
			child++
		}
		if !g.less(h[child], h[i]) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	g.heap = h
	return top
}

func (g *graph) reach(to netip.Addr, cost uint32, hops int, via *link) {
	id, ok := g.ids[to]
	if !ok {
		id = int32(len(g.vertices))
		g.ids[to] = id
		g.vertices = append(g.vertices, vertex{addr: to, cost: cost, hops: hops, via: via})
		g.push(entry{cost, hops, id})
		return
	}
	v := &g.vertices[id]
	if v.done || cost > v.cost || cost == v.cost && hops >= v.hops {
		return
	}
	v.cost, v.hops, v.via = cost, hops, via
	g.push(entry{cost, hops, id})
}

// computeRoutes is section 10: shortest paths over the neighbours, their
// neighbours, and what TCs say of those beyond. A neighbour's own word (HELLO)
// stands against what its TC said earlier.
func (n *Node) computeRoutes() {
	n.routesChanged, n.routesStale = false, false
	g := &n.graph
	clear(g.ids)
	g.vertices, g.heap = g.vertices[:0], g.heap[:0]
	for _, nb := range n.neighbors {
		if nb.symmetric && n.linkCost(nb.best) < costBroken {
			g.reach(nb.main, n.linkCost(nb.best), 1, nb.best)
		}
	}
	for len(g.heap) > 0 {
		e := g.pop()
		v := g.vertices[e.id]
		if v.done || e.cost != v.cost || e.hops != v.hops {
			continue
		}
		g.vertices[e.id].done = true
		n.relax(v)
	}
	n.install(n.table())
}

func (n *Node) linkCost(l *link) uint32 {
	if n.config.ETX {
		return l.etx.cost()
	}
	return costOne
}

func (n *Node) relax(v vertex) {
	edges := []edge(nil)
	if nb := n.neighbors[v.addr]; nb != nil && nb.symmetric {
		if nb.willingness == WillNever { // carries nothing for others (section 10, step 3)
			return
		}
		edges = nb.twoHop
	} else if o := n.topology[v.addr]; o != nil {
		edges = o.edges
	}
	for _, e := range edges {
		if e.expires <= n.now || n.isOwn(e.to) {
			continue
		}
		c := uint32(costOne)
		if n.config.ETX {
			if c = cost(e.quality); c >= costBroken {
				continue
			}
		}
		n.graph.reach(e.to, v.cost+c, v.hops+1, v.via)
	}
}

// table makes routes of what was reached: nodes, their further addresses
// (section 10, step 4), the interfaces of neighbours (step 2), networks (12.6).
func (n *Node) table() map[netip.Prefix]route {
	n.spare, n.routes = n.routes, n.spare
	routes := n.routes
	clear(routes)
	for i := range n.graph.vertices {
		v := &n.graph.vertices[i]
		routes[host(v.addr)] = route{v.via.remote, v.via.local, v.hops, v.cost}
	}
	for _, l := range n.links {
		if l.remote != l.main && l.symmetric(n.now, n.config.Hysteresis) && n.linkCost(l) < costBroken {
			routes[host(l.remote)] = route{l.remote, l.local, 1, n.linkCost(l)}
		}
	}
	for a, as := range n.associations {
		if r, ok := routes[host(as.main)]; ok && as.expires > n.now {
			if _, has := routes[host(a)]; !has {
				routes[host(a)] = r
			}
		}
	}
	for g, expires := range n.gateways {
		n.addNetwork(routes, g, expires)
	}
	return routes
}

func (n *Node) addNetwork(routes map[netip.Prefix]route, g gateway, expires manet.Time) {
	r, ok := routes[host(g.node)]
	if !ok || expires <= n.now || slices.Contains(n.config.Networks, g.network) {
		return
	}
	old, has := routes[g.network]
	// Equally near gateways: the lower next hop, so that it does not change
	// with the order of a table.
	if has && (old.cost < r.cost || old.cost == r.cost && !r.next.Less(old.next)) {
		return
	}
	if has && g.network.IsSingleIP() && n.topologyKnows(g.network.Addr()) {
		return // a node of the mesh is reached as itself
	}
	routes[g.network] = r
}

func (n *Node) topologyKnows(a netip.Addr) bool {
	_, ok := n.graph.ids[a]
	return ok
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// install asks for what differs between the new routes and the spare table,
// which holds the old ones.
func (n *Node) install(routes map[netip.Prefix]route) {
	changed := n.changed[:0]
	for p, r := range routes {
		old, ok := n.spare[p]
		if !ok || old.next != r.next || old.iface != r.iface || old.hops != r.hops {
			changed = append(changed, p)
		}
	}
	for p := range n.spare {
		if _, ok := routes[p]; !ok {
			changed = append(changed, p)
		}
	}
	slices.SortFunc(changed, comparePrefixes)
	for _, p := range changed {
		if r, ok := routes[p]; ok {
			n.act(manet.SetRoute{Destination: p, Next: []manet.Hop{{Addr: r.next, Interface: r.iface}},
				Hops: r.hops, Metric: float64(r.cost) / costOne, Cause: n.cause})
		} else {
			n.act(manet.DeleteRoute{Destination: p, Cause: n.cause})
		}
	}
	n.changed = changed
}

func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}
