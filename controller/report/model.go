package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Names of the model's terms.
const (
	termMean        = "mean"
	termSection     = "section"
	termSpeed       = "speed"
	termInteraction = "section × speed"
	termBlock       = "block"
	termUnit        = "unit in the car"
	termSender      = "unit that sends"
	termDirection   = "direction of travel"
)

// comparison is the model of the sections with what it says in words.
type comparison struct {
	Fit       fit
	Unit      string // of the response
	Rows      []estimate
	Slopes    []estimate // per section, per m/s
	SpeedMean float64    // at which the sections are compared
	Sentences []string
	Aliased   []string // sentences on what cannot be told apart
	Missing   string   // why there is no model
}

// compare fits the response on section, speed, their interaction, block, and
// whatever else varied.
func compare(d *data) comparison {
	results := d.results()
	c := comparison{Unit: d.unit()}
	terms, speedMean := modelTerms(results)
	c.SpeedMean = speedMean
	if len(terms) == 1 {
		c.Missing = "Nothing that could be compared varied among the accepted trials."
		return c
	}
	y := make([]float64, len(results))
	for i, a := range results {
		y[i] = d.response(a)
	}
	f, err := leastSquares(terms, y)
	if err != nil {
		c.Missing = fmt.Sprintf("There is no model: %v (%d accepted trials).", err, len(results))
		return c
	}
	c.Fit = f
	for _, e := range f.Estimates {
		if e.Term != termBlock {
			c.Rows = append(c.Rows, e)
		}
	}
	c.Aliased = aliased(f, terms)
	c.words(levels(results, section))
	return c
}

// modelTerms builds the design. Speed is centred, so that the sections are
// compared at its mean; two levels are coded −½ and +½, so that an estimate is
// the second level less the first.
func modelTerms(results []attempt) ([]term, float64) {
	n := len(results)
	ones := slices.Repeat([]float64{1}, n)
	terms := []term{{Name: termMean, Columns: []column{{"mean", ones}}}}
	sections := factorTerm(termSection, results, section)
	speed, speedMean := speedTerm(results)
	if sections != nil {
		terms = append(terms, *sections)
	}
	if speed != nil {
		terms = append(terms, *speed)
	}
	if sections != nil && speed != nil {
		both := term{Name: termInteraction}
		for _, c := range sections.Columns {
			v := make([]float64, n)
			for i := range v {
				v[i] = c.Values[i] * speed.Columns[0].Values[i]
			}
			both.Columns = append(both.Columns, column{"slope of " + c.Label, v})
		}
		terms = append(terms, both)
	}
	for _, t := range otherTerms(results) {
		if t != nil {
			terms = append(terms, *t)
		}
	}
	return terms, speedMean
}

// otherTerms are block, units, direction, and the campaign's further factors.
func otherTerms(results []attempt) []*term {
	out := []*term{
		factorTerm(termBlock, results, func(a attempt) string { return fmt.Sprint(a.Trial.Block) }),
		factorTerm(termUnit, results, unit),
		// With two units this is section × unit in the car: the only place where a
		// difference between the units' transmitters shows, since crossing them
		// takes it out of both main effects.
		factorTerm(termSender, results, func(a attempt) string { return a.Sender }),
		factorTerm(termDirection, results, direction),
	}
	for _, name := range furtherFactors(results) {
		out = append(out, factorTerm(name, results, func(a attempt) string { return a.Trial.Factors[name] }))
	}
	return out
}

