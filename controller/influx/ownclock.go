package influx

import (
	"cmp"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ownClock dates the records of a log that a node kept by itself, of one spool: by what the log tells of the node's
// wall clock, and a phone's, which tells nothing of it, by the times of its receiver's fixes. All of one life of the
// logging program has one date, so that a step of the wall clock moves no record.
type ownClock struct {
	told  []telling // in the order of their numbers, once settled
	fixes []int64   // UTC minus boot clock, by each fix
}

// telling is what a record says of the wall clock.
type telling struct {
	seq    uint64
	bootNs int64
	begins bool   // a life of the program
	wallNs *int64 // wall clock minus boot clock; nil: nobody has set it
}

// learn takes in a record of the spool.
func (c *ownClock) learn(h wire.Header, body wire.Body) {
	t := telling{seq: h.Seq, bootNs: h.TBootNs}
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

// settle gives every telling of a life what the last of it knows: a wall clock is set right, not wrong. The first, of
// which is not known whether anybody had set the clock, counts where there is no other.
func (c *ownClock) settle() {
	slices.SortStableFunc(c.told, func(a, b telling) int { return cmp.Compare(a.seq, b.seq) })
	for i := len(c.told) - 1; i > 0; i-- {
		before, t := &c.told[i-1], c.told[i]
		if !t.begins && (before.begins || t.wallNs != nil) {
			before.wallNs = t.wallNs
		}
	}
	slices.Sort(c.fixes)
}

// offset is wall time minus boot clock for a record: as the telling before or after it, whichever is nearer by the boot
// clock, for a life's first records precede its first telling.
func (c *ownClock) offset(h wire.Header) (int64, answer) {
	if len(c.told) == 0 && len(c.fixes) > 0 {
		return c.fixes[len(c.fixes)/2], dated // the median: a fix may be late, or its date wrong
	}
	next, _ := slices.BinarySearchFunc(c.told, h.Seq+1, func(t telling, seq uint64) int { return cmp.Compare(t.seq, seq) })
	var nearest *telling
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
