package plan

// Enough asks a run to stop by itself as soon as something is known precisely:
// by whole blocks, after some of them at the least, and at the latest after all
// that the design has. What is looked at is how wide an interval is, never
// where it lies.
type Enough struct {
	Of               string   `json:"of"` // a factor, of whose levels every pair is compared; or mean
	HalfWidthMbps    *float64 `json:"half_width_mbps,omitempty"`
	HalfWidthPercent *float64 `json:"half_width_percent,omitempty"` // of the mean of all trials
	MinBlocks        int      `json:"min_blocks"`
	EveryBlocks      int      `json:"every_blocks"` // between two looks
	Confidence       float64  `json:"confidence"`   // of all intervals at all looks together
}

// EnoughOfMean is the mean of all trials, where no factor is compared.
const EnoughOfMean = "mean"

func (p *parse) enough() object {
	return object{[]field{
		{"of", reference{"factor, or mean", append(p.factorNames(), EnoughOfMean)}, true},
		{"half_width_mbps", number{0, 1000, true, false, "Mbit/s"}, false},
		{"half_width_percent", number{0, 100, true, false, "% of the mean"}, false},
		// From fewer blocks an interval says nothing of use, however it is corrected.
		{"min_blocks", number{3, 1000, false, true, "blocks"}, true},
		{"every_blocks", number{1, 1000, false, true, "blocks"}, false},
		{"confidence", number{0.5, 0.999, false, false, ""}, false},
	}}
}

// readEnough judges and reads design.enough; its shape was checked with the rest
// of the design.
func (p *parse) readEnough(n *node) {
	f := &p.findings
	if n == nil || n.shape != shapeMap || n.bad {
		return
	}
	e := &Enough{Of: n.textAt("of"), HalfWidthMbps: n.numberAt("half_width_mbps"), HalfWidthPercent: n.numberAt("half_width_percent"),
		EveryBlocks: 1, Confidence: 0.95}
	if (n.child("half_width_mbps") == nil) == (n.child("half_width_percent") == nil) {
		f.add(n.home, "design.enough: the wished-for precision is needed once; allowed: half_width_mbps or half_width_percent")
		return
	}
	if v := n.wholeAt("min_blocks"); v != nil {
		e.MinBlocks = *v
	}
	if v := n.wholeAt("every_blocks"); v != nil {
		e.EveryBlocks = *v
	}
	if v := n.numberAt("confidence"); v != nil {
		e.Confidence = *v
	}
	if e.MinBlocks >= p.design.repetitions {
		f.add(n.child("min_blocks").at, "design.enough.min_blocks: %d is not allowed with repetitions: %d, which are the most blocks that are driven; allowed: fewer than those", e.MinBlocks, p.design.repetitions)
		return
	}
	p.design.enough = e
}
