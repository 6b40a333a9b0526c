package verdict

import (
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/clockfit"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Clocks are the boot clocks of nodes against an observer's, throughout their windows.
type Clocks struct {
	Fits          map[string]clockfit.Fit // by node
	UncertaintyNs float64                 // of the two that are known worst, against each other
	// Stale: some clock was compared on one side of the window only, and long ago. What GO
	// says of the windows is then better.
	Stale bool
}

// ClocksOf goes by the observer who knows the nodes' clocks best; false when none compared all.
func ClocksOf(nodes []string, records []wire.Record) (best Clocks, ok bool) {
	for _, o := range clockfit.Observers(records) {
		if c, all := clocksBy(o, nodes, records); all && (!ok || c.UncertaintyNs < best.UncertaintyNs) {
			best, ok = c, true
		}
	}
	return best, ok
}

func clocksBy(o clockfit.Observer, nodes []string, records []wire.Record) (Clocks, bool) {
	out := Clocks{Fits: map[string]clockfit.Fit{}}
	var off []float64
	for _, n := range nodes {
		w := WindowOf(n, records)
		if w == nil {
			return Clocks{}, false
		}
		f, ok := o.Fit(n, w.OpenBootNs, w.CloseBootNs)
		if !ok {
			return Clocks{}, false
		}
		out.Fits[n], out.Stale, off = f, out.Stale || f.Stale, append(off, f.UncertaintyNs)
	}
	slices.Sort(off)
	for _, ns := range off[max(0, len(off)-2):] {
		out.UncertaintyNs += ns
	}
	return out, true
}

// clockError adds the uncertainty of the clocks' comparison to that of GO.
// Either alone bounds the alignment when the other was not measured, or is stale.
func clockError(t wire.Trial, records []wire.Record) (*float64, string) {
	c, compared := ClocksOf(t.Nodes(), records)
	clock, goMs := c.UncertaintyNs/1e6, GoUncertaintyNs(records)
	if goMs != nil {
		*goMs /= 1e6
	}
	switch {
	case c.Stale && goMs != nil:
		return goMs, "by GO alone; the clocks were not compared within the last minute"
	case compared && goMs != nil:
		return new(clock + *goMs), fmt.Sprintf("clocks ± %.3g ms, GO ± %.3g ms", clock, *goMs)
	case compared:
		return &clock, "by clocks alone; GO not measured"
	case goMs != nil:
		return goMs, "by GO alone; clocks not compared"
	}
	return nil, ""
}
