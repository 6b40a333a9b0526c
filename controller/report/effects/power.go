package effects

import (
	"fmt"
	"math"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// wishedShares are the precisions that the power table is made for, as shares of
// the mean response.
var wishedShares = []float64{0.02, 0.05, 0.10, 0.20}

// powerView says what precision this campaign's design gives, and how many
// blocks another would take.
type powerView struct {
	Missing string
	Blocks  int
	Passes  float64 // of a block, as driven
	Wishes  []string
	Rows    []powerRow
}

type powerRow struct {
	Term, Label, Half, Detectable string
	Blocks                        []string
}

func (c *Comparison) power() powerView {
	blocks := map[int]int{}
	for _, one := range c.Results {
		blocks[one.Trial.Block]++
	}
	v := powerView{Blocks: len(blocks), Passes: float64(len(c.Results)) / float64(max(1, len(blocks)))}
	mean := c.row(design.Mean)
	if c.Fit.ResidualSD == nil || mean == nil || mean.Value == 0 {
		v.Missing = "There is no residual spread, or no mean, to reckon with."
		return v
	}
	for _, s := range wishedShares {
		v.Wishes = append(v.Wishes, fmt.Sprintf("± %.2g %s", s*math.Abs(mean.Value), c.Unit))
	}
	for _, e := range c.Rows {
		if e.Term == design.Mean || e.SE == nil || *e.SE == 0 {
			continue
		}
		p := c.planOf(e.Estimate, len(blocks))
		r := powerRow{Term: e.Term, Label: e.Label, Half: fmt.Sprintf("± %.3g", (*e.High-*e.Low)/2),
			Detectable: fmt.Sprintf("%.3g", stats.Detectable(stats.WishedPower, *e.DF, c.Level)**e.SE)}
		for _, s := range wishedShares {
			wish := s * math.Abs(mean.Value)
			if (*e.High-*e.Low)/2 <= wish {
				r.Blocks = append(r.Blocks, "reached")
				continue
			}
			r.Blocks = append(r.Blocks, atLeastBlocks(p.BlocksForWidth(wish)))
		}
		v.Rows = append(v.Rows, r)
	}
	if len(v.Rows) == 0 {
		v.Missing = "No estimate has a standard error to reckon with."
	}
	return v
}

// planOf says how an estimate of this run sharpens with more blocks of the same
// kind: each brings as many trials, and one unknown of its own.
func (c *Comparison) planOf(e stats.Estimate, blocks int) stats.Plan {
	trials := float64(c.Fit.N) / float64(blocks)
	unknowns := float64(c.Fit.N - c.Fit.DF - (blocks - 1))
	df := func(b int) float64 { return float64(b)*trials - unknowns - float64(b-1) }
	if e.Between || c.Fit.Groups == stats.GroupsRandom || c.Fit.Groups == stats.GroupsNoise {
		df = func(b int) float64 { return *e.DF * float64(b) / float64(blocks) }
	}
	return stats.Plan{SE: *e.SE, Blocks: blocks, DF: df, Confidence: c.Level}
}

func atLeastBlocks(n int) string {
	if n == 0 {
		return "—"
	}
	return fmt.Sprint(n)
}
