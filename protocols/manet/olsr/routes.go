package olsr

import (
	"math"
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

// vertex is a node of the network while routes are computed. What it holds of
// an earlier computation, by its number, counts as nothing.
type vertex struct {
	addr     netip.Addr
	computed uint32
	done     bool
	hops     int
	cost     uint32
	via      *link
	nb       *neighbor // where it is one
	origin   *origin   // its TCs

	// The route that was installed last, kept from one computation to the next.
	was       route
	installed bool
}

// graph is the space that computing routes needs, kept between times. Addresses
// are numbered once, so that computing looks none up.
type graph struct {
	ids      map[netip.Addr]int32
	vertices []vertex
	computed uint32  // number of the computation
	reached  []int32 // by it, in the order in which they were first
	heap     []entry
	live     int // addresses in use when they were last numbered

	// The vertices with a route, if all that is installed are those: then only
	// what differs has to be looked up.
	installed []int32
	known     bool
}

// intern is the number of an address.
func (g *graph) intern(a netip.Addr) int32 {
	id, ok := g.ids[a]
	if !ok {
		id = int32(len(g.vertices))
		g.ids[a] = id
		g.vertices = append(g.vertices, vertex{addr: a})
	}
	return id
}

// renumber forgets the addresses that are no longer in use, once they are
// many.
func (n *Node) renumber() {
	g := &n.graph
	if len(g.vertices) < 2*g.live+256 {
		return
	}
	clear(g.ids)
	g.vertices = g.vertices[:0]
	g.known = false
	for a, nb := range n.neighbors {
		nb.id = g.intern(a)
		for i := range nb.twoHop {
			nb.twoHop[i].id = g.intern(nb.twoHop[i].to)
		}
	}
	for a, o := range n.topology {
		o.id = g.intern(a)
		for i := range o.edges {
			o.edges[i].id = g.intern(o.edges[i].to)
		}
	}
	g.live = len(g.vertices)
}

// vertex is a vertex of this computation.
func (g *graph) vertex(id int32) *vertex {
	v := &g.vertices[id]
	if v.computed != g.computed {
		v.computed, v.cost, v.hops, v.done = g.computed, math.MaxUint32, 0, false
		v.via, v.nb, v.origin = nil, nil, nil
	}
	return v
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

func (g *graph) reach(id int32, cost uint32, hops int, via *link) {
	v := g.vertex(id)
	if v.done || cost > v.cost || cost == v.cost && hops >= v.hops {
		return
	}
	if v.via == nil {
		g.reached = append(g.reached, id)
	}
	v.cost, v.hops, v.via = cost, hops, via
	g.push(entry{cost, hops, id})
}

// computeRoutes is section 10: shortest paths over the neighbours, their
// neighbours, and what TCs say of those beyond. A neighbour's own word (HELLO)
// stands against what its TC said earlier.
func (n *Node) computeRoutes() {
	n.routesChanged, n.routesStale, n.lastRoutes = false, false, n.Now
	g := &n.graph
	g.computed++
	g.reached, g.heap = g.reached[:0], g.heap[:0]
	for _, o := range n.topology {
		g.vertex(o.id).origin = o
	}
	for _, nb := range n.neighbors {
		if nb.symmetric && n.linkCost(nb.best) < costBroken {
			g.vertex(nb.id).nb = nb
			g.reach(nb.id, n.linkCost(nb.best), 1, nb.best)
		}
	}
	for len(g.heap) > 0 {
		e := g.pop()
		v := &g.vertices[e.id]
		if v.done || e.cost != v.cost || e.hops != v.hops {
			continue
		}
		v.done = true
		n.relax(v)
	}
	plain := n.plain()
	if plain && g.known {
		n.installChanges()
		return
	}
	n.install(n.table())
	if g.known = plain; plain {
		n.remember()
	}
}

// plain says that routes are to the main addresses of nodes only.
func (n *Node) plain() bool {
	return len(n.associations) == 0 && len(n.gateways) == 0 &&
		!slices.ContainsFunc(n.links, func(l *link) bool { return l.remote != l.main })
}

// wasReached reports whether this computation came to a vertex.
func (g *graph) wasReached(v *vertex) bool { return v.computed == g.computed && v.via != nil }

// remember notes what is installed with the vertices.
func (n *Node) remember() {
	g := &n.graph
	for i := range g.vertices {
		v := &g.vertices[i]
		if v.installed = g.wasReached(v); v.installed {
			v.was = v.route()
		}
	}
	g.installed = append(g.installed[:0], g.reached...)
}

func (v *vertex) route() route { return route{v.via.remote, v.via.local, v.hops, v.cost} }

// installChanges is table and install where routes are plain and what is
// installed is known.
func (n *Node) installChanges() {
	g := &n.graph
	changed := n.changed[:0]
	for _, id := range g.reached {
		v := &g.vertices[id]
		r := v.route()
		if v.installed && v.was == r {
			continue
		}
		if !v.installed || v.was.differs(r) {
			changed = append(changed, manet.Host(v.addr))
		}
		v.was, v.installed = r, true
		n.routes[manet.Host(v.addr)] = r
	}
	for _, id := range g.installed {
		if v := &g.vertices[id]; !g.wasReached(v) {
			v.installed = false
			delete(n.routes, manet.Host(v.addr))
			changed = append(changed, manet.Host(v.addr))
		}
	}
	g.installed = append(g.installed[:0], g.reached...)
	n.ask(n.routes, changed)
}

func (n *Node) linkCost(l *link) uint32 {
	if n.config.ETX {
		return l.etx.cost()
	}
	return costOne
}

func (n *Node) relax(v *vertex) {
	edges := []edge(nil)
	switch {
	case v.nb != nil && v.nb.willingness == WillNever:
		return // carries nothing for others (section 10, step 3)
	case v.nb != nil:
		edges = v.nb.twoHop
	case v.origin != nil:
		edges = v.origin.edges
	}
	for i := range edges {
		e := &edges[i]
		if e.expires <= n.Now || n.isOwn(e.to) {
			continue
		}
		c := uint32(costOne)
		if n.config.ETX {
			if c = cost(e.quality); c >= costBroken {
				continue
			}
		}
		n.graph.reach(e.id, v.cost+c, v.hops+1, v.via)
	}
}

// table makes routes of what was reached: nodes, their further addresses
// (section 10, step 4), the interfaces of neighbours (step 2), networks (12.6).
func (n *Node) table() map[netip.Prefix]route {
	n.spare, n.routes = n.routes, n.spare
	routes := n.routes
	clear(routes)
	for _, id := range n.graph.reached {
		v := &n.graph.vertices[id]
		routes[manet.Host(v.addr)] = v.route()
	}
	for _, l := range n.links {
		if l.remote != l.main && l.symmetric(n.Now, n.config.Hysteresis) && n.linkCost(l) < costBroken {
			routes[manet.Host(l.remote)] = route{l.remote, l.local, 1, n.linkCost(l)}
		}
	}
	for a, as := range n.associations {
		if r, ok := routes[manet.Host(as.main)]; ok && as.expires > n.Now {
			if _, has := routes[manet.Host(a)]; !has {
				routes[manet.Host(a)] = r
			}
		}
	}
	for g, expires := range n.gateways {
		n.addNetwork(routes, g, expires)
	}
	return routes
}

func (n *Node) addNetwork(routes map[netip.Prefix]route, g gateway, expires manet.Time) {
	r, ok := routes[manet.Host(g.node)]
	if !ok || expires <= n.Now || slices.Contains(n.config.Networks, g.network) {
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
	id, ok := n.graph.ids[a]
	return ok && n.graph.vertices[id].computed == n.graph.computed && n.graph.vertices[id].via != nil
}

// install asks for what differs between the new routes and the spare table,
// which holds the old ones.
func (n *Node) install(routes map[netip.Prefix]route) {
	changed := n.changed[:0]
	for p, r := range routes {
		old, ok := n.spare[p]
		if !ok || old.differs(r) {
			changed = append(changed, p)
		}
	}
	for p := range n.spare {
		if _, ok := routes[p]; !ok {
			changed = append(changed, p)
		}
	}
	n.ask(routes, changed)
}

// differs reports whether the host has to be told about a route in place of
// another.
func (r route) differs(o route) bool {
	return r.next != o.next || r.iface != o.iface || r.hops != o.hops
}

// ask has the routes to some destinations set, or deleted where there are none.
func (n *Node) ask(routes map[netip.Prefix]route, changed []netip.Prefix) {
	slices.SortFunc(changed, comparePrefixes)
	for _, p := range changed {
		if r, ok := routes[p]; ok {
			n.Act(manet.SetRoute{Destination: p, Next: []manet.Hop{{Addr: r.next, Interface: r.iface}},
				Hops: r.hops, Metric: float64(r.cost) / costOne, Cause: n.cause})
		} else {
			n.Act(manet.DeleteRoute{Destination: p, Cause: n.cause})
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
