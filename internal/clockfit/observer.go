package clockfit

import (
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// sameBootNs is how far apart the wall clock may be, against the boot clock, at two
// comparisons of one boot by two processes. A boot takes longer; a wall clock that was
// stepped by more makes two observers of one, each with fewer comparisons.
const sameBootNs = int64(1e9)

// Observer is one boot of a machine that compared the clocks of others with its own.
type Observer struct {
	Node      string
	OwnWallNs *int64 // its wall clock minus its boot clock at the first comparison; nil: not told
	epochs    []string
	points    map[string][]Point // by the node that was compared
}

// Observers sorts comparisons by the boot clock that they are against. A controller that
// was rebooted, or another machine that resumes its run, is another observer under the
// same name: its boot clock began at another moment. Records are those of an attempt: a
// comparison in another boot of the node that was compared is left out, for it says nothing
// of the clock that the node's records carry.
func Observers(records []wire.Record) []Observer {
	var out []Observer
	boots := bootsOf(records)
	for _, r := range records {
		c, ok := r.Body.(*wire.Clock)
		if !ok {
			continue
		}
		i := slices.IndexFunc(out, func(o Observer) bool { return o.made(r, c) })
		if i < 0 {
			i = len(out)
			out = append(out, Observer{Node: r.Node, OwnWallNs: c.OwnWallOffsetNs, points: map[string][]Point{}})
		}
		o := &out[i]
		if !slices.Contains(o.epochs, r.Epoch) {
			o.epochs = append(o.epochs, r.Epoch)
		}
		p := Point{BootNs: r.TBootNs + c.OffsetNs, OffsetNs: c.OffsetNs, UncertaintyNs: c.UncertaintyNs}
		if !boots[c.Peer].isOther(p, c) {
			o.points[c.Peer] = append(o.points[c.Peer], p)
		}
	}
	return out
}

// made reports whether a comparison is against the observer's boot clock: a controller's
// epoch is one process's, and processes of one boot agree on when that was.
func (o Observer) made(r wire.Record, c *wire.Clock) bool {
	if o.Node != r.Node {
		return false
	}
	if slices.Contains(o.epochs, r.Epoch) {
		return true
	}
	if o.OwnWallNs == nil || c.OwnWallOffsetNs == nil {
		return false
	}
	apart := *o.OwnWallNs - *c.OwnWallOffsetNs
	return max(apart, -apart) < sameBootNs
}

// Fit is a node's clock over a span of its own time; false when it was not compared.
func (o Observer) Fit(node string, openNs, closeNs int64) (Fit, bool) {
	if node == o.Node {
		return Fit{openNs: openNs, closeNs: max(closeNs, openNs+1), Steady: true}, true
	}
	return Over(o.points[node], openNs, closeNs)
}
