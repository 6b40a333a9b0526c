package plan

import (
	"slices"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// StopWhen asks a run to stop by itself as soon as something is known precisely:
// by whole blocks, after some of them at least, and at the latest after all
// that the design has. What is looked at is how wide an interval is, never
// where it lies.
type StopWhen struct {
	Of               string   `json:"of"` // a factor, of whose levels every pair is compared; or mean
	HalfWidthMbps    *float64 `json:"half_width_mbps,omitempty"`
	HalfWidthPercent *float64 `json:"half_width_percent,omitempty"` // of the mean of all trials
	MinBlocks        int      `json:"min_blocks"`
	EveryBlocks      int      `json:"every_blocks"` // between two looks
	Confidence       float64  `json:"confidence"`   // of all intervals at all looks together
}

// StopOfMean is the mean of all trials, where no factor is compared.
const StopOfMean = "mean"

// What holds where the file does not say.
const (
	everyBlock     = 1
	stopConfidence = 0.95
)

func (s schema) stopWhen() object {
	return object{[]field{
		required("of", reference{"factor, or mean", append(slices.Clone(s.factors), StopOfMean)},
			"The factor of whose levels every pair is compared, or mean for the mean of all trials"),
		optional("half_width_mbps", number{0, 1000, true, false, "Mbit/s"}, "Wanted half width of the intervals"),
		optional("half_width_percent", number{0, 100, true, false, "% of the mean"}, "Wanted half width of the "+
			"intervals"),
		// From fewer blocks an interval says nothing of use, however it is corrected.
		required("min_blocks", number{3, 1000, false, true, "blocks"}, "When the intervals are looked at first"),
		optional("every_blocks", number{1, 1000, false, true, "blocks"}, "How far apart two looks are").or(everyBlock),
		optional("confidence", number{0.5, 0.999, false, false, ""},
			"Confidence of all intervals at all looks together").or(stopConfidence),
	}}
}

// readStopWhen judges and reads design.stop_when; its shape was checked with the rest
// of the design.
func (p *parse) readStopWhen(n *tree.Node) {
	f := &p.findings
	if n == nil || n.Shape != tree.Map || n.Bad {
		return
	}
	e := &StopWhen{EveryBlocks: everyBlock, Confidence: stopConfidence}
	n.Into(f, e)
	if (n.Child("half_width_mbps") == nil) == (n.Child("half_width_percent") == nil) {
		f.Add(n.Home, "design.stop_when: it needs one precision; allowed: either half_width_mbps or "+
			"half_width_percent")
		return
	}
	if i := slices.Index(p.factorNames(), e.Of); i >= 0 && len(p.factors[i].levels) == 1 && !p.archived {
		f.Add(n.Child("of").At, "design.stop_when.of: factor %s has one level, which is compared with none, so that "+
			"the run never stops by itself; allowed: a factor with several levels, or mean", e.Of)
		return
	}
	if e.MinBlocks >= p.design.repetitions {
		f.Add(n.Child("min_blocks").At, "design.stop_when.min_blocks: %d is not allowed with repetitions: %d, "+
			"which are "+
			"the most blocks that are driven; allowed: fewer than those", e.MinBlocks, p.design.repetitions)
		return
	}
	p.design.stopWhen = e
}
