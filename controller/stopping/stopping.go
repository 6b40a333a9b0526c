// Package stopping decides whether a run has driven enough: after every whole
// block at which its campaign allows a look, how wide the interval is of what
// the campaign wants to know. It looks at widths and never at where an interval
// lies, and it only counts; who stops is the run's business.
//
// The unit is the block. Every block holds each cell of the design once, so the
// difference of two levels within it is free of all that the block's trials have
// in common: the hour, the weather, who sat in the car. Blocks are independent
// of each other, and as many numbers as there are blocks make the interval.
package stopping

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Contrast is one thing that the campaign wants to know, after some blocks.
type Contrast struct {
	Label string   // "B − A", or "mean"
	Value float64  // Mbit/s
	Half  *float64 // half the interval's width; absent where n forbids one
}

// Look is what was found after so many blocks.
type Look struct {
	Blocks    int // driven
	Whole     int // of these, with a measured trial in every cell
	Contrasts []Contrast
	Wanted    float64 // half width, Mbit/s
	Enough    bool
}

// Plan is the plan of the looks of a run.
func Plan(e plan.StopWhen, p wire.RunPlan) stats.Looks {
	most, questions := blocks(p), 1
	if n := len(levels(e, p)); n > 1 {
		questions = n * (n - 1) / 2
	}
	return stats.Looks{First: e.MinBlocks, Last: most, Every: e.EveryBlocks, Questions: questions,
		Confidence: e.Confidence}
}

// Level is the confidence of a run's intervals: where it looked several times whether it had
// enough, by e, the chance of error is shared among the looks (see stats.Looks). Nil: it never looked.
func Level(e *plan.StopWhen, p wire.RunPlan) float64 {
	if e == nil {
		return stats.Confidence
	}
	return Plan(*e, p).PerLook()
}

// blocks is how many the plan has.
func blocks(p wire.RunPlan) int {
	most := 0
	for _, t := range p.Trials {
		if t.Pass == "" {
			most = max(most, t.Block)
		}
	}
	return most
}

// levels are those of the factor that is asked about.
func levels(e plan.StopWhen, p wire.RunPlan) []string {
	if e.Of == plan.StopOfMean {
		return nil
	}
	seen := map[string]bool{}
	for _, t := range p.Trials {
		if l := t.Factors[e.Of]; t.Pass == "" && l != "" {
			seen[l] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), wire.CompareLevels)
}

// Driven is after how many blocks of the schedule every trial is decided: open
// tells those that are not.
func Driven(p wire.RunPlan, open func(trial int) bool) int {
	first := blocks(p) + 1
	for _, t := range p.Trials {
		if t.Pass == "" && open(t.Number) {
			first = min(first, t.Block)
		}
	}
	return first - 1
}

// Due lists the looks that so many driven blocks allow.
func Due(e plan.StopWhen, p wire.RunPlan, driven int) []int {
	var out []int
	looks := Plan(e, p)
	for b := 1; b <= driven; b++ {
		if looks.At(b) {
			out = append(out, b)
		}
	}
	return out
}

// Take looks at the first blocks of a run. mbps tells what an accepted trial
// measured, nil where none was; a block that lacks one says nothing.
func Take(e plan.StopWhen, p wire.RunPlan, driven int, mbps func(trial int) *float64) Look {
	looks, names := Plan(e, p), levels(e, p)
	look := Look{Blocks: driven}
	var means []float64
	byLevel := map[string][]float64{}
	for b := 1; b <= driven; b++ {
		all, each, whole := ofBlock(e, p, b, mbps)
		if !whole {
			continue
		}
		look.Whole++
		means = append(means, all)
		for l, v := range each {
			byLevel[l] = append(byLevel[l], v)
		}
	}
	if e.Of == plan.StopOfMean {
		look.Contrasts = []Contrast{contrast(looks, plan.StopOfMean, means)}
	}
	for i, x := range names {
		for _, y := range names[i+1:] {
			var between []float64
			for b := range byLevel[x] {
				between = append(between, byLevel[y][b]-byLevel[x][b])
			}
			look.Contrasts = append(look.Contrasts, contrast(looks, y+" − "+x, between))
		}
	}
	look.Wanted = wanted(e, means)
	look.Enough = len(look.Contrasts) > 0 && !slices.ContainsFunc(look.Contrasts, func(c Contrast) bool {
		return c.Half == nil || *c.Half > look.Wanted
	})
	return look
}

func contrast(looks stats.Looks, label string, values []float64) Contrast {
	c := Contrast{Label: label, Half: looks.Half(values)}
	for _, v := range values {
		c.Value += v / float64(len(values))
	}
	return c
}

// wanted is the half width that is enough, in Mbit/s.
func wanted(e plan.StopWhen, means []float64) float64 {
	if e.HalfWidthMbps != nil {
		return *e.HalfWidthMbps
	}
	var sum float64
	for _, v := range means {
		sum += v / float64(len(means))
	}
	return math.Abs(sum) * *e.HalfWidthPercent / 100
}

// ofBlock is a block's mean, of all its trials and of each level's.
func ofBlock(e plan.StopWhen, p wire.RunPlan, block int, mbps func(trial int) *float64) (all float64,
	each map[string]float64, whole bool) {
	each = map[string]float64{}
	count, n := map[string]float64{}, 0.0
	for _, t := range p.Trials {
		if t.Pass != "" || t.Block != block {
			continue
		}
		v := mbps(t.Number)
		if v == nil {
			return 0, nil, false
		}
		all, n = all+*v, n+1
		each[t.Factors[e.Of]] += *v
		count[t.Factors[e.Of]]++
	}
	for l := range each {
		each[l] /= count[l]
	}
	return all / n, each, n > 0
}

// String tells a look in a sentence.
func (l Look) String() string {
	var worst *Contrast
	for i, c := range l.Contrasts {
		if c.Half == nil {
			return fmt.Sprintf("after %d blocks (%d whole): no interval yet, wished for ± %.3g Mbit/s", l.Blocks,
				l.Whole, l.Wanted)
		}
		if worst == nil || *c.Half > *worst.Half {
			worst = &l.Contrasts[i]
		}
	}
	if worst == nil {
		return fmt.Sprintf("after %d blocks: nothing to compare", l.Blocks)
	}
	return fmt.Sprintf("after %d blocks (%d whole): %s is known to ± %.3g Mbit/s, wished for ± %.3g", l.Blocks, l.Whole,
		worst.Label, *worst.Half, l.Wanted)
}
