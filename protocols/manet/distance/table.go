package distance

import (
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Route is an entry of a table. E is what the protocol keeps with it.
type Route[E any] struct {
	To    netip.Addr
	Next  netip.Addr
	Iface int
	Hops  int
	Seq   uint32
	Since manet.Time // when this number was first heard, or the route broke
	Extra E
}

// Broken says that the route leads nowhere.
func (r *Route[E]) Broken() bool { return r.Hops >= Infinite }

// Table holds the best known route to each destination. A route's number never
// goes back and, while it stays, its hops never grow: a neighbour whose route
// was believed always has one that is newer or nearer, and so no loop forms.
// What forgets (a reboot, Forget) is all that can break this.
type Table[E any] struct {
	MaxEntries int
	Act        func(manet.Action) // takes what is to be done to the host's routes
	Cause      string             // of what is done now
	routes     map[netip.Addr]*Route[E]
	order      []netip.Addr
}

// NewTable makes an empty table.
func NewTable[E any](maxEntries int, act func(manet.Action)) *Table[E] {
	return &Table[E]{MaxEntries: maxEntries, Act: act, routes: map[netip.Addr]*Route[E]{}}
}

// Len is how many routes there are, broken ones included.
func (t *Table[E]) Len() int { return len(t.routes) }

// Get is the route to a destination, nil where there is none.
func (t *Table[E]) Get(to netip.Addr) *Route[E] { return t.routes[to] }

// Take believes a route that a neighbour tells, if it is newer than what is
// known, or as new and nearer. A broken route is believed of the next hop only: who goes another way
// keeps it, and as nobody goes by an older number than a broken route's, no
// loop comes of that. before is the route as it was, broken where it is new.
func (t *Table[E]) Take(now manet.Time, l Link, e Entry) (r *Route[E], before Route[E], taken bool) {
	hops := min(int(e.Hops)+1, Infinite)
	r = t.routes[e.To]
	if r == nil {
		if hops >= Infinite || len(t.routes) >= t.MaxEntries {
			return nil, before, false
		}
		r = &Route[E]{To: e.To, Hops: Infinite, Seq: e.Seq - 1}
		t.routes[e.To] = r
	}
	before = *r
	newer := manet.After32(e.Seq, r.Seq)
	if hops >= Infinite {
		if !newer || r.Broken() || r.Next != l.Addr || r.Iface != l.Iface {
			return r, before, false
		}
		t.lose(now, r, e.Seq)
		return r, before, true
	}
	if !newer && (e.Seq != r.Seq || hops >= r.Hops) {
		return r, before, false
	}
	if newer {
		r.Since = now
	}
	r.Seq, r.Hops, r.Next, r.Iface = e.Seq, hops, l.Addr, l.Iface
	if before.Hops != r.Hops || before.Next != r.Next || before.Iface != r.Iface {
		t.Act(manet.SetRoute{Destination: manet.Host(r.To), Next: []manet.Hop{{Addr: r.Next, Interface: r.Iface}},
			Hops: r.Hops, Metric: float64(r.Hops), Cause: t.Cause})
	}
	return r, before, true
}

func (t *Table[E]) lose(now manet.Time, r *Route[E], seq uint32) {
	r.Seq, r.Hops, r.Since = seq|1, Infinite, now // an odd number: not the destination's own
	t.Act(manet.DeleteRoute{Destination: manet.Host(r.To), Cause: t.Cause})
}

// Break marks a route as broken here, under a number between the one that it
// had and the destination's next.
func (t *Table[E]) Break(now manet.Time, r *Route[E]) {
	if !r.Broken() {
		t.lose(now, r, r.Seq+1)
	}
}

// BreakOver breaks all routes over a neighbour and returns them.
func (t *Table[E]) BreakOver(now manet.Time, next netip.Addr, iface int) (broken []*Route[E]) {
	for r := range t.All {
		if !r.Broken() && r.Next == next && r.Iface == iface {
			t.Break(now, r)
			broken = append(broken, r)
		}
	}
	return broken
}

// Stale breaks and returns the routes whose number has not grown for a time.
func (t *Table[E]) Stale(now, hold manet.Time) (broken []*Route[E]) {
	for r := range t.All {
		if !r.Broken() && now-r.Since >= hold {
			t.Break(now, r)
			broken = append(broken, r)
		}
	}
	return broken
}

// Forget removes routes that have been broken for a time.
func (t *Table[E]) Forget(now, after manet.Time) {
	for to, r := range t.routes {
		if r.Broken() && now-r.Since >= after {
			delete(t.routes, to)
		}
	}
}

// Next is when the first route goes stale or is to be forgotten, at the latest
// after hold: those that come meanwhile last longer. after is more than hold.
func (t *Table[E]) Next(now, hold, after manet.Time) manet.Time {
	next := now + hold
	for _, r := range t.routes {
		if r.Broken() {
			next = min(next, r.Since+after)
		} else {
			next = min(next, r.Since+hold)
		}
	}
	return next
}

// All goes over the routes by address, so that a run repeats itself.
func (t *Table[E]) All(yield func(*Route[E]) bool) {
	order := t.order[:0]
	for to := range t.routes {
		order = append(order, to)
	}
	slices.SortFunc(order, netip.Addr.Compare)
	t.order = order
	for _, to := range order {
		if !yield(t.routes[to]) {
			return
		}
	}
}

// State is the routes that work, for a person or a record.
func (t *Table[E]) State() (out []manet.Route) {
	for r := range t.All {
		if !r.Broken() {
			out = append(out, manet.Route{Destination: manet.Host(r.To), NextHop: r.Next, Interface: r.Iface,
				Hops: r.Hops, Metric: float64(r.Hops)})
		}
	}
	return out
}
