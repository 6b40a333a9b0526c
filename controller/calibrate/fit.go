package calibrate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// The model: a link's gain over free space at one metre is
//
//	G − 10·n·log10(d) + p(tx) + g(tx) + g(rx) + X + e
//
// G is what both antennas have together, p and g how a unit differs from the
// mean of all in power and in antenna. X is shadowing: normal, with Gudmundson's
// correlation exp(−Δ/d0) in the way Δ that both ends have moved, the same in
// both directions and, as in the emulated radio, independent from link to link.
// e is each sample's own: fading, rounding, the error of the fixes.
//
// One hertz or ten along one pass are not so many observations: that is what the
// correlation says, and passes over the same road see the same shadows. (Those of a
// rehearsal's repetition do, if each repetition has its own.) Its length
// and how e compares to X are not known either. Both are laid on a grid, each point
// weighed by its restricted likelihood (Harville, JASA 72(358), 1977) under priors
// that say little: flat in the logarithms of σ, of d0, and of the odds of e against
// X in variance. What is reported about anything is the average over the grid, so
// the intervals hold what is not known of the correlation.

// The odds of e against X that are tried, from leastOwnDb beside 30 dB to hardly
// any X. Both ways of a link in one place tell e to a tenth, and X is e over the
// root of the odds: with wider steps the grid would settle X, not the samples.
const (
	oddsLeast, oddsMost = 1e-5, 50.0
	oddsStep            = 1.25
)

// leastOwnDb is given to every sample as noise. An emulated radio without fading
// tells both ways of a link the same to the last digit; an e of nothing is
// outside any grid, and at its edge half of the samples would count as X of nothing.
const leastOwnDb = 0.1

const correlationSteps = 14

// lengthsLeast is how many correlation distances the farthest places of the links
// must be apart, added up over the links: shadows that are longer are not told from
// the mean, nor their variance from anything.
const lengthsLeast = 8

// trust is the power to which the likelihood of σ, d0 and the share of e is taken.
// One road's shadows are no draw from a normal process: a few waves, or a few
// houses, make all of them, and neighbours tell less of its parameters than the
// model thinks. (Grünwald and van Ommen, Bayesian Analysis 12(4), 2017, on such
// a power where a model is known to be wrong.) One half was chosen on recordings
// of the emulated radio: with one, 12 of 60 intervals of σ under Rayleigh fading,
// which both ways of a link share, do not hold; TestSoakCalibrationCovers says how
// often they do.
const trust = 0.5

// errNoFit is for samples that no model can be fitted to.
var errNoFit = errors.New("the samples are too few, or all from one place")

// point is one point of the grid.
type point struct {
	d0M, ownShare float64
	weight        float64
	beta          []float64
	cov           *mat.SymDense // of beta, for a variance of 1
	rss           float64       // generalised
}

// posterior is what the samples leave of the model.
type posterior struct {
	grid  []point
	df    float64
	edges [2]float64 // of the correlation distances that were tried
}

// infer fits the columns to the samples.
func infer(samples []sample, columns [][]float64) (*posterior, error) {
	n, p := len(samples), len(columns)
	if n < p+3 {
		return nil, fmt.Errorf("fit %d samples: %w", n, errNoFit)
	}
	links, extent, sum := byLink(samples, columns)
	if extent < lengthsLeast*cellM {
		return nil, fmt.Errorf("fit samples within %.1f m: the nodes of a link must be seen at places %.0f m apart at "+
			"least; drive a longer course", extent, float64(lengthsLeast*cellM))
	}
	post := &posterior{df: float64(n - p), edges: [2]float64{cellM / 2, min(extent, sum/lengthsLeast)}}
	most := math.Inf(-1)
	for i := range correlationSteps {
		d0 := post.edges[0] * math.Pow(post.edges[1]/post.edges[0], float64(i)/(correlationSteps-1))
		for odds := oddsLeast; odds <= oddsMost; odds *= oddsStep {
			at, ok := solve(links, d0, odds/(1+odds), n, p)
			if ok {
				most = max(most, at.weight)
				post.grid = append(post.grid, at)
			}
		}
	}
	total := 0.0
	for i := range post.grid {
		g := &post.grid[i]
		g.weight = math.Exp(g.weight - most)
		total += g.weight
	}
	for i := range post.grid {
		post.grid[i].weight /= total
	}
	if len(post.grid) == 0 {
		return nil, fmt.Errorf("fit %d samples: %w", n, errNoFit)
	}
	return post, nil
}

