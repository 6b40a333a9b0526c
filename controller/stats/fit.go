package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
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
	ratio      *float64 // of random groups' variance to the rows'; nil: estimated
}

// How a model dealt with its groups.
const (
	GroupsOne    = "one"    // there is one group, and nothing to tell
	GroupsInside = "inside" // the terms tell all that differs from group to group
	GroupsFixed  = "fixed"  // each has an effect of its own: too few to know their spread
	GroupsRandom = "random" // they are a sample, with a spread of their own
	GroupsNoise  = "noise"  // of about one row each: their spread cannot be distinguished from the rows'
)

const (
	// leastGroups is how many independent differences between groups a spread of
	// theirs is estimated from. From fewer it is hardly known, and intervals that
	// lean on it do not cover (TestCoverage has the numbers).
	leastGroups = 5
	// leastSpread is from how many degrees of freedom a spread judges anything: one
	// is as good as none (see HalfWidth).
	leastSpread = 2
)

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
	// Between is set where only whole groups differ in it, and these have no spread
	// of their own in the model: it is judged by what else differs between groups,
	// and has no interval where that is too little.
	Between bool
	rows    []float64 // what each response counts for in it
}

// Fit is a fitted model.
type Fit struct {
	N         int
	DF        int // residual
	Estimates []Estimate
	// Confounded are the terms that some of the others together take the place
	// of: their own share cannot be told.
	Confounded []string
	// Between are the terms that differ only from group to group, where the groups
	// are too few for a spread of their own.
	Between    []string
	ResidualSD *float64 // nil: no residual degrees of freedom
	NoSpread   bool     // there are some, and no response is beside the model
	Groups     string   // GroupsOne …
	GroupCount int      // how many there are
	GroupSD    *float64 // of random groups

	confidence float64
	kept       []keptColumn // those of the terms first, then those of fixed groups
	between    []bool       // of kept
	main       *solution
	plain      *solution // of the terms alone, where strata judge some of them
	strata     *stratum
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
	terms := len(f.kept)
	if z := indicators(m.Groups); len(z) > 1 {
		f.GroupCount = len(z)
		f.group(m, basis, z)
	}
	f.DF = f.N - len(f.kept)
	if f.DF < 0 || len(f.kept) == 0 {
		return f, ErrTooFew
	}
	var err error
	if f.main, err = solve(f.kept, m.Y, f.random); err != nil {
		return f, err
	}
	if f.plain = f.main; f.strata != nil && terms < len(f.kept) {
		if f.plain, err = solve(f.kept[:terms], m.Y, nil); err != nil {
			return f, err
		}
	}
	f.spread(m.Y)
	f.tell()
	return f, nil
}

