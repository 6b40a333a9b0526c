package dsr

import (
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Paths makes the Route Cache one of whole paths without expiry, as CMU's DSR
// for ns-2 has it, and makes the node answer, ask and report errors as that code
// does. README.md says how and from where.
type Paths struct {
	Primary   int // paths that this node looked for, uses, or answers by
	Secondary int // paths that it came by
}

// pathCache is a cache of paths, all of which begin at this node. A path leaves
// it when it is found broken or when newer ones need its place; none grows old.
type pathCache struct {
	self      netip.Addr
	maxHops   int
	primary   ring
	secondary ring
	changes   uint64
}

func newPathCache(config *Config, self netip.Addr) *pathCache {
	return &pathCache{self: self, maxHops: config.MaxHops,
		primary:   ring{paths: make([][]netip.Addr, config.Paths.Primary)},
		secondary: ring{paths: make([][]netip.Addr, config.Paths.Secondary)}}
}

// ring holds a number of paths; once it is full the oldest place is used again.
type ring struct {
	paths  [][]netip.Addr // empty: a free place
	oldest int
}

// add puts a path into the first place that it fits: one whose path it goes on
// from, which a free one is too, or has it already. It reports whether that
// changed anything.
func (r *ring) add(path []netip.Addr) bool {
	for i, p := range r.paths {
		switch same := common(p, path); same {
		case len(p):
			r.paths[i] = append(p, path[same:]...)
			return len(path) > same
		case len(path):
			return false
		}
	}
	r.paths[r.oldest] = append(r.paths[r.oldest][:0], path...)
	r.oldest = (r.oldest + 1) % len(r.paths)
	return true
}

// common is how many nodes two paths begin with alike.
func common(a, b []netip.Addr) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// shortest is the place with the shortest path to a node, the first of equals,
// and the hops to there; 0 hops: there is none.
func (r *ring) shortest(to netip.Addr) (place, hops int) {
	for i, p := range r.paths {
		if at := slices.Index(p, to); at > 0 && (hops == 0 || at < hops) {
			place, hops = i, at
		}
	}
	return place, hops
}

// lose ends all paths before a link, in its one direction.
func (r *ring) lose(a, b netip.Addr) (any bool) {
	for i, p := range r.paths {
		at := slices.Index(p, a)
		if at < 0 || at+1 >= len(p) || p[at+1] != b {
			continue
		}
		any = true
		if at == 0 {
			r.paths[i] = p[:0]
		} else {
			r.paths[i] = p[:at+1]
		}
	}
	return any
}

func (r *ring) count() (n int) {
	for _, p := range r.paths {
		if len(p) > 0 {
			n++
		}
	}
	return n
}

func (c *pathCache) note(changed bool) {
	if changed {
		c.changes++
	}
}

// learn takes the part of a path that lies beyond this node. Of a packet that was
// overheard that is the rest of its way from who sent it, as if that were a
// neighbour.
func (c *pathCache) learn(_ manet.Time, path []netip.Addr, wanted bool, by netip.Addr) {
	if at := slices.Index(path, c.self); at >= 0 {
		path = path[at:]
	} else if at := slices.Index(path, by); at >= 0 {
		path = append([]netip.Addr{c.self}, path[at:]...)
	} else {
		return
	}
	path = path[:min(len(path), c.maxHops+1)]
	switch {
	case len(path) < 2:
	case wanted:
		c.note(c.primary.add(path))
	default:
		c.note(c.secondary.add(path))
	}
}

func (c *pathCache) answered(path []netip.Addr) { c.note(c.primary.add(path)) }

func (c *pathCache) lose(_ manet.Time, a, b netip.Addr) bool {
	first, second := c.primary.lose(a, b), c.secondary.lose(a, b)
	c.note(first || second)
	return first || second
}

// restore has nothing to do: a link that was lost is learned again at once.
func (c *pathCache) restore([]netip.Addr) {}

// route is the shortest, of equals the primary cache's.
func (c *pathCache) route(_ manet.Time, to netip.Addr) ([]netip.Addr, bool) {
	place, hops := c.primary.shortest(to)
	from := &c.primary
	if second, fewer := c.secondary.shortest(to); fewer > 0 && (hops == 0 || fewer < hops) {
		place, hops, from = second, fewer, &c.secondary
	}
	if hops == 0 {
		return nil, false
	}
	return from.paths[place][1:hops], true
}

// use moves a path from the secondary cache to the primary one.
func (c *pathCache) use(_ manet.Time, to netip.Addr) {
	_, hops := c.primary.shortest(to)
	if place, fewer := c.secondary.shortest(to); fewer > 0 && (hops == 0 || fewer < hops) {
		c.primary.add(c.secondary.paths[place])
		c.secondary.paths[place] = c.secondary.paths[place][:0]
	}
}

func (c *pathCache) neighbors(manet.Time) (out []netip.Addr) {
	for _, p := range slices.Concat(c.primary.paths, c.secondary.paths) {
		if len(p) > 0 && !slices.Contains(out, p[1]) {
			out = append(out, p[1])
		}
	}
	return out
}

func (c *pathCache) forgetNeighbors() {
	for _, r := range []*ring{&c.primary, &c.secondary} {
		for i := range r.paths {
			r.paths[i] = r.paths[i][:0]
		}
	}
	c.changes++
}

func (c *pathCache) expire(manet.Time) {}

func (c *pathCache) expires() bool { return false }

func (c *pathCache) version() uint64 { return c.changes }

func (c *pathCache) sizes() map[string]int {
	return map[string]int{"primary": c.primary.count(), "secondary": c.secondary.count()}
}
