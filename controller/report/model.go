package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/stats"
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
	Fit       stats.Fit
	Unit      string // of the response
	Rows      []answer
	Slopes    []answer // per section, per m/s: made of rows, and not counted again
	SpeedMean float64  // at which the sections are compared
	Sentences []string
	Aliased   []string // sentences on what cannot be told apart
	Missing   string   // why there is no model
	Level     float64  // confidence of every interval
	results   []attempt
}

// answer is one estimate with its p value corrected for the number of answers
// in the model.
type answer struct {
	stats.Estimate
	Holm *float64
}

// compare fits the response on section, speed, their interaction, block, and
// whatever else varied. The unit of analysis is the pass: one accepted window
// is one number, however many connections and samples were in it. What was
// driven in one session has something in common.
//
// It is fitted once, however many sections speak of it.
func compare(d *data) comparison {
	if d.compared == nil {
		d.compared = new(fitted(d))
	}
	return *d.compared
}

func fitted(d *data) comparison {
	results := d.results()
	c := comparison{Unit: d.unit(), Level: d.level(), results: results}
	terms, speedMean := modelTerms(results)
	c.SpeedMean = speedMean
	if len(terms) == 1 {
		c.Missing = "Nothing that could be compared varied among the accepted trials."
		return c
	}
	f, err := d.model(results, terms).Fit()
	if err != nil {
		c.Missing = fmt.Sprintf("There is no model: %v (%d accepted trials).", err, len(results))
		return c
	}
	c.Fit = f
	for _, t := range terms {
		c.Rows = append(c.Rows, answersOf(&f, t)...)
	}
	correct(c.Rows)
	c.Aliased = aliased(f, terms)
	c.words(levels(results, section))
	return c
}

// model is the response on terms, with the sessions as groups.
func (d *data) model(results []attempt, terms []stats.Term) stats.Model {
	m := stats.Model{Terms: terms, Confidence: d.level()}
	for _, a := range results {
		m.Y = append(m.Y, d.response(a))
		m.Groups = append(m.Groups, a.Session)
	}
	return m
}

// answersOf are what a fit says of a term: a factor of several levels is told by
// the differences of all its pairs. Blocks are in the way, not a question.
func answersOf(f *stats.Fit, t stats.Term) []answer {
	if t.Name == termBlock {
		return nil
	}
	var out []answer
	var whole []stats.Estimate
	for _, e := range f.Estimates {
		if e.Term == t.Name {
			whole = append(whole, e)
			out = append(out, answer{Estimate: e})
		}
	}
	if len(t.Columns) < 2 || len(whole) < len(t.Columns) || t.Name == termInteraction {
		return out
	}
	for i, x := range whole {
		for _, y := range whole[i+1:] {
			e := f.Combine(t.Name, map[string]float64{y.Label: 1, x.Label: -1})
			first, _, _ := strings.Cut(x.Label, minus)
			second, _, _ := strings.Cut(y.Label, minus)
			e.Term, e.Label = t.Name, second+minus+first
			out = append(out, answer{Estimate: *e})
		}
	}
	return out
}

// correct gives each answer but the mean the p value that keeps the chance of
// even one false finding among them.
func correct(rows []answer) {
	var p []float64
	var at []int
	for i, r := range rows {
		if r.P != nil && r.Term != termMean {
			p, at = append(p, *r.P), append(at, i)
		}
	}
	for i, h := range stats.Holm(p) {
		rows[at[i]].Holm = new(h)
	}
}

// row finds the first answer of a term.
func (c *comparison) row(term string) *answer {
	for i := range c.Rows {
		if c.Rows[i].Term == term {
			return &c.Rows[i]
		}
	}
	return nil
}

