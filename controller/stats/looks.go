package stats

// Looks is a plan to look at a growing sample and to stop as soon as what is
// wanted of it is known precisely.
//
// Whoever looks again and again at an ordinary 95 % interval and stops when it
// is narrow stops too often where the spread came out small by chance, and the
// interval then covers less than it says. Here the chance of error is spent over
// the looks that may be taken, an equal share each: by Boole's inequality the
// intervals of all looks together hold with the confidence, and so does that at
// which was stopped, whatever the reason for stopping was. They are repeated
// confidence intervals (C. Jennison and B. Turnbull, "Interim analyses: the
// repeated confidence interval approach", J. R. Statist. Soc. B 51, 1989) with
// the plainest way of spending; it asks for no normal approximation and errs on
// the safe side, as the looks are not independent.
type Looks struct {
	First, Last, Every int // in blocks: at First, First+Every … and at Last
	Questions          int // estimates that are to hold together
	Confidence         float64
}

// Count is how many looks there can be.
func (l Looks) Count() int {
	n := 1
	for b := l.First; b < l.Last; b += l.Every {
		n++
	}
	return n
}

// At reports whether there is a look after so many blocks.
func (l Looks) At(blocks int) bool {
	return blocks == l.Last || blocks >= l.First && blocks < l.Last && (blocks-l.First)%l.Every == 0
}

// Each is the confidence of one interval at one look.
func (l Looks) Each() float64 {
	return 1 - (1-l.Confidence)/float64(l.Count()*l.Questions)
}

// PerLook is the confidence of an interval at one look that no other question shares.
func (l Looks) PerLook() float64 { return 1 - (1-l.Confidence)/float64(l.Count()) }

// Half is half the width of the interval at a look for the mean of what blocks
// say; absent from fewer than three, or where they do not differ at all.
func (l Looks) Half(blocks []float64) *float64 {
	return HalfWidth(l.Each(), blocks)
}