// furtherFactors are the campaign's factors that vary and that the report does
// not know by another name.
func furtherFactors(results []attempt) []string {
	known := []string{"speed", "speed_mps", "section", "car_unit", "direction"}
	seen := map[string]bool{}
	for _, a := range results {
		for name := range a.Trial.Factors {
			if !slices.Contains(known, name) {
				seen[name] = true
			}
		}
	}
	var out []string
	for name := range seen {
		if len(levels(results, func(a attempt) string { return a.Trial.Factors[name] })) > 1 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// factorTerm codes a factor; nil when it does not vary.
func factorTerm(name string, results []attempt, of func(attempt) string) *term {
	all := levels(results, of)
	if len(all) < 2 {
		return nil
	}
	t := term{Name: name}
	for _, level := range all[1:] {
		v := make([]float64, len(results))
		for i, a := range results {
			switch {
			case len(all) == 2 && of(a) == level:
				v[i] = 0.5
			case len(all) == 2:
				v[i] = -0.5
			case of(a) == level:
				v[i] = 1
			}
		}
		t.Columns = append(t.Columns, column{level + " − " + all[0], v})
	}
	return &t
}

// speedTerm is the centred target speed; nil when it does not vary or not every
// trial has one.
func speedTerm(results []attempt) (*term, float64) {
	if len(speeds(results)) < 2 {
		return nil, 0
	}
	v := make([]float64, len(results))
	var sum float64
	for i, a := range results {
		s, ok := a.speedMps()
		if !ok {
			return nil, 0
		}
		v[i] = s
		sum += s
	}
	center := sum / float64(len(results))
	for i := range v {
		v[i] -= center
	}
	return &term{Name: termSpeed, Columns: []column{{"per m/s", v}}}, center
}

// aliased says which effects the design cannot tell apart.
func aliased(f fit, terms []term) []string {
	var named []string
	for _, n := range f.Confounded {
		if n != termBlock {
			named = append(named, n)
		}
	}
	if len(named) == 0 {
		return nil
	}
	var absent []string
	for _, t := range terms[1:] {
		if f.estimateOf(t.Name) == nil {
			absent = append(absent, t.Name)
		}
	}
	text := fmt.Sprintf("Not estimable apart from each other: %s. They changed together in this design, so what is printed for one is the effect of all of them.", strings.Join(named, ", "))
	if len(named) == 1 {
		text = fmt.Sprintf("Not estimable on its own: %s. It changed together with other parts of the design.", named[0])
	}
	if len(absent) > 0 {
		text += fmt.Sprintf(" No separate estimate is given for %s.", strings.Join(absent, ", "))
	}
	return []string{text}
}

// words says in plain language what the estimates are, whatever they are.
func (c *comparison) words(sections []string) {
	f := &c.Fit
	if f.DF == 0 {
		c.Sentences = append(c.Sentences, "The model uses up every trial: there is no residual to judge its estimates by, so no interval is given.")
		return
	}
	if e := f.estimateOf(termSection); e != nil && len(sections) == 2 {
		with := ""
		if slices.Contains(f.Confounded, termSection) {
			with = " (together with all that changed with the section)"
		}
		c.Sentences = append(c.Sentences, fmt.Sprintf("Section %s against section %s%s, at the mean speed of %.3g m/s: %s",
			sections[1], sections[0], with, c.SpeedMean, inWords(*e, c.Unit, "more", "less")))
	}
	for _, e := range c.Rows {
		if e.Term == termSender && !slices.Contains(f.Confounded, termSender) {
			c.Sentences = append(c.Sentences, fmt.Sprintf("By the unit that sends (%s): %s", e.Label, inWords(e, c.Unit, "more", "less")))
		}
	}
	slope := f.estimateOf(termSpeed)
	if len(sections) != 2 || f.estimateOf(termInteraction) == nil {
		if slope != nil {
			c.Sentences = append(c.Sentences, "For each m/s faster: "+inWords(*slope, c.Unit, "more", "less"))
		}
		return
	}
	for i, w := range []float64{-0.5, 0.5} {
		if e := f.combineTerms(map[string]float64{termSpeed: 1, termInteraction: w}); e != nil {
			e.Term, e.Label = "slope in section "+sections[i], "per m/s"
			c.Slopes = append(c.Slopes, *e)
			c.Sentences = append(c.Sentences, fmt.Sprintf("In section %s, for each m/s faster: %s", sections[i], inWords(*e, c.Unit, "more", "less")))
		}
	}
	c.Sentences = append(c.Sentences, fmt.Sprintf("Whether speed acts differently in section %s than in section %s (difference of the slopes, per m/s): %s",
		sections[1], sections[0], inWords(*f.estimateOf(termInteraction), c.Unit, "more", "less")))
}

// inWords puts an estimate and its interval in one sentence; the same form for
// a null result as for a striking one.
func inWords(e estimate, unit, more, less string) string {
	if e.Low == nil || e.High == nil {
		return fmt.Sprintf("%s %s, without an interval.", signed(e.Value), unit)
	}
	span := fmt.Sprintf("95 %% interval %s to %s", signed(*e.Low), signed(*e.High))
	switch {
	case *e.Low > 0:
		return fmt.Sprintf("%s %s %s (%s).", magnitude(e.Value), unit, more, span)
	case *e.High < 0:
		return fmt.Sprintf("%s %s %s (%s).", magnitude(e.Value), unit, less, span)
	}
	return fmt.Sprintf("no difference can be told from noise: %s %s (%s). Anything within that interval is compatible with these trials, none at all included.",
		signed(e.Value), unit, span)
}

func magnitude(v float64) string { return fmt.Sprintf("%.3g", math.Abs(v)) }

// signed prints a number with a true minus sign.
func signed(v float64) string {
	s := fmt.Sprintf("%+.3g", v)
	return strings.Replace(s, "-", "−", 1)
}