// modelTerms builds the design. Speed is centred, so that the sections are
// compared at its mean; two levels are coded −½ and +½, so that an estimate is
// the second level less the first.
func modelTerms(results []attempt) ([]stats.Term, float64) {
	n := len(results)
	ones := slices.Repeat([]float64{1}, n)
	terms := []stats.Term{{Name: termMean, Columns: []stats.Column{{Label: "mean", Values: ones}}}}
	sections := factorTerm(termSection, results, section)
	speed, speedMean := speedTerm(results)
	if sections != nil {
		terms = append(terms, *sections)
	}
	if speed != nil {
		terms = append(terms, *speed)
	}
	if sections != nil && speed != nil {
		both := stats.Term{Name: termInteraction}
		for _, c := range sections.Columns {
			v := make([]float64, n)
			for i := range v {
				v[i] = c.Values[i] * speed.Columns[0].Values[i]
			}
			both.Columns = append(both.Columns, stats.Column{Label: "slope of " + c.Label, Values: v})
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
func otherTerms(results []attempt) []*stats.Term {
	out := []*stats.Term{
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

// minus stands between the two levels of a contrast.
const minus = " − "

// factorTerm codes a factor; nil when it does not vary.
func factorTerm(name string, results []attempt, of func(attempt) string) *stats.Term {
	all := levels(results, of)
	if len(all) < 2 {
		return nil
	}
	t := stats.Term{Name: name}
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
		t.Columns = append(t.Columns, stats.Column{Label: level + minus + all[0], Values: v})
	}
	return &t
}

// speedTerm is the centred target speed; nil when it does not vary or not every
// trial has one.
func speedTerm(results []attempt) (*stats.Term, float64) {
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
	return &stats.Term{Name: termSpeed, Columns: []stats.Column{{Label: "per m/s", Values: v}}}, center
}

// aliased says which effects the design cannot tell apart.
func aliased(f stats.Fit, terms []stats.Term) []string {
	var out, named []string
	for _, n := range f.Confounded {
		if n != termBlock {
			named = append(named, n)
		}
	}
	if len(named) > 0 {
		var absent []string
		for _, t := range terms[1:] {
			if f.EstimateOf(t.Name) == nil {
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
		out = append(out, text)
	}
	between := slices.DeleteFunc(slices.Clone(f.Between), func(n string) bool { return n == termBlock })
	if len(between) > 0 {
		out = append(out, fmt.Sprintf("Differs only from session to session: %s. Of %d sessions, that is too few to tell it from what else differs between sessions, so no interval is given.",
			strings.Join(between, ", "), f.GroupCount))
	}
	return out
}

// words says in plain language what the estimates are, whatever they are.
func (c *comparison) words(sections []string) {
	f := &c.Fit
	if f.DF == 0 {
		c.Sentences = append(c.Sentences, "The model uses up every trial: there is no residual to judge its estimates by, so no interval is given.")
		return
	}
	if e := c.row(termSection); e != nil && len(sections) == 2 {
		with := ""
		if slices.Contains(f.Confounded, termSection) {
			with = " (together with all that changed with the section)"
		}
		c.Sentences = append(c.Sentences, fmt.Sprintf("Section %s against section %s%s, at the mean speed of %.3g m/s: %s",
			sections[1], sections[0], with, c.SpeedMean, c.inWords(*e)))
	}
	if e := c.row(termSender); e != nil && !slices.Contains(f.Confounded, termSender) {
		c.Sentences = append(c.Sentences, fmt.Sprintf("By the unit that sends (%s): %s", e.Label, c.inWords(*e)))
	}
	slope, both := c.row(termSpeed), c.row(termInteraction)
	if len(sections) != 2 || both == nil {
		if slope != nil {
			c.Sentences = append(c.Sentences, "For each m/s faster: "+c.inWords(*slope))
		}
		return
	}
	for i, w := range []float64{-0.5, 0.5} {
		if e := f.CombineTerms(map[string]float64{termSpeed: 1, termInteraction: w}); e != nil {
			e.Term, e.Label = "slope in section "+sections[i], "per m/s"
			c.Slopes = append(c.Slopes, answer{Estimate: *e})
		}
	}
	correct(c.Slopes)
	for i, e := range c.Slopes {
		c.Sentences = append(c.Sentences, fmt.Sprintf("In section %s, for each m/s faster: %s", sections[i], c.inWords(e)))
	}
	c.Sentences = append(c.Sentences, fmt.Sprintf("Whether speed acts differently in section %s than in section %s (difference of the slopes, per m/s): %s",
		sections[1], sections[0], c.inWords(*both)))
}

// inWords puts an estimate and its interval in one sentence; the same form for
// a null result as for a striking one.
func (c *comparison) inWords(e answer) string {
	if e.Low == nil || e.High == nil {
		return fmt.Sprintf("%s %s, without an interval.", signed(e.Value), c.Unit)
	}
	span := fmt.Sprintf("%s interval %s to %s", percent(c.Level), signed(*e.Low), signed(*e.High))
	word := "more"
	if e.Value < 0 {
		word = "less"
	}
	apart := *e.Low > 0 || *e.High < 0
	switch {
	case apart && (e.Holm == nil || *e.Holm <= 1-c.Level):
		return fmt.Sprintf("%s %s %s (%s).", magnitude(e.Value), c.Unit, word, span)
	case apart:
		return fmt.Sprintf("%s %s %s (%s). Taken alone it would stand out; among all that was asked here it does not (p %s, corrected by Holm).",
			magnitude(e.Value), c.Unit, word, span, probability(e.Holm))
	}
	return fmt.Sprintf("no difference can be told from noise: %s %s (%s). Anything within that interval is compatible with these trials, none at all included.",
		signed(e.Value), c.Unit, span)
}

// percent prints a confidence: 95 %, 99.3 %.
func percent(level float64) string { return fmt.Sprintf("%.3g %%", 100*level) }

// probability prints a p value; what is nil is not known.
func probability(p *float64) string {
	switch {
	case p == nil:
		return "—"
	case *p < 0.001:
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", *p)
}

func magnitude(v float64) string { return fmt.Sprintf("%.3g", math.Abs(v)) }

// signed prints a number with a true minus sign.
func signed(v float64) string {
	s := fmt.Sprintf("%+.3g", v)
	return strings.Replace(s, "-", "−", 1)
}
