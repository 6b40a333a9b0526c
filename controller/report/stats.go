package report

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// confidence of every interval in the report.
const confidence = 0.95

// tQuantile is the two-sided quantile of Student's t at the report's confidence.
func tQuantile(df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(0.5 + confidence/2)
}

// summary of the values of one cell.
type summary struct {
	N        int
	Mean     float64
	HalfWide *float64 // of the 95 % t interval; absent below three values
}

// summarise gives mean and interval. From two values the t interval exists on
// paper (12.7 standard errors wide) and says nothing; it is not given.
func summarise(values []float64) summary {
	s := summary{N: len(values)}
	if s.N == 0 {
		return s
	}
	s.Mean = stat.Mean(values, nil)
	if s.N >= 3 {
		s.HalfWide = new(tQuantile(float64(s.N-1)) * stat.StdDev(values, nil) / math.Sqrt(float64(s.N)))
	}
	return s
}

// correlation is Pearson's; absent below three pairs or without variation.
func correlation(x, y []float64) *float64 {
	if len(x) < 3 || stat.Variance(x, nil) == 0 || stat.Variance(y, nil) == 0 {
		return nil
	}
	return new(stat.Correlation(x, y, nil))
}

// term is one part of a linear model: one column, or several for a factor of
// more than two levels.
type term struct {
	Name     string
	Columns  []column
	Nuisance bool // absorbed, not reported one by one: blocks
}

type column struct {
	Label  string
	Values []float64
}

// estimate is one coefficient. Interval and error are absent without residual
// degrees of freedom.
type estimate struct {
	Term  string
	Label string
	Value float64
	SE    *float64
	Low   *float64
	High  *float64
}

// fit is a linear model fitted by least squares.
type fit struct {
	N         int
	DF        int // residual
	Estimates []estimate
	// Confounded are the terms that some of the others together take the place
	// of: their own share cannot be told.
	Confounded []string
	ResidualSD *float64

	cov  *mat.Dense // of the kept coefficients; nil without residual df
	beta []float64
	kept []keptColumn
}

type keptColumn struct {
	term   string
	label  string
	values []float64
}

// dependent is the share of a column's length below which it counts as a sum of
// others. Columns of a design are small whole numbers and centred speeds; what
// rounding leaves of a dependent one is some 1e-16 of it.
const dependent = 1e-10

var errTooFew = errors.New("too few trials for the model")

// leastSquares fits y on the terms by QR. Columns that depend on those before
// them are left out, and every term that the others can take the place of is
// named.
func leastSquares(terms []term, y []float64) (fit, error) {
	f := fit{N: len(y)}
	var basis [][]float64
	for _, t := range terms {
		for _, c := range t.Columns {
			if v, ok := independent(basis, c.Values); ok {
				basis = append(basis, v)
				f.kept = append(f.kept, keptColumn{t.Name, c.Label, c.Values})
			}
		}
	}
	f.Confounded = confounded(terms)
	f.DF = f.N - len(f.kept)
	if f.DF < 0 || len(f.kept) == 0 {
		return f, errTooFew
	}
	x := mat.NewDense(f.N, len(f.kept), nil)
	for j, c := range f.kept {
		x.SetCol(j, c.values)
	}
	var qr mat.QR
	qr.Factorize(x)
	var beta mat.VecDense
	if err := qr.SolveVecTo(&beta, false, mat.NewVecDense(f.N, y)); err != nil {
		var bad mat.Condition
		if !errors.As(err, &bad) { // badly scaled columns are solved all the same
			return f, err
		}
	}
	f.beta = beta.RawVector().Data
	f.spread(x, &qr, y)
	f.tell()
	return f, nil
}

// spread estimates the residual spread and the coefficients' covariance,
// s²(RᵀR)⁻¹.
func (f *fit) spread(x *mat.Dense, qr *mat.QR, y []float64) {
	if f.DF == 0 {
		return
	}
	var fitted mat.VecDense
	fitted.MulVec(x, mat.NewVecDense(len(f.beta), f.beta))
	var rss float64
	for i := range y {
		rss += (y[i] - fitted.AtVec(i)) * (y[i] - fitted.AtVec(i))
	}
	s2 := rss / float64(f.DF)
	f.ResidualSD = new(math.Sqrt(s2))
	var r, inverse mat.Dense
	qr.RTo(&r)
	p := len(f.beta)
	if err := inverse.Inverse(r.Slice(0, p, 0, p)); err != nil {
		var bad mat.Condition
		if !errors.As(err, &bad) {
			return
		}
	}
	f.cov = mat.NewDense(p, p, nil)
	f.cov.Mul(&inverse, inverse.T())
	f.cov.Scale(s2, f.cov)
}

func (f *fit) tell() {
	for j, c := range f.kept {
		weights := make([]float64, len(f.kept))
		weights[j] = 1
		e := f.combine(weights)
		e.Term, e.Label = c.term, c.label
		f.Estimates = append(f.Estimates, e)
	}
}

// combine estimates a weighted sum of the coefficients.
func (f *fit) combine(weights []float64) estimate {
	var e estimate
	var variance float64
	for i, w := range weights {
		e.Value += w * f.beta[i]
		if f.cov == nil {
			continue
		}
		for j, v := range weights {
			variance += w * v * f.cov.At(i, j)
		}
	}
	if f.cov == nil {
		return e
	}
	se := math.Sqrt(max(variance, 0))
	half := tQuantile(float64(f.DF)) * se
	e.SE, e.Low, e.High = &se, new(e.Value-half), new(e.Value+half)
	return e
}

// combineTerms estimates a weighted sum of the first coefficients of terms;
// absent when one of them is not in the model.
func (f *fit) combineTerms(weights map[string]float64) *estimate {
	row := make([]float64, len(f.kept))
	found := 0
	for j, c := range f.kept {
		if w, ok := weights[c.term]; ok && (j == 0 || f.kept[j-1].term != c.term) {
			row[j] = w
			found++
		}
	}
	if found < len(weights) {
		return nil
	}
	return new(f.combine(row))
}

// estimateOf is the first coefficient of a term; absent when it was left out.
func (f *fit) estimateOf(name string) *estimate { return f.combineTerms(map[string]float64{name: 1}) }

// independent orthogonalises a column against a basis, twice for the sake of
// rounding, and tells whether anything is left.
func independent(basis [][]float64, values []float64) ([]float64, bool) {
	v := append([]float64(nil), values...)
	length := norm(v)
	if length == 0 {
		return nil, false
	}
	for range 2 {
		for _, b := range basis {
			var dot float64
			for i := range v {
				dot += v[i] * b[i]
			}
			for i := range v {
				v[i] -= dot * b[i]
			}
		}
	}
	rest := norm(v)
	if rest < dependent*length {
		return nil, false
	}
	for i := range v {
		v[i] /= rest
	}
	return v, true
}

func norm(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// confounded names the terms without whose columns the others still span some
// of them. The intercept is not a question.
func confounded(terms []term) []string {
	whole := rank(terms, -1)
	var out []string
	for i, t := range terms {
		if i > 0 && whole-rank(terms, i) < len(t.Columns) {
			out = append(out, t.Name)
		}
	}
	return out
}

func rank(terms []term, without int) int {
	var basis [][]float64
	for i, t := range terms {
		if i == without {
			continue
		}
		for _, c := range t.Columns {
			if v, ok := independent(basis, c.Values); ok {
				basis = append(basis, v)
			}
		}
	}
	return len(basis)
}
