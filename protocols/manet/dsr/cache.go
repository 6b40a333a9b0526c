package dsr

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// cache is the Route Cache: of links, as the RFC recommends, or of paths.
type cache interface {
	// learn takes in a path that a packet told. wanted is one that answers this
	// node's own search; by is the node on the path that was overheard sending the
	// packet on, not valid where the packet was sent to this node.
	learn(now manet.Time, path []netip.Addr, wanted bool, by netip.Addr)
	// answered takes in the path from here by which a request is answered.
	answered(path []netip.Addr)
	// lose takes out a link that was found broken just now. It reports whether
	// there was one.
	lose(now manet.Time, a, b netip.Addr) bool
	// restore lets the links of a path be learned at once, whatever was lost.
	restore(path []netip.Addr)
	// route is the best route to a destination: the nodes between.
	route(now manet.Time, to netip.Addr) ([]netip.Addr, bool)
	// use tells that a packet goes along that route.
	use(now manet.Time, to netip.Addr)
	neighbors(now manet.Time) []netip.Addr
	// forgetNeighbors takes out all that this node's interface leads to.
	forgetNeighbors()
	// expire forgets what time has made worthless; expires reports whether there
	// is anything that it will.
	expire(now manet.Time)
	expires() bool
	// version changes with what is in the cache.
	version() uint64
	sizes() map[string]int
}

// linkCache is a cache of links: links of different routes join into new ones,
// which a cache of whole paths cannot do, and an error takes one link away
// instead of every path over it. How long a link is believed in adapts itself
// (Link-MaxLife, appendix A).
type linkCache struct {
	config  *Config
	self    netip.Addr
	links   map[netip.Addr]map[netip.Addr]*cachedLink
	nodes   map[netip.Addr]manet.Time // stability of each
	count   int
	changes uint64 // counts links that came or went
	chosen  map[netip.Addr]*chosen
	lost    map[[2]netip.Addr]manet.Time // links found broken of late
	work    search
}

// lostFor is how long a link that was found broken is not learned again, from
// packets that had left before that was known, or from caches that have not
// heard of it. A reply of the target itself restores it sooner. Not in the RFC.
const lostFor = time.Second

type cachedLink struct {
	expires manet.Time
	used    manet.Time
}

// chosen is the route that was found for a destination while the cache had a
// version.
type chosen struct {
	route   []netip.Addr // between self and the destination
	found   bool
	version uint64
	expires manet.Time
	used    manet.Time
}

func newLinkCache(config *Config, self netip.Addr) *linkCache {
	return &linkCache{config: config, self: self, links: map[netip.Addr]map[netip.Addr]*cachedLink{},
		nodes: map[netip.Addr]manet.Time{}, chosen: map[netip.Addr]*chosen{}, lost: map[[2]netip.Addr]manet.Time{}}
}

// learn adds the links of a path in both directions: unicast needs an
// acknowledgement on the air, so that a link that carried any works both ways
// (3.3.1).
func (c *linkCache) learn(now manet.Time, path []netip.Addr, _ bool, _ netip.Addr) {
	for i := 1; i < len(path); i++ {
		c.addLink(now, path[i-1], path[i])
		c.addLink(now, path[i], path[i-1])
	}
}

// answered takes nothing in: a request, which is broadcast, teaches no links.
func (c *linkCache) answered([]netip.Addr) {}

func (c *linkCache) addLink(now manet.Time, a, b netip.Addr) {
	expires := now + max(c.config.MinLifetime, min(c.stability(a), c.stability(b)))
	if l := c.links[a][b]; l != nil {
		if l.expires <= now {
			c.changes++
		}
		l.expires = max(l.expires, expires)
		return
	}
	if at, ok := c.lost[[2]netip.Addr{a, b}]; ok && now-at < lostFor || c.count >= c.config.MaxEntries {
		return
	}
	if c.links[a] == nil {
		c.links[a] = map[netip.Addr]*cachedLink{}
	}
	c.links[a][b] = &cachedLink{expires: expires, used: now}
	c.count++
	c.changes++
}

func (c *linkCache) stability(a netip.Addr) manet.Time {
	if s, ok := c.nodes[a]; ok {
		return s
	}
	return c.config.InitStability
}

func (c *linkCache) setStability(a netip.Addr, s manet.Time) {
	if _, ok := c.nodes[a]; !ok && len(c.nodes) >= c.config.MaxEntries {
		return
	}
	// RouteCacheTimeout bounds what appendix A lets grow without an end.
	c.nodes[a] = min(max(s, c.config.MinLifetime), c.config.RouteCacheTimeout)
}

// lose is broken for a link that was found so just now.
func (c *linkCache) lose(now manet.Time, a, b netip.Addr) bool {
	if len(c.lost) < c.config.MaxEntries {
		c.lost[[2]netip.Addr{a, b}] = now
		c.lost[[2]netip.Addr{b, a}] = now
	}
	return c.broken(a, b)
}

// restore lets the links of a path be learned at once.
func (c *linkCache) restore(path []netip.Addr) {
	for i := 1; i < len(path); i++ {
		delete(c.lost, [2]netip.Addr{path[i-1], path[i]})
		delete(c.lost, [2]netip.Addr{path[i], path[i-1]})
	}
}

