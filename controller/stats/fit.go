package stats

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Term is one part of a linear model: one column, or several for a factor of
// more than two levels.
type Term struct {
	Name    string
	Columns []Column
}

// Column is one regressor with the contrast that it stands for.
type Column struct {
	Label  string
	Values []float64
}

// Model is a linear model: y on the terms, the first of which is the mean.
// Trials of one group have something in common that the terms do not tell.
type Model struct {
	Terms []Term
	Y     []float64
	// Groups names each row's group; nil: there is one.
	Groups []string
	// Confidence of the intervals; 0: Confidence.
	Confidence float64
}

// How a model dealt with its groups.
const (
	GroupsOne    = "one"    // there is one group, and nothing to tell
	GroupsInside = "inside" // the terms tell all that differs from group to group
	GroupsFixed  = "fixed"  // each has an effect of its own: too few to know their spread
	GroupsRandom = "random" // they are a sample, with a spread of their own
)

// leastGroups is how many independent differences between groups a spread of
// theirs is estimated from. From fewer it is hardly known, and intervals that
// lean on it do not cover (TestCoverage has the numbers).
const leastGroups = 5

// Estimate is one coefficient, or a weighted sum of some. What there are no
// degrees of freedom for is absent.
type Estimate struct {
	Term  string
	Label string
	Value float64
	SE    *float64
	DF    *float64 // Satterthwaite's where groups are random
	Low   *float64
	High  *float64
	P     *float64 // two-sided, of no effect
	// Between is set where only whole groups differ in it, and they are too few:
	// its value is told, and nothing on how certain it is.
	Between bool
	weights []float64
}

