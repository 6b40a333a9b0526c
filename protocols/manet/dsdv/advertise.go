package dsdv

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
)

// route is an entry of the table that packets are forwarded by.
type (
	base  = distance.Node[advert]
	route = distance.Route[advert]
)

// advert is the other of the paper's two tables: what is told about a route,
// and when.
type advert struct {
	told     int        // hops that were told last; 0: none were
	from     manet.Time // until then the route is settling, and nothing is told
	first    manet.Time // when the present number was first heard
	best     manet.Time // when its best way was
	settling time.Duration
	known    bool       // there is a number before, and so a settling time
	number   bool       // is to be told: in the next dump of either kind
	hops     bool       // are: in each, until a full one
	due      manet.Time // when there may be something for an incremental dump; 0: no more
}

// changed decides when a route that was taken is told. A destination that is new
// settles, and so does each newer number and each nearer way: for twice the time
// that it took the numbers before, on average, from their first way to their
// best. One that was broken, or now is, does not. A newer number alone waits for
// the next dump.
func (n *Node) changed(r, before *route) {
	a := &r.Extra
	isNew, newer := !a.known, r.Seq != before.Seq
	switch {
	case isNew:
		a.known, a.settling = true, n.config.SettlingStart
	case newer:
		w := n.config.SettlingWeight
		a.settling = min(time.Duration(w*float64(a.settling)+(1-w)*float64(a.best-a.first)), n.config.maxSettling())
	}
	if newer {
		a.first, a.number = n.Now, true
	}
	a.best, a.from = n.Now, n.Now
	if isNew || !r.Broken() && !before.Broken() {
		a.from += 2 * a.settling
	}
	a.hops = r.Hops != a.told
	if isNew || !newer && a.hops {
		n.trigger(r)
	}
}

// broke tells that a route broke here.
func (n *Node) broke(r *route) {
	n.Count("broken")
	r.Extra.number = true
	n.urge(r)
}

// urge tells a route at once.
func (n *Node) urge(r *route) {
	r.Extra.from, r.Extra.hops = n.Now, true
	n.trigger(r)
}

// trigger has an incremental dump once a route has settled.
func (n *Node) trigger(r *route) {
	r.Extra.due = r.Extra.from
	n.schedule(r.Extra.from)
}

// schedule makes sure of an incremental dump, not before a time and not too
// soon after the last dump.
func (n *Node) schedule(at manet.Time) {
	at = max(at, n.Now, n.dumped+n.config.Aggregation) + n.Jitter.Below(n.config.Jitter)
	n.WakeBy(at, timerIncremental, &n.incrementalAt)
}

// scheduleFull makes sure of a full dump by a time.
func (n *Node) scheduleFull(at manet.Time) {
	if at = max(at, n.Now); n.dueFull <= n.Now || at < n.dueFull {
		n.dueFull = at
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerFull}, At: at})
	}
}

// dumpFull tells all routes but those that settle, with a new number of our own.
func (n *Node) dumpFull() {
	n.Seq += 2
	n.dump(n.Own(), true, func(*advert) bool { return true })
	n.dueFull = n.Now
	n.scheduleFull(n.Now + n.config.Period - n.Jitter.Below(n.config.Period/4))
}

// dumpIncremental tells what changed. Where that is much of the table, more than
// three routes and a third, it is a full dump instead.
func (n *Node) dumpIncremental() {
	changed, later := 0, manet.Time(0)
	for r := range n.Table.All {
		a := &r.Extra
		if a.news() && a.from <= n.Now {
			changed++
		}
		if a.due <= n.Now {
			a.due = 0
		} else if later == 0 || a.due < later {
			later = a.due
		}
	}
	if changed > 3 && 3*changed > n.Table.Len()+1 {
		n.dumpFull()
	} else if changed > 0 {
		n.dump(nil, false, (*advert).news)
	}
	if later > 0 {
		n.schedule(later)
	}
}

// news reports whether the route is to be told in an incremental dump.
func (a *advert) news() bool { return a.number || a.hops }

// dump tells the routes that have settled and are wanted.
func (n *Node) dump(entries []distance.Entry, full bool, wanted func(*advert) bool) {
	for r := range n.Table.All {
		a := &r.Extra
		if a.from > n.Now || !wanted(a) {
			continue
		}
		a.told, a.number, a.hops = r.Hops, false, a.hops && !full
		entries = append(entries, distance.Entry{To: r.To, Seq: r.Seq, Hops: uint8(r.Hops)})
	}
	n.dumped = n.Now
	kind := "INCREMENTAL"
	if full {
		kind = "FULL"
	}
	n.Send(distance.Update{Full: full, Entries: entries}, kind, false)
}