// broken removes a link, in both directions: without acknowledgements neither
// carries unicast. Its ends are trusted less from now on.
func (c *linkCache) broken(a, b netip.Addr) bool {
	if !c.remove(a, b) && !c.remove(b, a) {
		return false
	}
	c.remove(b, a)
	for _, end := range []netip.Addr{a, b} {
		c.setStability(end, c.stability(end)/manet.Time(c.config.StabilityDecrFactor))
	}
	return true
}

func (c *linkCache) remove(a, b netip.Addr) bool {
	if c.links[a][b] == nil {
		return false
	}
	delete(c.links[a], b)
	if len(c.links[a]) == 0 {
		delete(c.links, a)
	}
	c.count--
	c.changes++
	return true
}

// route is the best route to a destination: the nodes between.
func (c *linkCache) route(now manet.Time, to netip.Addr) ([]netip.Addr, bool) {
	r := c.chosen[to]
	if r == nil {
		if len(c.chosen) >= c.config.MaxEntries {
			clear(c.chosen)
		}
		r = &chosen{used: now - c.config.MinLifetime} // its first use counts
		c.chosen[to] = r
	} else if r.version == c.changes && (!r.found || r.expires > now) {
		return r.route, r.found
	}
	r.version = c.changes
	r.route, r.expires, r.found = c.search(now, to)
	return r.route, r.found
}

// use tells that a packet of ours goes along the route to a destination: its
// links live on, and its nodes are trusted for as long as they were of use.
func (c *linkCache) use(now manet.Time, to netip.Addr) {
	r := c.chosen[to]
	if r == nil || !r.found || now-r.used < c.config.MinLifetime/4 {
		return
	}
	r.used = now
	at := c.self
	for i := range len(r.route) + 1 {
		next := to
		if i < len(r.route) {
			next = r.route[i]
		}
		if l := c.links[at][next]; l != nil {
			gain := (now - l.used) * manet.Time(c.config.StabilityIncrFactor)
			c.setStability(at, c.stability(at)+gain)
			c.setStability(next, c.stability(next)+gain)
			l.used = now
			l.expires = max(l.expires, now+min(c.config.UseExtends, c.config.RouteCacheTimeout))
		}
		at = next
	}
	r.version-- // found again with its new lifetimes
}

// search holds what a search for a route needs, to be used again.
type search struct {
	frontier, next []netip.Addr
	seen           map[netip.Addr]reached
}

type reached struct {
	hops  int
	from  netip.Addr
	width manet.Time // when the first link on the way expires
}

// search finds the shortest route, among equals the one whose links live the
// longest, among those the one over the smallest addresses.
func (c *linkCache) search(now manet.Time, to netip.Addr) ([]netip.Addr, manet.Time, bool) {
	w := &c.work
	if w.seen == nil {
		w.seen = map[netip.Addr]reached{}
	}
	clear(w.seen)
	w.seen[c.self] = reached{width: 1 << 62}
	w.frontier = append(w.frontier[:0], c.self)
	for hops := 1; hops <= c.config.MaxHops && len(w.frontier) > 0; hops++ {
		w.next = w.next[:0]
		for _, at := range w.frontier {
			for neighbor, l := range c.links[at] {
				if l.expires > now {
					w.reach(at, neighbor, hops, l.expires)
				}
			}
		}
		w.frontier, w.next = w.next, w.frontier
		if r, ok := w.seen[to]; ok && to != c.self {
			return w.trace(to, r), r.width, true
		}
	}
	return nil, 0, false
}

func (w *search) reach(at, neighbor netip.Addr, hops int, expires manet.Time) {
	width := min(expires, w.seen[at].width)
	r, ok := w.seen[neighbor]
	switch {
	case !ok:
		w.next = append(w.next, neighbor)
	case r.hops < hops || r.width > width || r.width == width && !at.Less(r.from):
		return
	}
	w.seen[neighbor] = reached{hops, at, width}
}

func (w *search) trace(to netip.Addr, r reached) []netip.Addr {
	route := make([]netip.Addr, 0, r.hops)
	for at := r.from; w.seen[at].hops > 0; at = w.seen[at].from {
		route = append(route, at)
	}
	slices.Reverse(route)
	return route
}

// expire forgets links whose time is over, and nodes and routes without any.
func (c *linkCache) expire(now manet.Time) {
	for a, to := range c.links {
		for b, l := range to {
			if l.expires <= now {
				c.remove(a, b)
			}
		}
	}
	forget(c.lost, func(at manet.Time) bool { return now-at >= lostFor })
	for a := range c.nodes {
		if c.links[a] == nil {
			delete(c.nodes, a)
		}
	}
	for to, r := range c.chosen {
		if !r.found || r.expires <= now {
			delete(c.chosen, to)
		}
	}
}

func (c *linkCache) neighbors(now manet.Time) (out []netip.Addr) {
	for neighbor, l := range c.links[c.self] {
		if l.expires > now {
			out = append(out, neighbor)
		}
	}
	return out
}

func (c *linkCache) forgetNeighbors() {
	for _, neighbor := range slices.Collect(maps.Keys(c.links[c.self])) {
		c.remove(c.self, neighbor)
		c.remove(neighbor, c.self)
	}
}

func (c *linkCache) expires() bool { return c.count > 0 }

func (c *linkCache) version() uint64 { return c.changes }

func (c *linkCache) sizes() map[string]int {
	return map[string]int{"links": c.count, "nodes": len(c.nodes), "chosen": len(c.chosen), "lost": len(c.lost)}
}
