package stats

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// variances is the likelihood of a model with one random effect, the group's.
//
// Of the response only what the terms do not span says anything on spreads. In
// the eigenvectors of the groups' indicators there, that part falls into
// independent pieces with the variances s² + u²·root, of which those that the
// groups do not reach have the root 0. Restricted maximum likelihood is then a
// function of the one ratio u²/s², and everything else follows from it (for the
// decomposition: C. Crainiceanu and D. Ruppert, J. R. Statist. Soc. B 66, 2004,
// section 3).
type variances struct {
	roots  []float64 // above zero, of ZᵀMZ
	pieces []float64 // the response's squared part along each
	rest   int       // pieces with the root 0
	restSS float64   // their sum of squares
	z      [][]float64

	ratio  float64    // u²/s²
	s2     float64    // s², the residual variance
	design *mat.Dense // the kept columns, lightened
}

func decompose(basis, z [][]float64, y []float64) *variances {
	q, n := len(z), len(y)
	mz := make([][]float64, q)
	for g := range z {
		mz[g] = without(basis, z[g])
	}
	cross := mat.NewSymDense(q, nil)
	for g := range q {
		for h := g; h < q; h++ {
			cross.SetSym(g, h, dot(mz[g], mz[h]))
		}
	}
	v := &variances{z: z, rest: n - len(basis)}
	my := without(basis, y)
	v.restSS = dot(my, my)
	var eigen mat.EigenSym
	if !eigen.Factorize(cross, true) {
		return v
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	for j, root := range eigen.Values(nil) {
		if root < dependent*float64(n) {
			continue
		}
		var along float64
		for g := range q {
			along += vectors.At(g, j) * dot(mz[g], my)
		}
		piece := along * along / root
		v.roots, v.pieces = append(v.roots, root), append(v.pieces, piece)
		v.rest--
		v.restSS = max(v.restSS-piece, 0)
	}
	return v
}

// residual is s² at a ratio, and slope the derivative of −2 log likelihood.
func (v *variances) residual(ratio float64) float64 {
	sum := v.restSS
	for j, root := range v.roots {
		sum += v.pieces[j] / (1 + ratio*root)
	}
	return sum / float64(v.rest+len(v.roots))
}

func (v *variances) criterion(ratio float64) float64 {
	out := float64(v.rest+len(v.roots)) * math.Log(v.residual(ratio))
	for _, root := range v.roots {
		out += math.Log1p(ratio * root)
	}
	return out
}

func (v *variances) slope(ratio float64) float64 {
	s2, out := v.residual(ratio), 0.0
	for j, root := range v.roots {
		w := root / (1 + ratio*root)
		out += w - v.pieces[j]*w/(1+ratio*root)/s2
	}
	return out
}

// estimate finds the ratio of restricted maximum likelihood, 0 included. The
// criterion may have more than one dip: the deepest on a fine grid is followed.
func (v *variances) estimate() {
	const decades, perDecade = 12, 10
	if v.restSS == 0 {
		return // without a residual no ratio exists
	}
	grid := []float64{0}
	for i := range decades*perDecade + 1 {
		grid = append(grid, math.Pow(10, float64(i)/perDecade-decades/2))
	}
	best := 0
	for i := range grid {
		if v.criterion(grid[i]) < v.criterion(grid[best]) {
			best = i
		}
	}
	if best == 0 && v.slope(0) >= 0 {
		v.ratio = 0
		return
	}
	low, high := grid[max(best-1, 0)], grid[min(best+1, len(grid)-1)]
	for range 200 {
		v.ratio = (low + high) / 2
		if v.slope(v.ratio) < 0 {
			low = v.ratio
		} else {
			high = v.ratio
		}
	}
}

// lighten multiplies a column by V^(−1/2), V = I + ratio·ZZᵀ: of each group's
// mean a share is taken away. Rows are then independent and of equal spread.
func (v *variances) lighten(values []float64) []float64 {
	out := append([]float64(nil), values...)
	for _, z := range v.z {
		var n, sum float64
		for i, in := range z {
			n += in
			sum += in * values[i]
		}
		share := (1 - 1/math.Sqrt(1+v.ratio*n)) * sum / n
		for i, in := range z {
			out[i] -= in * share
		}
	}
	return out
}

// satterthwaite is the degrees of freedom of the t that a contrast's variance
// makes, from how uncertain both spreads are by the expected information
// (F. Satterthwaite, Biometrics Bulletin 2, 1946; for mixed models F. Giesbrecht
// and J. Burns, Biometrics 41, 1985). It never exceeds the residual's.
func (v *variances) satterthwaite(weights *mat.VecDense, cov *mat.Dense, variance, most float64) float64 {
	// a = V⁻¹X(XᵀV⁻¹X)⁻¹w: the contrast's variance grows by aᵀa with s² and by
	// |Zᵀa|² with u².
	var coefficients, lightened mat.VecDense
	coefficients.MulVec(cov, weights)
	coefficients.ScaleVec(1/v.s2, &coefficients)
	lightened.MulVec(v.design, &coefficients)
	a := v.lighten(lightened.RawVector().Data)
	bySpread, byGroups := dot(a, a), 0.0
	for _, z := range v.z {
		d := dot(z, a)
		byGroups += d * d
	}
	ee, eu, uu := float64(v.rest)/(v.s2*v.s2), 0.0, 0.0
	for _, root := range v.roots {
		each := v.s2 * (1 + v.ratio*root)
		ee, eu, uu = ee+1/(each*each), eu+root/(each*each), uu+root*root/(each*each)
	}
	// The information's inverse times two, of a 2 × 2 matrix.
	det := ee*uu - eu*eu
	uncertain := 2 * (uu*bySpread*bySpread - 2*eu*bySpread*byGroups + ee*byGroups*byGroups) / det
	if !(uncertain > 0) {
		return most
	}
	return min(most, max(1, 2*variance*variance/uncertain))
}