// link is the samples of one link, whose shadows are independent of all others'.
type link struct {
	passes []float64
	moved  *mat.SymDense // how far apart each two samples are, by both ends' places
	x      *mat.Dense
	y      *mat.VecDense
}

// byLink parts the samples; extent is how far apart the farthest of a link are, and
// sum that of all links.
func byLink(samples []sample, columns [][]float64) (out []link, extent, sum float64) {
	noise := rand.New(rand.NewPCG(1, 0)) // always the same: a run has one result
	of := map[string][]int{}
	var names []string
	gains := make([]float64, len(samples))
	for i, s := range samples {
		gains[i] = s.gainDb + leastOwnDb/math.Sqrt(s.passes)*noise.NormFloat64()
		if of[s.link] == nil {
			names = append(names, s.link)
		}
		of[s.link] = append(of[s.link], i)
	}
	for _, name := range names {
		n, own := len(of[name]), 0.0
		l := link{make([]float64, n), mat.NewSymDense(n, nil), mat.NewDense(n, len(columns), nil),
			mat.NewVecDense(n, nil)}
		for i, k := range of[name] {
			l.passes[i] = samples[k].passes
			l.y.SetVec(i, gains[k])
			for c := range columns {
				l.x.Set(i, c, columns[c][k])
			}
			for j := range i {
				d := movedM(samples[of[name][j]], samples[k])
				l.moved.SetSym(i, j, d)
				own = max(own, d)
			}
		}
		extent, sum = max(extent, own), sum+own
		out = append(out, l)
	}
	return out, extent, sum
}

// solve is generalised least squares of n samples and p columns at one point of the
// grid; its weight is the logarithm of the restricted likelihood, with the prior of
// the step in own left out because it is the same for all.
func solve(links []link, d0M, own float64, n, p int) (point, bool) {
	xrx, xry := mat.NewDense(p, p, nil), mat.NewVecDense(p, nil)
	yry, logDet := 0.0, 0.0
	for _, l := range links {
		r := mat.NewSymDense(len(l.passes), nil)
		for i, passes := range l.passes {
			r.SetSym(i, i, 1-own+own/passes)
			for j := range i {
				r.SetSym(i, j, (1-own)*math.Exp(-l.moved.At(i, j)/d0M))
			}
		}
		var whole mat.Cholesky
		var rx, part mat.Dense
		var ry, partY mat.VecDense
		if !whole.Factorize(r) || whole.SolveTo(&rx, l.x) != nil || whole.SolveVecTo(&ry, l.y) != nil {
			return point{}, false
		}
		part.Mul(l.x.T(), &rx)
		xrx.Add(xrx, &part)
		partY.MulVec(l.x.T(), &ry)
		xry.AddVec(xry, &partY)
		yry, logDet = yry+mat.Dot(l.y, &ry), logDet+whole.LogDet()
	}
	var normal mat.Cholesky
	var beta mat.VecDense
	if !normal.Factorize(symmetric(xrx)) || normal.SolveVecTo(&beta, xry) != nil {
		return point{}, false
	}
	rss := yry - mat.Dot(&beta, xry)
	cov := mat.NewSymDense(p, nil)
	if !(rss > 0) || normal.InverseTo(cov) != nil {
		return point{}, false
	}
	restricted := -0.5 * (logDet + normal.LogDet() + float64(n-p)*math.Log(rss))
	return point{d0M: d0M, ownShare: own, weight: trust * restricted, beta: beta.RawVector().Data, cov: cov, rss: rss},
		true
}

func symmetric(m *mat.Dense) *mat.SymDense {
	n, _ := m.Dims()
	out := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			out.SetSym(i, j, m.At(i, j))
		}
	}
	return out
}
