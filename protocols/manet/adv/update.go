package adv

import (
	"math"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
)

// loadRecent is how long ago data makes a destination one that data goes to now.
const loadRecent = 2 * time.Second

// urge adds to the wish to send an update. One that passes the threshold is
// sent.
func (n *Node) urge(weight float64, r *route) {
	if r != nil && r.Extra.used > 0 && n.Now-r.Extra.used < loadRecent {
		weight *= n.config.Weights.Load
	}
	n.meter += weight
	if n.meter >= n.threshold {
		n.partialBy(n.Now)
	}
}

// broke counts a broken route.
func (n *Node) broke(r *route) {
	n.Count("broken")
	r.Extra.told = false
	n.urge(n.config.Weights.Broken, r)
}

// fall lets the threshold come down again.
func (n *Node) fall() {
	passed := (n.Now - n.fell).Seconds()
	n.fell = n.Now
	n.threshold = max(n.threshold*math.Pow(n.config.ThresholdFall, passed), n.config.Threshold)
	if n.meter >= n.threshold {
		n.partialBy(n.Now)
	}
}

// partialBy makes sure of an update by a time, but not too soon after the last.
func (n *Node) partialBy(at manet.Time) {
	at = max(at, n.Now, n.updated+n.config.Spacing) + n.Jitter.Below(n.config.Jitter)
	n.WakeBy(at, timerPartial, &n.duePart)
}

// fullBy makes sure of a full update by a time.
func (n *Node) fullBy(at manet.Time) { n.WakeBy(max(at, n.Now), timerFull, &n.dueFull) }

// interest begins the regular updates, where there was nothing to report so
// far.
func (n *Node) interest() {
	n.fullBy(n.Now + n.config.UpdateInterval - n.Jitter.Below(n.config.UpdateInterval/8))
}

// updateFull tells all routes to active receivers, with a new number of our own
// where we are one.
func (n *Node) updateFull() {
	if !n.interested() {
		return
	}
	n.Seq += 2
	n.full, n.partials = n.Now, 0
	n.update(true)
	n.fullBy(n.Now + n.config.UpdateInterval - n.Jitter.Below(n.config.UpdateInterval/8))
}

// updatePartial reports what is news, if the urge has lasted.
func (n *Node) updatePartial() {
	if n.meter < n.threshold && !n.greet {
		return
	}
	if n.partials++; n.partials > n.config.FullAfter {
		n.updateFull()
		return
	}
	n.threshold = min(n.threshold*n.config.ThresholdRise, n.config.ThresholdMax)
	n.update(false)
}

// update sends all or what is news, and what is asked for.
func (n *Node) update(full bool) {
	n.meter, n.updated, n.greet = 0, n.Now, false
	var entries []distance.Entry
	if n.isReceiver() {
		entries = n.Own()
	}
	for r := range n.Table.All {
		if (full || !r.Extra.told) && n.tellable(r.To) {
			entries = append(entries, n.entry(r))
		}
		r.Extra.told = true
	}
	for _, to := range sorted(n.waiting) { // of which nothing at all is known
		if n.Table.Get(to) == nil {
			entries = append(entries, distance.Entry{To: to, Seq: 1, Hops: distance.Infinite,
				Flags: flagUnknown | flagRequest,
				Value: uint16(min(n.waiting[to].packets, 0xffff))})
		}
	}
	kind := "PARTIAL"
	if full {
		kind = "FULL"
	}
	n.Send(distance.Update{Full: full, Entries: entries}, kind, false)
}

// tellable reports whether a destination is an active receiver.
func (n *Node) tellable(to netip.Addr) bool {
	r := n.receivers[to]
	return r != nil && !r.ended
}

// entry tells a route; one that packets wait for asks for another.
func (n *Node) entry(r *route) distance.Entry {
	e := distance.Entry{To: r.To, Seq: r.Seq, Hops: uint8(r.Hops)}
	if w := n.waiting[r.To]; w != nil && r.Broken() {
		e.Flags, e.Value = flagRequest, uint16(min(w.packets, 0xffff))
	}
	return e
}

// sendFloods sends those whose time has come. An ALERT takes along our route to
// its originator, which is how it comes to be known everywhere.
func (n *Node) sendFloods() {
	for f := range n.floods.Due {
		u := distance.Update{Kind: kindFlood, Remainder: f.Marshal()}
		own := n.Interfaces.IsOwn(f.Originator)
		if r := n.Table.Get(f.Receiver); f.Type == Alert && own {
			u.Entries = n.Own()
		} else if f.Type == Alert && r != nil && !r.Broken() {
			u.Entries = []distance.Entry{n.entry(r)}
		}
		n.Send(u, f.Type.String(), !own)
	}
}
