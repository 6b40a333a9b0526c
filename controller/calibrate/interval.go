package calibrate

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// confidence of every interval.
const confidence = 0.95

// Estimate is a number with the interval that holds it with 95 %.
type Estimate struct{ Value, Low, High float64 }

// combination is a weighted sum of the coefficients.
func (p *posterior) combination(weights []float64) Estimate {
	w := mat.NewVecDense(len(weights), weights)
	middle, scale := make([]float64, len(p.grid)), make([]float64, len(p.grid))
	var out Estimate
	low, high := math.Inf(1), math.Inf(-1)
	for i, g := range p.grid {
		middle[i] = mat.Dot(w, mat.NewVecDense(len(g.beta), g.beta))
		scale[i] = math.Sqrt(g.rss / p.df * mat.Inner(w, g.cov, w))
		out.Value += g.weight * middle[i]
		low, high = min(low, middle[i]-100*scale[i]), max(high, middle[i]+100*scale[i])
	}
	below := func(x float64) float64 {
		sum := 0.0
		for i, g := range p.grid {
			sum += g.weight * distuv.StudentsT{Mu: middle[i], Sigma: scale[i], Nu: p.df}.CDF(x)
		}
		return sum
	}
	out.Low, out.High = quantile(below, (1-confidence)/2, low, high), quantile(below, (1+confidence)/2, low, high)
	return out
}

// deviation is a standard deviation: that of a share of the variance.
func (p *posterior) deviation(share func(ownShare float64) float64) Estimate {
	below := func(log float64) float64 {
		sum := 0.0
		for _, g := range p.grid {
			// The variance is rss by a chi-squared number.
			sum += g.weight * (1 - distuv.ChiSquared{K: trust * p.df}.CDF(trust*g.rss*share(g.ownShare)/
				math.Exp(2*log)))
		}
		return sum
	}
	at := func(q float64) float64 { return math.Exp(quantile(below, q, math.Log(1e-6), math.Log(1e6))) }
	return Estimate{at(0.5), at((1 - confidence) / 2), at((1 + confidence) / 2)}
}

// unshadowed reports whether there may be no shadows at all. Where they have the least
// share of the variance that is tried, they are hardly any; if that is about as likely
// as the likeliest share, so is each share below it. The bound is that of a likelihood
// ratio of one parameter (exp(−1.92) for 95 %).
func (p *posterior) unshadowed() bool {
	weight := map[float64]float64{}
	last, most := 0.0, 0.0
	for _, g := range p.grid {
		weight[g.ownShare] += g.weight
		last, most = max(last, g.ownShare), max(most, weight[g.ownShare])
	}
	return weight[last] > most*math.Exp(-distuv.ChiSquared{K: 1}.Quantile(confidence)/2)
}

// correlation is the distance d0; false where the samples leave it open towards
// either end of what was tried.
func (p *posterior) correlation() (Estimate, bool) {
	weight := map[float64]float64{}
	var steps []float64
	for _, g := range p.grid { // in the order of d0
		if n := len(steps); n == 0 || steps[n-1] != g.d0M {
			steps = append(steps, g.d0M)
		}
		weight[g.d0M] += g.weight
	}
	width := math.Log(p.edges[1]/p.edges[0]) / (correlationSteps - 1)
	below := func(log float64) float64 { // each step's weight lies evenly about it
		sum := 0.0
		for _, d0 := range steps {
			sum += weight[d0] * max(0, min(1, (log-math.Log(d0))/width+0.5))
		}
		return sum
	}
	least, most := math.Log(p.edges[0])-width, math.Log(p.edges[1])+width
	at := func(q float64) float64 { return math.Exp(quantile(below, q, least, most)) }
	tail := (1 - confidence) / 2
	open := weight[steps[0]] > tail || weight[steps[len(steps)-1]] > tail
	return Estimate{at(0.5), at(tail), at(1 - tail)}, !open
}

// quantile finds by halving where a distribution passes q.
func quantile(below func(float64) float64, q, low, high float64) float64 {
	for range 60 {
		middle := (low + high) / 2
		if below(middle) < q {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}
