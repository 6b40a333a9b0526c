package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// words says in plain language what the estimates are, whatever they are.
func (c *comparison) words(sections []string) {
	if why := c.unjudged(); why != "" {
		c.say("", why)
		return
	}
	if e := c.row(design.Section); e != nil && len(sections) == 2 {
		c.say(design.Section, fmt.Sprintf("Section %s against section %s%s%s: %s", sections[1], sections[0],
			c.together(design.Section), c.atSpeed(), c.inWords(*e)))
	}
	if e := c.row(design.Sender); e != nil && !slices.Contains(c.Fit.Confounded, design.Sender) {
		c.say(design.Sender, fmt.Sprintf("By the unit that sends (%s): %s", e.Label, c.inWords(*e)))
	}
	c.speedWords(sections)
	for _, t := range c.Terms.List {
		switch t.Name {
		case design.Mean, design.Block, design.Section, design.Sender, design.Speed, design.Interaction:
		default:
			c.factorWords(t.Name)
		}
	}
}

func (c *comparison) say(term, text string) { c.Said = append(c.Said, sentence{term, text}) }

// unjudged says why no estimate has an interval; empty where some may have.
func (c *comparison) unjudged() string {
	switch f := &c.Fit; {
	case f.DF == 0:
		return "The model uses up every trial: there is no residual to judge its estimates by, so no interval is given."
	case f.NoSpread:
		mean := c.row(design.Mean)
		same := "every trial gave exactly what the model makes of its cell"
		if mean != nil && !slices.ContainsFunc(f.Estimates, func(e stats.Estimate) bool {
			return e.Term != design.Mean && math.Abs(e.Value) > 1e-9*math.Abs(mean.Value)
		}) {
			same = fmt.Sprintf("all %d accepted trials gave the same %.3g %s", f.N, mean.Value, c.Unit)
		}
		return fmt.Sprintf("These trials cannot tell: %s. Without any spread nothing says how certain a difference "+
			"is, or that there is none, so no interval is given.", same)
	}
	return ""
}

// atSpeed is the speed at which sections are compared, as far as there is one.
func (c *comparison) atSpeed() string {
	switch {
	case c.Terms.SpeedMps == nil:
		return ""
	case c.Terms.Has(design.Speed):
		return fmt.Sprintf(", at the mean speed of %.3g m/s", *c.Terms.SpeedMps)
	}
	return fmt.Sprintf(", at %.3g m/s", *c.Terms.SpeedMps)
}

// together warns of what an estimate cannot be distinguished from.
func (c *comparison) together(term string) string {
	if !slices.Contains(c.Fit.Confounded, term) {
		return ""
	}
	what := "it"
	if term == design.Section {
		what = "the section"
	}
	return fmt.Sprintf(" (together with all that changed with %s)", what)
}

// perSection stands for the term of sentences on each section's slope.
const perSection = "slope by section"

func (c *comparison) speedWords(sections []string) {
	slope, both := c.row(design.Speed), c.row(design.Interaction)
	if len(sections) != 2 || both == nil {
		if slope != nil {
			c.say(design.Speed, "For each m/s faster"+c.together(design.Speed)+": "+c.inWords(*slope))
		}
		return
	}
	if slope != nil {
		c.say(design.Speed, fmt.Sprintf("For each m/s faster%s, over both sections: %s", c.together(design.Speed),
			c.inWords(*slope)))
	}
	for i, w := range []float64{-0.5, 0.5} {
		if e := c.Fit.CombineTerms(map[string]float64{design.Speed: 1, design.Interaction: w}); e != nil {
			e.Term, e.Label = "slope in section "+sections[i], "per m/s"
			c.Slopes = append(c.Slopes, answer{Estimate: *e})
		}
	}
	correct(c.Slopes)
	for i, e := range c.Slopes {
		c.say(perSection, fmt.Sprintf("In section %s, for each m/s faster: %s", sections[i], c.inWords(e)))
	}
	c.say(design.Interaction, fmt.Sprintf("Whether speed acts differently in section %s than in section %s "+
		"(difference of the slopes, per m/s): %s",
		sections[1], sections[0], c.inWords(*both)))
}

// mostPairs is how many differences of a factor's levels are told one by one.
const mostPairs = 3

// factorWords tells the differences between a factor's levels; of many, how many
// stand out, and the largest.
func (c *comparison) factorWords(term string) {
	var pairs []answer
	for _, r := range c.Rows {
		if r.Term == term {
			pairs = append(pairs, r)
		}
	}
	if len(pairs) <= mostPairs {
		for _, e := range pairs {
			c.say(term, fmt.Sprintf("%s, %s%s: %s", upper(term), e.Label, c.together(term), c.inWords(e)))
		}
		return
	}
	found := 0
	largest := pairs[0]
	for _, e := range pairs {
		if e.Holm != nil && *e.Holm <= 1-c.Level {
			found++
		}
		if math.Abs(e.Value) > math.Abs(largest.Value) {
			largest = e
		}
	}
	c.say(term, fmt.Sprintf("%s%s: of %d differences between levels %d are significant (corrected by Holm). The "+
		"largest, %s: %s",
		upper(term), c.together(term), len(pairs), found, largest.Label, c.inWords(largest)))
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// asDiffering has each section's slope follow on speed, where they are found to
// differ: then the slope over both is that of neither.
func (c *comparison) asDiffering(asked []string) []string {
	both := c.row(design.Interaction)
	if both == nil || both.Holm == nil || *both.Holm > 1-c.Level || len(c.Slopes) == 0 {
		return asked
	}
	var out []string
	for _, term := range asked {
		if out = append(out, term); term == design.Speed {
			out = append(out, perSection)
		}
	}
	return out
}

// answers are the sentences on what the campaign asks, each with its n.
func (c *comparison) answers(asked []string) []string {
	if c.Missing != "" {
		return []string{c.Missing}
	}
	n := fmt.Sprintf(" n = %s.", count(c.Fit.N, "trial"))
	if why := c.unjudged(); why != "" {
		return []string{why + n}
	}
	var out []string
	for _, term := range c.asDiffering(asked) {
		said := 0
		for _, s := range c.Said {
			if s.Term == term {
				out = append(out, s.Text+n)
				said++
			}
		}
		switch {
		case said > 0:
		case !c.Terms.Has(term):
			out = append(out, fmt.Sprintf("The campaign asks about %s, which did not vary among the accepted trials.%s",
				term, n))
		default:
			out = append(out, fmt.Sprintf("The campaign asks about %s, of which there is no estimate of its own.%s",
				term, n))
		}
	}
	return out
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
		return fmt.Sprintf("%s %s %s (%s). Taken alone it would stand out; among all that was asked here it does not "+
			"(p %s, corrected by Holm).",
			magnitude(e.Value), c.Unit, word, span, probability(e.Holm))
	}
	return fmt.Sprintf("no significant difference was detected: %s %s (%s). The data are consistent with any value "+
		"in this interval, including zero.",
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

// signed prints a number with a true design.Minus sign.
func signed(v float64) string {
	s := fmt.Sprintf("%+.3g", v)
	return strings.Replace(s, "-", "−", 1)
}
