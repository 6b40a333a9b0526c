package dsdv

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
)

// route is an entry of the table that packets are forwarded by. What is told to
// others, the advert, may be behind it while it settles.
type (
	base  = distance.Node[advert]
	route = distance.Route[advert]
)

// advert is the other of the paper's two tables.
type advert struct {
	told     bool // something was told since the route is known
	seq      uint32
	hops     int
	from     manet.Time // until then the route is settling, and what was told before is told
	best     manet.Time // when the best path with the present number came
	settling time.Duration
	samples  bool // settling is an average, not yet the start value
	urgent   bool // belongs into the next incremental dump
	missed   bool // a neighbour has lost it, and a newer number than ours is news to it
}

// settled takes a number's settling time into the average, once there is a
// newer number: from its first way to its best.
func (n *Node) settled(a *advert, first manet.Time) {
	took := max(a.best-first, 0)
	if !a.samples {
		a.samples, a.settling = true, n.config.SettlingStart
	}
	w := n.config.SettlingWeight
	a.settling = min(time.Duration(w*float64(a.settling)+(1-w)*float64(took)), n.config.maxSettling())
}

// changed decides when a route that was taken is told. A destination that is
// new or back is told at once, as is a way that is no longer than the last:
// nothing better is to be expected. A longer one waits for twice the time that
// it took the destination's routes to settle.
func (n *Node) changed(r, before *route) {
	a := &r.Extra
	a.from = n.Now
	if before.Broken() {
		a.best = n.Now
		n.urge(r)
		return
	}
	if r.Seq == before.Seq {
		a.best = n.Now
		if a.told && r.Hops > a.hops {
			a.from = before.Extra.from // still longer than what was told
		}
	} else {
		n.settled(a, before.Since)
		a.best = n.Now
		if r.Hops > before.Hops {
			a.from = n.Now + 2*a.settling
		}
	}
	switch {
	case !a.told || r.Hops != a.hops || a.missed:
		n.urge(r)
	case n.config.TriggerSequence:
		a.urgent = true
		n.schedule(max(a.from, n.full+n.config.NumberAggregation, n.incremental+n.config.NumberAggregation))
	}
}

// broke reports a broken route at once.
func (n *Node) broke(r *route) {
	n.Count("broken")
	r.Extra.from = n.Now
	n.urge(r)
}

// urge puts a route into the next incremental dump after it has settled.
func (n *Node) urge(r *route) {
	r.Extra.urgent = true
	n.schedule(r.Extra.from)
}

// schedule makes sure of an incremental dump, not before a time and not too
// soon after the last.
func (n *Node) schedule(at manet.Time) {
	at = max(at, n.Now, n.incremental+n.config.Aggregation) + n.Jitter.Below(n.config.Jitter)
	n.WakeBy(at, timerIncremental, &n.incrementalAt)
}

// scheduleFull makes sure of a full dump by a time.
func (n *Node) scheduleFull(at manet.Time) {
	if at = max(at, n.Now); n.dueFull <= n.Now || at < n.dueFull {
		n.dueFull = at
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerFull}, At: at})
	}
}

// dumpFull tells all routes, with a new number of our own.
func (n *Node) dumpFull() {
	n.Seq += 2
	n.full = n.Now
	entries := n.Own()
	for r := range n.Table.All {
		if e, ok := n.tell(r); ok {
			entries = append(entries, e)
		}
	}
	n.challenged, n.greet = false, false
	n.send(entries, true)
	n.replaceIncremental()
	n.dueFull = n.Now
	n.scheduleFull(n.Now + n.config.Period - n.Jitter.Below(n.config.Period/8))
}

// replaceIncremental takes a full dump for the incremental one that was due.
// What is left for another is settling still.
func (n *Node) replaceIncremental() {
	if n.incrementalAt == 0 {
		return
	}
	n.incremental, n.incrementalAt = n.Now, 0
	n.Act(manet.StopTimer{Key: manet.TimerKey{Kind: timerIncremental}})
	for r := range n.Table.All {
		if r.Extra.urgent {
			n.schedule(r.Extra.from)
		}
	}
}

// dumpIncremental reports what changed. What does not fit one packet is a full
// dump instead, as the paper has it.
func (n *Node) dumpIncremental() {
	n.incremental = n.Now
	var entries []distance.Entry
	if n.challenged {
		entries = n.Own()
	}
	ready, later := 0, manet.Time(0)
	for r := range n.Table.All {
		a := &r.Extra
		switch {
		case !a.urgent:
		case a.from > n.Now:
			if later == 0 || a.from < later {
				later = a.from
			}
		default:
			ready++
			if e, ok := n.tell(r); ok {
				entries = append(entries, e)
			}
		}
	}
	if len(entries) > n.room() {
		n.dumpFull()
	} else if ready > 0 || n.challenged || n.greet {
		n.challenged, n.greet = false, false
		n.send(entries, false)
	}
	if later > 0 {
		n.schedule(later)
	}
}

// tell makes the entry of a route: what it is, or, while it settles, what was
// told before, if that was anything.
func (n *Node) tell(r *route) (distance.Entry, bool) {
	a := &r.Extra
	if a.from <= n.Now {
		a.told, a.seq, a.hops, a.urgent, a.missed = true, r.Seq, r.Hops, false, false
	}
	return distance.Entry{To: r.To, Seq: a.seq, Hops: uint8(a.hops)}, a.told
}

// room is how many entries fit a packet of the narrowest link.
func (n *Node) room() int {
	room := distance.Room(0, 0)
	for i := range n.Interfaces {
		room = min(room, distance.Room(n.Interfaces[i].MTU, 0))
	}
	return room
}

// send puts entries on every interface.
func (n *Node) send(entries []distance.Entry, full bool) {
	kind := "INCREMENTAL"
	if full {
		kind = "FULL"
	}
	n.Send(distance.Update{Full: full, Entries: entries}, kind, false)
}