// Support fits noise in the place of responses, with random groups' variance so
// many times the rows': degrees of freedom, and what cannot be distinguished,
// are the design's, whatever comes out of it.
func (m Model) Support(ratio float64) (Fit, error) {
	noise := rand.New(rand.NewPCG(1, 1))
	m.Y = make([]float64, len(m.Terms[0].Columns[0].Values))
	for i := range m.Y {
		m.Y[i] = noise.NormFloat64()
	}
	m.ratio = &ratio
	return m.Fit()
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

// group decides what the groups are to the model: a sample where enough of them
// and enough within them is known, effects of their own where they are few, and
// part of the rows' noise where there is about one row to a group.
func (f *Fit) group(m Model, basis, z [][]float64) {
	v := decompose(basis, z, m.Y)
	v.given = m.ratio
	switch differences := len(v.roots); {
	case differences == 0:
		f.Groups = GroupsInside
	case differences >= leastGroups && v.rest > 0 && v.restSS > 0:
		f.Groups, f.random = GroupsRandom, v
		return
	case differences < leastGroups && v.rest >= leastSpread:
		f.Groups, f.strata = GroupsFixed, v.stratum(0)
		f.keep(basis, []Term{{Name: groupTerm, Columns: columnsOf(z)}})
	default:
		f.Groups, f.strata = GroupsNoise, v.stratum(v.rest)
		return
	}
	f.findBetween(m.Terms, z)
}

// findBetween names the terms of which the groups, with the other terms, take
// the place: nothing within a group tells them. The mean is one, too.
func (f *Fit) findBetween(terms []Term, z [][]float64) {
	alone, aloneWithout := ranks(terms)
	all, allWithout := ranks(append(slices.Clone(terms), Term{groupTerm, columnsOf(z)}))
	for i, t := range terms {
		if i > 0 && all-allWithout[i] < len(t.Columns) && alone-aloneWithout[i] == len(t.Columns) {
			f.Between = append(f.Between, t.Name)
		}
	}
	f.between = make([]bool, len(f.kept))
	for j, c := range f.kept {
		f.between[j] = slices.Contains(f.Between, c.term) || c.term == terms[0].Name
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

// nothing is the share of the responses' length below which a residual is what
// rounding left. The least that a window can differ by, one byte, is far above.
const nothing = 1e-10

// spread tells the residual spread, where there are degrees of freedom for one.
func (f *Fit) spread(y []float64) {
	if f.DF == 0 {
		return
	}
	if f.NoSpread = f.main.rss <= nothing*nothing*dot(y, y); f.NoSpread {
		f.main.rss = 0
	}
	s2 := f.main.rss / float64(f.DF)
	f.ResidualSD = new(math.Sqrt(s2))
	if f.random != nil {
		f.random.s2 = s2
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
	var e Estimate
	for i, w := range weights {
		e.Between = e.Between || w != 0 && f.between != nil && f.between[i]
	}
	s := f.main
	if e.Between {
		s, weights = f.plain, weights[:len(f.plain.beta)]
	}
	e.rows = s.rows(weights)
	for i, w := range weights {
		e.Value += w * s.beta[i]
	}
	variance, df := f.uncertainty(s, weights, &e)
	if variance <= 0 {
		return e // nothing, or no spread, to judge it by
	}
	se := math.Sqrt(variance)
	half := TQuantile(f.confidence, df) * se
	e.SE, e.DF, e.Low, e.High = &se, &df, new(e.Value-half), new(e.Value+half)
	e.P = new(TwoSided(e.Value/se, df))
	return e
}

// uncertainty is an estimate's variance and its degrees of freedom; 0 where
// there is nothing to judge it by.
func (f *Fit) uncertainty(s *solution, weights []float64, e *Estimate) (variance, df float64) {
	switch {
	case f.DF == 0 || f.NoSpread:
		return 0, 0
	case e.Between || f.Groups == GroupsNoise:
		if f.strata == nil || e.Between && f.strata.pieces < leastSpread {
			return 0, 0
		}
		return f.strata.variance(e.rows), f.strata.df
	}
	variance = s.variance(weights) * *f.ResidualSD * *f.ResidualSD
	if f.random != nil {
		return variance + f.random.weighing(e.rows, s.span), f.random.satterthwaite(e.rows, variance, float64(f.DF))
	}
	return variance, float64(f.DF)
}

// Coefficient names one of a fit's, by its term and its contrast.
type Coefficient struct{ Term, Label string }

// Combine estimates a weighted sum of coefficients; absent when one of them is
// not in the model.
func (f *Fit) Combine(weights map[Coefficient]float64) *Estimate {
	row := make([]float64, len(f.kept))
	found := 0
	for j, c := range f.kept {
		if w, ok := weights[Coefficient{c.term, c.label}]; ok {
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
func (f *Fit) EstimateOf(name string) *Estimate {
	for j, c := range f.kept {
		if c.term == name {
			weights := make([]float64, len(f.kept))
			weights[j] = 1
			return new(f.combine(weights))
		}
	}
	return nil
}

// Influence reports how much an estimate changes when every response changes by
// as much as amounts says: what an error that all trials share does to it.
func (f *Fit) Influence(e Estimate, amounts []float64) float64 { return dot(e.rows, amounts) }
