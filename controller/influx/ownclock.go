package influx

import (
	"cmp"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ownClock dates the records of one spool of a log that a node kept by itself: by the node's wall clock, which the log
// records, and a phone's log, which does not, by the times of its receiver's fixes. All records of one life of the
// logging program have the same offset, so that a step of the wall clock moves none.
type ownClock struct {
	told  []reading // in the order of their numbers, once settled
	fixes []int64   // UTC minus boot clock, by each fix
}

// reading is where a record has the wall clock.
type reading struct {
	seq    uint64
	bootNs int64
	begins bool   // a life of the program
	wallNs *int64 // wall clock minus boot clock; nil: nobody has set it
}

// learn takes in a record of the spool.
func (c *ownClock) learn(h wire.Header, body wire.Body) {
	t := reading{seq: h.Seq, bootNs: h.TBootNs}
	switch b := body.(type) {
	case *wire.Clock:
		if b.Peer != h.Node || b.OwnWallOffsetNs == nil {
			return
		}
		t.begins, t.wallNs = true, b.OwnWallOffsetNs
	case *wire.WallClock:
		t.wallNs = wallOf(b)
	case *wire.GPS:
		if utc, err := time.Parse(time.RFC3339Nano, b.TimeUTC); err == nil && b.FixBootNs != nil {
			c.fixes = append(c.fixes, utc.UnixNano()-*b.FixBootNs)
		}
		return
	default:
		return
	}
	c.told = append(c.told, t)
}

// wallOf is the wall clock minus the boot clock, by GPS where that shows that the wall clock is wrong.
func wallOf(b *wire.WallClock) *int64 {
	gps := b.GPSOffsetNs
	switch {
	case gps != nil && b.GPSUncertaintyNs != nil && (b.Unset || max(*gps, -*gps) > *b.GPSUncertaintyNs):
		return new(b.OwnWallOffsetNs + *gps)
	case b.Unset:
		return nil
	}
	return &b.OwnWallOffsetNs
}

// settle gives every reading of a life the offset of its last one: who sets a wall clock sets it right. The first does
// not say whether anybody has set the clock, and counts only where there is no other.
func (c *ownClock) settle() {
	slices.SortStableFunc(c.told, func(a, b reading) int { return cmp.Compare(a.seq, b.seq) })
	for i := len(c.told) - 1; i > 0; i-- {
		before, t := &c.told[i-1], c.told[i]
		if !t.begins && (before.begins || t.wallNs != nil) {
			before.wallNs = t.wallNs
		}
	}
	slices.Sort(c.fixes)
}

// offset is wall time minus boot clock for a record, by the reading before it or the one after it, whichever is nearer
// by the boot clock: a life's first records come before its first reading.
func (c *ownClock) offset(h wire.Header) (int64, answer) {
	if len(c.told) == 0 && len(c.fixes) > 0 {
		return c.fixes[len(c.fixes)/2], dated // the median: a fix may be late, or its date wrong
	}
	next, _ := slices.BinarySearchFunc(c.told, h.Seq+1, func(t reading, seq uint64) int {
		return cmp.Compare(t.seq, seq)
	})
	var nearest *reading
	for i := max(next-1, 0); i < min(next+1, len(c.told)); i++ {
		t := &c.told[i]
		if nearest == nil || apart(t.bootNs, h.TBootNs) < apart(nearest.bootNs, h.TBootNs) {
			nearest = t
		}
	}
	if nearest == nil || nearest.wallNs == nil {
		return 0, never
	}
	return *nearest.wallNs, dated
}

func apart(a, b int64) uint64 {
	if a < b {
		a, b = b, a
	}
	return uint64(a) - uint64(b)
}
