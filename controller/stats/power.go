package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// WishedPower is the probability with which an effect is to be found.
const WishedPower = 0.8

// Power is the probability that a two-sided t test at level 1 − confidence
// finds an effect that is so many standard errors large: by the noncentral t.
//
// A noncentral t is (Z + shift)/S with S² = χ²/df, so that its tails are
// integrals over S of the normal's: what is summed here.
func Power(shift, df, confidence float64) float64 {
	critical := TQuantile(confidence, df)
	normal := distuv.UnitNormal
	// log density of S = √(χ²/df)
	lg, _ := math.Lgamma(df / 2)
	density := func(s float64) float64 {
		return math.Exp(math.Ln2 + df/2*math.Log(df/2) - lg + (df-1)*math.Log(s) - df*s*s/2)
	}
	f := func(s float64) float64 {
		return density(s) * (normal.CDF(shift-critical*s) + normal.CDF(-shift-critical*s))
	}
	// S has mean about 1 and standard deviation about 1/√(2 df).
	spread := 12 / math.Sqrt(2*df)
	low, high := max(0, 1-spread), 1+spread
	const pieces = 8
	var sum float64
	for i := range pieces {
		from, to := low+(high-low)*float64(i)/pieces, low+(high-low)*float64(i+1)/pieces
		sum += quad.Fixed(f, from, to, 40, quad.Legendre{}, 0)
	}
	return min(1, max(0, sum))
}

// Detectable is the smallest effect, in standard errors, that is found with the
// wished-for probability.
func Detectable(power, df, confidence float64) float64 {
	low, high := 0.0, 1.0
	for Power(high, df, confidence) < power && high < 1e6 {
		high *= 2
	}
	for range 80 {
		if mid := (low + high) / 2; Power(mid, df, confidence) < power {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// Plan says how an estimate sharpens with blocks: its standard error with the
// blocks that there are, and the residual degrees of freedom that a number of
// them leaves.
type Plan struct {
	SE         float64
	Blocks     int
	DF         func(blocks int) float64
	Confidence float64
}

// at is the standard error with so many blocks of the same kind.
func (p Plan) at(blocks int) float64 {
	return p.SE * math.Sqrt(float64(p.Blocks)/float64(blocks))
}

// mostBlocks is where a search for blocks ends: more are no plan.
const mostBlocks = 100_000

// BlocksForWidth is the fewest blocks after which half the interval's width is
// expected to be no more than wished; 0 when no number that could be driven is.
func (p Plan) BlocksForWidth(half float64) int {
	b := 1 + sort.Search(mostBlocks, func(i int) bool {
		return p.DF(i+1) >= 1 && TQuantile(p.Confidence, p.DF(i+1))*p.at(i+1) <= half
	})
	if b > mostBlocks {
		return 0
	}
	return b
}