// Fit is a fitted model.
type Fit struct {
	N         int
	DF        int // residual
	Estimates []Estimate
	// Confounded are the terms that some of the others together take the place
	// of: their own share cannot be told.
	Confounded []string
	// Between are the terms that differ only from group to group, where those are
	// too few for an interval.
	Between    []string
	ResidualSD *float64
	Groups     string   // GroupsOne …
	GroupCount int      // how many there are
	GroupSD    *float64 // of random groups

	confidence float64
	cov        *mat.Dense // of the kept coefficients; nil without residual df
	beta       []float64
	kept       []keptColumn
	between    []bool // of kept
	random     *variances
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

// ErrTooFew says that there are more unknowns than trials.
var ErrTooFew = errors.New("too few trials for the model")

// groupTerm is the name of the effects of fixed groups, which are not told.
const groupTerm = "\x00group"

// Fit fits the model by least squares; where groups are random, by restricted
// maximum likelihood. Columns that depend on those before them are left out,
// and every term that the others can take the place of is named.
func (m Model) Fit() (Fit, error) {
	f := Fit{N: len(m.Y), confidence: m.Confidence, Groups: GroupsOne, GroupCount: 1, Confounded: Confounded(m.Terms)}
	if f.confidence == 0 {
		f.confidence = Confidence
	}
	basis := f.keep(nil, m.Terms)
	z := indicators(m.Groups)
	if len(z) > 1 {
		f.GroupCount = len(z)
		f.group(m, basis, z)
	}
	f.DF = f.N - len(f.kept)
	if f.DF < 0 || len(f.kept) == 0 {
		return f, ErrTooFew
	}
	if err := f.solve(m.Y); err != nil {
		return f, err
	}
	f.tell()
	return f, nil
}

// keep takes the columns of terms that do not depend on those before them, and
// returns the orthonormal basis grown by them.
func (f *Fit) keep(basis [][]float64, terms []Term) [][]float64 {
	for _, t := range terms {
		for _, c := range t.Columns {
			if v, ok := independent(basis, c.Values); ok {
				basis = append(basis, v)
				f.kept = append(f.kept, keptColumn{t.Name, c.Label, c.Values})
			}
		}
	}
	return basis
}

// group decides what the groups are to the model.
func (f *Fit) group(m Model, basis, z [][]float64) {
	v := decompose(basis, z, m.Y)
	switch {
	case len(v.roots) >= leastGroups && v.rest > 0:
		f.Groups, f.random = GroupsRandom, v
		return
	case len(v.roots) == 0:
		f.Groups = GroupsInside
	default:
		f.Groups = GroupsFixed
		f.keep(basis, []Term{{Name: groupTerm, Columns: columnsOf(z)}})
	}
	f.findBetween(m.Terms, z)
}

// findBetween names the terms of which the groups, with the other terms, take
// the place: nothing within a group tells them.
func (f *Fit) findBetween(terms []Term, z [][]float64) {
	with := append(slices.Clone(terms), Term{groupTerm, columnsOf(z)})
	for i, t := range terms {
		if i > 0 && rank(with, -1)-rank(with, i) < len(t.Columns) && rank(terms, -1)-rank(terms, i) == len(t.Columns) {
			f.Between = append(f.Between, t.Name)
		}
	}
	f.between = make([]bool, len(f.kept))
	for j, c := range f.kept {
		f.between[j] = slices.Contains(f.Between, c.term)
	}
}

func columnsOf(z [][]float64) []Column {
	out := make([]Column, len(z))
	for i, v := range z {
		out[i] = Column{Values: v}
	}
	return out
}

// indicators are a column for each group, in the order of their first rows.
func indicators(groups []string) [][]float64 {
	var names []string
	var out [][]float64
	for i, g := range groups {
		at := slices.Index(names, g)
		if at < 0 {
			at = len(names)
			names, out = append(names, g), append(out, make([]float64, len(groups)))
		}
		out[at][i] = 1
	}
	return out
}

// solve estimates the kept coefficients and their covariance. Random groups
// are taken out of columns and response first.
func (f *Fit) solve(y []float64) error {
	if f.random != nil {
		f.random.estimate()
		y = f.random.lighten(y)
	}
	x := mat.NewDense(f.N, len(f.kept), nil)
	for j, c := range f.kept {
		values := c.values
		if f.random != nil {
			values = f.random.lighten(values)
		}
		x.SetCol(j, values)
	}
	var qr mat.QR
	qr.Factorize(x)
	var beta mat.VecDense
	if err := qr.SolveVecTo(&beta, false, mat.NewVecDense(f.N, y)); err != nil {
		var bad mat.Condition
		if !errors.As(err, &bad) { // badly scaled columns are solved all the same
			return err
		}
	}
	f.beta = beta.RawVector().Data
	f.spread(x, &qr, y)
	return nil
}

// spread estimates the residual spread and the coefficients' covariance,
// s²(RᵀR)⁻¹.
func (f *Fit) spread(x *mat.Dense, qr *mat.QR, y []float64) {
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
	if f.random != nil {
		f.random.design, f.random.s2 = x, s2
		f.GroupSD = new(math.Sqrt(s2 * f.random.ratio))
	}
}

func (f *Fit) tell() {
	for j, c := range f.kept {
		if c.term == groupTerm {
			continue
		}
		weights := make([]float64, len(f.kept))
		weights[j] = 1
		e := f.combine(weights)
		e.Term, e.Label = c.term, c.label
		f.Estimates = append(f.Estimates, e)
	}
}

// combine estimates a weighted sum of the coefficients.
func (f *Fit) combine(weights []float64) Estimate {
	e := Estimate{weights: weights}
	for i, w := range weights {
		e.Value += w * f.beta[i]
		e.Between = e.Between || w != 0 && f.between != nil && f.between[i]
	}
	if f.cov == nil || e.Between {
		return e
	}
	w := mat.NewVecDense(len(weights), weights)
	variance := max(mat.Inner(w, f.cov, w), 0)
	df := float64(f.DF)
	if f.random != nil {
		df = f.random.satterthwaite(w, f.cov, variance, df)
	}
	se := math.Sqrt(variance)
	half := TQuantile(f.confidence, df) * se
	e.SE, e.DF, e.Low, e.High = &se, &df, new(e.Value-half), new(e.Value+half)
	if se > 0 {
		e.P = new(TwoSided(e.Value/se, df))
	}
	return e
}

// Combine estimates a weighted sum of coefficients, each named by its term and
// its contrast; absent when one of them is not in the model.
func (f *Fit) Combine(term string, weights map[string]float64) *Estimate {
	row := make([]float64, len(f.kept))
	found := 0
	for j, c := range f.kept {
		if w, ok := weights[c.label]; ok && c.term == term {
			row[j] = w
			found++
		}
	}
	if found < len(weights) {
		return nil
	}
	return new(f.combine(row))
}

// CombineTerms estimates a weighted sum of the first coefficients of terms;
// absent when one of them is not in the model.
func (f *Fit) CombineTerms(weights map[string]float64) *Estimate {
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

// EstimateOf is the first coefficient of a term; absent when it was left out.
func (f *Fit) EstimateOf(name string) *Estimate { return f.CombineTerms(map[string]float64{name: 1}) }

// Influence tells how much an estimate changes when every response changes by
// as much as amounts says: what an error that all trials share does to it.
func (f *Fit) Influence(e Estimate, amounts []float64) (float64, error) {
	g := *f
	if f.random != nil { // its spread is this fit's own
		g.random = new(*f.random)
	}
	if err := g.solve(amounts); err != nil {
		return 0, err
	}
	var sum float64
	for i, w := range e.weights {
		sum += w * g.beta[i]
	}
	return sum, nil
}

// independent orthogonalises a column against a basis, twice for the sake of
// rounding, and tells whether anything is left.
func independent(basis [][]float64, values []float64) ([]float64, bool) {
	length := norm(values)
	if length == 0 {
		return nil, false
	}
	v := without(basis, values)
	rest := norm(v)
	if rest < dependent*length {
		return nil, false
	}
	for i := range v {
		v[i] /= rest
	}
	return v, true
}

// without takes out of values what an orthonormal basis spans of them.
func without(basis [][]float64, values []float64) []float64 {
	v := slices.Clone(values)
	for range 2 {
		for _, b := range basis {
			d := dot(v, b)
			for i := range v {
				v[i] -= d * b[i]
			}
		}
	}
	return v
}

func dot(x, y []float64) float64 {
	var sum float64
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

func norm(v []float64) float64 { return math.Sqrt(dot(v, v)) }

// Confounded names the terms without whose columns the others still span some
// of them. The first term, the mean, is not a question.
func Confounded(terms []Term) []string {
	whole := rank(terms, -1)
	var out []string
	for i, t := range terms {
		if i > 0 && whole-rank(terms, i) < len(t.Columns) {
			out = append(out, t.Name)
		}
	}
	return out
}

func rank(terms []Term, leaveOut int) int {
	var basis [][]float64
	for i, t := range terms {
		if i == leaveOut {
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

// Inflation is by how much the variance of a term's first coefficient grows
// when another term comes into the model (a ratio of variance inflation
// factors): infinite when the other takes its place.
func Inflation(terms []Term, of, by string) float64 {
	var alone, both [][]float64
	var values []float64
	for _, t := range terms {
		for i, c := range t.Columns {
			if t.Name == of && i == 0 {
				values = c.Values
				continue
			}
			if v, ok := independent(both, c.Values); ok {
				both = append(both, v)
			}
			if t.Name == by {
				continue
			}
			if v, ok := independent(alone, c.Values); ok {
				alone = append(alone, v)
			}
		}
	}
	rest, left := norm(without(alone, values)), norm(without(both, values))
	if left < dependent*norm(values) {
		return math.Inf(1)
	}
	return rest * rest / (left * left)
}
