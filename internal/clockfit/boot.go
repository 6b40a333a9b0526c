package clockfit

import (
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// comparedAheadNs is how long before a node's first record of an attempt its clock may have
// been compared for it. What seems older is of a boot that began since.
const comparedAheadNs = int64(10 * time.Minute)

// boot is what a node's own records say about the boot in which it made them.
type boot struct {
	firstNs int64   // the boot clock at the first
	wallsNs []int64 // wall clock minus boot clock, wherever it had been set
}

// bootsOf are the nodes' boots in the records of an attempt.
func bootsOf(records []wire.Record) map[string]*boot {
	out := map[string]*boot{}
	for _, r := range records {
		b := out[r.Node]
		if b == nil {
			b = &boot{firstNs: r.TBootNs}
			out[r.Node] = b
		}
		if w, is := r.Body.(*wire.WallClock); is && !w.Unset {
			b.wallsNs = append(b.wallsNs, w.OwnWallOffsetNs)
		}
	}
	return out
}

// isOther reports whether a comparison of the node, which gave p, is of another boot: of two
// boots the later began, by the wall clock, after what is known of the earlier. A wall clock
// that was stepped by less makes no other boot.
func (b *boot) isOther(p Point, c *wire.Clock) bool {
	switch {
	case b == nil:
		return false
	case c.OwnWallOffsetNs == nil || len(b.wallsNs) == 0:
		return p.BootNs < b.firstNs-comparedAheadNs
	}
	wallNs := c.WallOffsetNs + *c.OwnWallOffsetNs - c.OffsetNs // as in wallsNs
	return !slices.ContainsFunc(b.wallsNs, func(own int64) bool {
		later := wallNs - own // by how much the boot of the comparison began later
		return later < max(b.firstNs, sameBootNs) && -later < max(p.BootNs, sameBootNs)
	})
}
