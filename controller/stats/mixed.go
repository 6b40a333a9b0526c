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
	least  float64   // sums of pieces up to this are what rounding left
	rest   int       // pieces with the root 0
	restSS float64   // their sum of squares
	z      [][]float64

	given *float64 // the ratio, where it is not to be estimated
	ratio float64  // u²/s²
	s2    float64  // s², the residual variance
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
	v := &variances{z: z, rest: n - len(basis), least: nothing * nothing * dot(y, y)}
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
		v.restSS -= piece
	}
	if v.restSS <= v.least {
		v.restSS = 0
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
	if v.given != nil {
		v.ratio = *v.given
		return
	}
	grid := []float64{0}
	for i := range decades*perDecade + 1 {
		grid = append(grid, math.Pow(10, float64(i)/perDecade-decades/2))
	}
	best, least := 0, math.Inf(1)
	for i := range grid {
		if c := v.criterion(grid[i]); c < least {
			best, least = i, c
		}
	}
	if best == 0 && v.slope(0) >= 0 {
		v.ratio = 0
		return
	}
	low, high := grid[max(best-1, 0)], grid[min(best+1, len(grid)-1)]
	for range 200 {
		if v.ratio = (low + high) / 2; v.ratio == low || v.ratio == high {
			return // no number lies between the two
		}
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

// uncertainty is the inverse of the spreads' expected information, of a 2 × 2
// matrix: how uncertain s² and u² are, and both together.
func (v *variances) uncertainty() (ss, su, uu float64) {
	ee, eu, gg := float64(v.rest)/(v.s2*v.s2), 0.0, 0.0
	for _, root := range v.roots {
		each := v.s2 * (1 + v.ratio*root)
		ee, eu, gg = ee+1/(each*each), eu+root/(each*each), gg+root*root/(each*each)
	}
	det := (ee*gg - eu*eu) / 2
	return gg / det, -eu / det, ee / det
}

// satterthwaite is the degrees of freedom of the t that an estimate's variance
// makes, from how uncertain both spreads are (F. Satterthwaite, Biometrics
// Bulletin 2, 1946; for mixed models F. Giesbrecht and J. Burns, Biometrics 41,
// 1985). It never exceeds the residual's.
func (v *variances) satterthwaite(rows []float64, variance, most float64) float64 {
	// The estimate's variance grows by the rows' squares with s², by those of
	// their sums over groups with u².
	bySpread, byGroups := dot(rows, rows), overGroups(rows, v.z)
	ss, su, uu := v.uncertainty()
	uncertain := ss*bySpread*bySpread + 2*su*bySpread*byGroups + uu*byGroups*byGroups
	if !(uncertain > 0) {
		return most
	}
	return min(most, max(1, 2*variance*variance/uncertain))
}

// weighing is by how much an estimate's variance is larger for its weights being
// estimates too (M. Kenward and J. Roger, Biometrics 53, 1997, for one contrast).
// From few trials intervals without it do not cover. basis is orthonormal, and
// spans the lightened columns.
func (v *variances) weighing(rows []float64, basis [][]float64) float64 {
	summed := make([]float64, len(rows)) // ZZᵀa
	for _, in := range v.z {
		d := dot(in, rows)
		for i := range in {
			summed[i] += in[i] * d
		}
	}
	// V^(−1/2) of either, less what the terms span.
	a, b := without(basis, v.lighten(rows)), without(basis, v.lighten(summed))
	ss, su, uu := v.uncertainty()
	return 2 * (ss*dot(a, a) + 2*su*dot(a, b) + uu*dot(b, b)) / v.s2
}

// overGroups is |Zᵀa|², the squares of what rows sum up to in each group.
func overGroups(rows []float64, z [][]float64) float64 {
	sum := 0.0
	for _, in := range z {
		d := dot(in, rows)
		sum += d * d
	}
	return sum
}

// stratum judges estimates of least squares, in which groups have no part, by
// pieces of the residual (see variances) that the groups reach.
//
// The pieces' mean is expected to be s² + u²·root, root being the mean of
// theirs; an estimate's variance is |a|²·(s² + u²·share), where share is |Zᵀa|²
// by |a|². So the mean, times share by root where that is above one, is enough
// whatever the groups' spread is. Where groups are of one row each, all shares
// and roots are one: it is plain least squares. Where groups are of one size
// and the estimate differs only between them it is the analysis of their means.
type stratum struct {
	z      [][]float64
	pieces int
	mean   float64 // of the pieces
	root   float64
	df     float64 // Satterthwaite's of the mean, should groups be all that varies
}

// stratum takes all pieces that groups reach, and so many of those they do not.
func (v *variances) stratum(rest int) *stratum {
	s := &stratum{z: v.z, pieces: len(v.roots) + rest}
	var sum, squares float64
	for j, root := range v.roots {
		s.mean += v.pieces[j]
		sum, squares = sum+root, squares+root*root
	}
	if rest > 0 {
		s.mean += v.restSS
	}
	if s.mean <= v.least {
		s.mean = 0
	}
	s.mean /= float64(s.pieces)
	s.root, s.df = sum/float64(s.pieces), sum*sum/squares
	return s
}

// variance is that of an estimate, at least.
func (s *stratum) variance(rows []float64) float64 {
	length := dot(rows, rows)
	return s.mean * length * max(1, overGroups(rows, s.z)/length/s.root)
}
