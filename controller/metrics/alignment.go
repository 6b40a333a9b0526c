package metrics

import (
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// alignment puts one node's times on an axis that all nodes share: the
// controller's boot clock where it compared the clocks, else the time since the
// window's opening, which GO made one for all.
type alignment struct {
	capture       wire.Capture
	points        []clockPoint // by the node's boot clock
	openBootNs    int64        // of the window, for want of a comparison
	uncertaintyNs *float64     // of the comparison, the worst
}

type clockPoint struct{ bootNs, offsetNs int64 }

func (at Attempt) align(node string, told wire.Capture, w wire.Window) *alignment {
	out := &alignment{capture: told, openBootNs: w.OpenBootNs}
	for _, r := range at.records {
		b, ok := r.Body.(*wire.Clock)
		if !ok || b.Peer != node {
			continue
		}
		out.points = append(out.points, clockPoint{r.TBootNs + b.OffsetNs, b.OffsetNs})
		if u := float64(b.UncertaintyNs); out.uncertaintyNs == nil || u > *out.uncertaintyNs {
			out.uncertaintyNs = &u
		}
	}
	slices.SortFunc(out.points, func(a, b clockPoint) int { return int(a.bootNs - b.bootNs) })
	return out
}

// together is the uncertainty of two nodes' times against each other; nil when
// one of them was not compared.
func (k *alignment) together(o *alignment) *float64 {
	if k.uncertaintyNs == nil || o.uncertaintyNs == nil {
		return nil
	}
	return new(*k.uncertaintyNs + *o.uncertaintyNs)
}

// common converts the wall clock that a packet carries.
func (k *alignment) common(wallNs int64) int64 {
	c := k.capture
	boot := wallNs - c.WallOffsetOpen
	if span := c.CloseBootNs - c.OpenBootNs; span > 0 { // the wall clock may have been slewed meanwhile
		share := min(max(float64(boot-c.OpenBootNs)/float64(span), 0), 1)
		boot -= int64(share * float64(c.WallOffsetClose-c.WallOffsetOpen))
	}
	return k.of(boot)
}

// of converts the node's boot clock.
func (k *alignment) of(bootNs int64) int64 {
	n := len(k.points)
	if n == 0 {
		return bootNs - k.openBootNs
	}
	i, _ := slices.BinarySearchFunc(k.points, bootNs, func(p clockPoint, at int64) int {
		if p.bootNs < at {
			return -1
		}
		return 1
	})
	switch {
	case i == 0:
		return bootNs - k.points[0].offsetNs
	case i == n:
		return bootNs - k.points[n-1].offsetNs
	}
	a, b := k.points[i-1], k.points[i]
	share := float64(bootNs-a.bootNs) / float64(b.bootNs-a.bootNs)
	return bootNs - a.offsetNs - int64(share*float64(b.offsetNs-a.offsetNs))
}
