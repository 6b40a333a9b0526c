// Package effects says what the factors of a run did: the model of the response,
// its estimates as a table and in sentences, what the uncertainty of clocks and
// speed does to them, and how many trials a wished precision takes. It is given
// one number a trial; which trials count, and how they were measured, stays out.
package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Run is what a run has to compare.
type Run struct {
	Results []Result
	Unit    string   // of the responses
	Level   float64  // confidence of every interval
	Courses []string // that were driven
	NoTCP   bool     // no accepted trial measures a flow of TCP
}

// Result is one accepted window: what was set, what came out, and what was
// measured beside it as far as it was.
type Result struct {
	design.Pass
	Response                                               float64
	SpeedMeanMps, SpeedErrMps, DistanceMeanM, ClockErrorMs *float64
	DistanceOpenM, DistanceCloseM                          *float64
}

// Comparison is the model of the sections with what it says in words.
type Comparison struct {
	Run
	Fit     stats.Fit
	Rows    []answer
	Slopes  []answer // per section, per m/s: made of rows, and not counted again
	Terms   design.Terms
	Said    []sentence
	Aliased []string // sentences on what cannot be distinguished
	Missing string   // why there is no model
}

// sentence is what is said of one term; of all of them where it names none.
type sentence struct{ Term, Text string }

// answer is one estimate with its p value corrected for the number of answers
// in the model.
type answer struct {
	stats.Estimate
	Holm *float64
}

// Compare fits the response on section, speed, their interaction, block, and
// whatever else varied. The unit of analysis is the pass: one accepted window
// is one number, however many connections and samples were in it. What was
// driven in one session has something in common.
func Compare(r Run) Comparison {
	c := Comparison{Run: r}
	var passes []design.Pass
	for _, one := range r.Results {
		passes = append(passes, one.Pass)
	}
	c.Terms = design.TermsOf(passes)
	if r.NoTCP {
		c.Missing = "There is no model of throughput: no accepted trial measures a flow of TCP."
		return c
	}
	if len(c.Terms.List) == 1 {
		c.Missing = "Nothing that could be compared varied among the accepted trials."
		return c
	}
	f, err := r.model(c.Terms.List).Fit()
	if err != nil {
		c.Missing = fmt.Sprintf("There is no model: %v (%d accepted trials).", err, len(r.Results))
		return c
	}
	c.Fit = f
	for _, t := range c.Terms.List {
		c.Rows = append(c.Rows, answersOf(&f, t)...)
	}
	correct(c.Rows)
	c.Aliased = aliased(f, c.Terms.List)
	c.words(r.sections())
	return c
}

func (r Run) sections() []string {
	seen := map[string]bool{}
	for _, one := range r.Results {
		if one.Section != "" {
			seen[one.Section] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), wire.CompareLevels)
}

// model is the response on terms, with the sessions as groups.
func (r Run) model(terms []stats.Term) stats.Model {
	m := stats.Model{Terms: terms, Confidence: r.Level}
	for _, one := range r.Results {
		m.Y = append(m.Y, one.Response)
		m.Groups = append(m.Groups, one.Session)
	}
	return m
}

// answersOf are what a fit says of a term. Blocks are in the way, not a question.
func answersOf(f *stats.Fit, t stats.Term) []answer {
	if t.Name == design.Block {
		return nil
	}
	var out []answer
	for _, e := range design.Contrasts(f, t) {
		out = append(out, answer{Estimate: e})
	}
	return out
}

// correct gives each answer but the mean the p value that keeps the chance of
// even one false finding among them.
func correct(rows []answer) {
	var p []float64
	var at []int
	for i, r := range rows {
		if r.P != nil && r.Term != design.Mean {
			p, at = append(p, *r.P), append(at, i)
		}
	}
	for i, h := range stats.Holm(p) {
		rows[at[i]].Holm = new(h)
	}
}

// rows are the answers of a term.
func (c *Comparison) rows(term string) []answer {
	var out []answer
	for _, r := range c.Rows {
		if r.Term == term {
			out = append(out, r)
		}
	}
	return out
}

// row finds the first answer of a term.
func (c *Comparison) row(term string) *answer {
	if all := c.rows(term); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// aliased says which effects the design cannot tell apart.
func aliased(f stats.Fit, terms []stats.Term) []string {
	var out, named []string
	for _, n := range f.Confounded {
		if n != design.Block {
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
		text := fmt.Sprintf("Confounded, not estimable separately: %s. They changed together in this design, so each "+
			"printed effect is that of all of them.", strings.Join(named, ", "))
		if len(named) == 1 {
			text = fmt.Sprintf("Not estimable on its own: %s. It changed together with other parts of the design.",
				named[0])
		}
		if len(absent) > 0 {
			text += fmt.Sprintf(" No separate estimate is given for %s.", strings.Join(absent, ", "))
		}
		out = append(out, text)
	}
	var judged, open []string
	for _, n := range f.Between {
		switch e := f.EstimateOf(n); {
		case n == design.Block:
		case e != nil && e.Low != nil:
			judged = append(judged, n)
		default:
			open = append(open, n)
		}
	}
	if len(judged) > 0 {
		out = append(out, fmt.Sprintf("Differs only from session to session: %s. It is judged by how much the %d "+
			"sessions differ otherwise, which is hardly known from so few: its interval is wide for that.",
			strings.Join(judged, ", "), f.GroupCount))
	}
	if len(open) > 0 {
		out = append(out, fmt.Sprintf("Differs only from session to session: %s. Of %s, that is too few to tell it "+
			"from what else differs between sessions, so no interval is given.",
			strings.Join(open, ", "), words.Count(f.GroupCount, "session")))
	}
	return out
}
