package effects

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// words says in plain language what the estimates are, whatever they are.
func (c *Comparison) words(sections []string) {
	if why := c.unjudged(); why != "" {
		c.say("", why)
		return
	}
	c.pairWords(design.Section, "Sections"+c.together(design.Section)+c.atSpeed(), func(label string) string {
		of, less := design.Levels(label)
		return fmt.Sprintf("Section %s against section %s%s%s", of, less, c.together(design.Section), c.atSpeed())
	})
	c.pairWords(design.Sender, "By the unit that sends"+c.together(design.Sender), func(label string) string {
		return fmt.Sprintf("By the unit that sends (%s)%s", label, c.together(design.Sender))
	})
	c.speedWords(sections)
	for _, t := range c.Terms.List {
		switch t.Name {
		case design.Mean, design.Block, design.Section, design.Sender, design.Speed, design.Interaction:
		default:
			name := upper(t.Name)
			c.pairWords(t.Name, name+c.together(t.Name), func(label string) string {
				return name + ", " + label + c.together(t.Name)
			})
		}
	}
}

func (c *Comparison) say(term, text string) { c.Said = append(c.Said, sentence{term, text}) }

// unjudged says why no estimate has an interval; empty where some may have.
func (c *Comparison) unjudged() string {
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
func (c *Comparison) atSpeed() string {
	switch {
	case c.Terms.SpeedMps == nil:
		return ""
	case c.Terms.Has(design.Speed):
		return fmt.Sprintf(", at the mean speed of %.3g m/s", *c.Terms.SpeedMps)
	}
	return fmt.Sprintf(", at %.3g m/s", *c.Terms.SpeedMps)
}

// together warns of what an estimate cannot be distinguished from.
func (c *Comparison) together(term string) string {
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

func (c *Comparison) speedWords(sections []string) {
	if slope := c.row(design.Speed); slope != nil {
		c.say(design.Speed, fmt.Sprintf("For each m/s faster%s%s: %s", c.together(design.Speed), c.overSections(", "),
			c.inWords(*slope)))
	}
	c.slopes(sections)
	c.pairWords(design.Interaction, "Whether speed acts differently by section (difference of the slopes, per m/s)",
		func(label string) string {
			of, less := design.Levels(label)
			return fmt.Sprintf("Whether speed acts differently in section %s than in section %s (difference of "+
				"the slopes, per m/s)", of, less)
		})
}

// overSections says, behind a separator, that the slope is that over all sections, where it may differ between
// them; else it is empty.
func (c *Comparison) overSections(separator string) string {
	if len(c.rows(design.Interaction)) == 0 {
		return ""
	}
	i := slices.IndexFunc(c.Terms.List, func(t stats.Term) bool { return t.Name == design.Interaction })
	if n := len(c.Terms.List[i].Columns) + 1; n > 2 {
		return fmt.Sprintf("%sover all %d sections", separator, n)
	}
	return separator + "over both sections"
}

// slopeIn begins the name of a section's slope.
const slopeIn = "slope in section "

// slopes tells the slope in each section, where they may differ.
func (c *Comparison) slopes(sections []string) {
	i := slices.IndexFunc(c.Terms.List, func(t stats.Term) bool { return t.Name == design.Interaction })
	if i < 0 {
		return
	}
	columns := c.Terms.List[i].Columns
	var of []string
	for level, section := range sections {
		weights := map[stats.Coefficient]float64{{Term: design.Speed, Label: design.PerMps}: 1}
		for j, w := range design.AtLevel(level, len(columns)) {
			weights[stats.Coefficient{Term: design.Interaction, Label: columns[j].Label}] = w
		}
		if e := c.Fit.Combine(weights); e != nil {
			e.Term, e.Label = slopeIn+section, design.PerMps
			c.Slopes, of = append(c.Slopes, answer{Estimate: *e}), append(of, section)
		}
	}
	correct(c.Slopes)
	for i, e := range c.Slopes {
		c.say(perSection, fmt.Sprintf("In section %s, for each m/s faster: %s", of[i], c.inWords(e)))
	}
}

// mostPairs is how many differences of a factor's levels are told one by one.
const mostPairs = 3

// pairWords tells a term's contrasts, each as one names it; of many, how many
// stand out, and the largest.
func (c *Comparison) pairWords(term, all string, one func(label string) string) {
	pairs := c.rows(term)
	if len(pairs) <= mostPairs {
		for _, e := range pairs {
			c.say(term, one(e.Label)+": "+c.inWords(e))
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
	c.say(term, fmt.Sprintf("%s: of %d differences %d can be distinguished from noise (corrected by Holm). "+
		"The largest, %s: %s", all, len(pairs), found, largest.Label, c.inWords(largest)))
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// asDiffering has each section's slope follow on speed, where they are found to
// differ: then the slope over all is that of none.
func (c *Comparison) asDiffering(asked []string) []string {
	if !slices.ContainsFunc(c.rows(design.Interaction), func(e answer) bool {
		return e.Holm != nil && *e.Holm <= 1-c.Level
	}) {
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

// Answers are the sentences on what the campaign asks, each with its n.
func (c *Comparison) Answers(asked []string) []string {
	if c.Missing != "" {
		return []string{c.Missing}
	}
	n := " " + c.n()
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

// Headline answers what the campaign asks first, in one sentence with estimate,
// interval and n, or says why there is no answer. rest are the answers to all else
// that it asks.
func (c *Comparison) Headline(asked []string) (text string, rest []string) {
	answers := c.Answers(asked)
	if len(answers) == 0 {
		return "", nil
	}
	if c.Missing == "" && c.unjudged() == "" {
		if text := c.headlineOf(asked[0]); text != "" {
			return text, c.Answers(asked[1:])
		}
	}
	return answers[0], answers[1:]
}

// headlineOf is the sentence on a term; empty where it has no single estimate with
// an interval.
func (c *Comparison) headlineOf(term string) string {
	rows := c.rows(term)
	if len(rows) != 1 || rows[0].Low == nil {
		return ""
	}
	switch term {
	case design.Speed:
		return c.speedHeadline(rows[0])
	case design.Interaction:
		return "" // a difference of slopes says neither which section has more nor by how much
	}
	e := rows[0]
	of, less := design.Levels(e.Label)
	if less == "" {
		return ""
	}
	if term == design.Section {
		of, less = "section "+of, "section "+less
	}
	told := c.estimated(e, "") + c.together(term) + c.atSpeed()
	switch c.found(e) {
	case significant:
		word := "higher"
		if e.Value < 0 {
			word = "lower"
		}
		return fmt.Sprintf("Throughput is %s with %s than with %s: %s; %s", word, of, less, told, c.n())
	case uncertain:
		return fmt.Sprintf("An effect of %s on throughput is uncertain: %s minus %s %s; not significant among all "+
			"that was asked (p %s, Holm); %s", term, of, less, told, probability(e.Holm), c.n())
	}
	return fmt.Sprintf("No effect of %s on throughput was detected: %s minus %s %s, an interval that includes zero; %s",
		term, of, less, told, c.n())
}

func (c *Comparison) speedHeadline(slope answer) string {
	const per = " per m/s"
	if len(c.asDiffering([]string{design.Speed})) > 1 && len(c.Slopes) > 0 {
		var each []string
		for _, e := range c.Slopes {
			each = append(each, fmt.Sprintf("%s %s", strings.TrimPrefix(e.Term, slopeIn), c.estimated(e, per)))
		}
		return fmt.Sprintf("How throughput changes with speed depends on the section%s: section %s; %s",
			c.together(design.Section), strings.Join(each, ", section "), c.n())
	}
	told := c.estimated(slope, per) + c.together(design.Speed)
	over := c.overSections(" ")
	switch c.found(slope) {
	case significant:
		word := "rises"
		if slope.Value < 0 {
			word = "falls"
		}
		return fmt.Sprintf("Throughput %s with speed%s: %s; %s", word, over, told, c.n())
	case uncertain:
		return fmt.Sprintf("An effect of speed on throughput%s is uncertain: %s; not significant among all that was "+
			"asked (p %s, Holm); %s", over, told, probability(slope.Holm), c.n())
	}
	return fmt.Sprintf("No effect of speed on throughput%s was detected: %s, an interval that includes zero; %s", over,
		told, c.n())
}

// estimated is an estimate with its interval, and in percent of the mean.
func (c *Comparison) estimated(e answer, per string) string {
	text := fmt.Sprintf("%s %s%s", words.Signed(e.Value), c.Unit, per)
	if e.Low != nil && e.High != nil {
		text += fmt.Sprintf(" (%s CI %s to %s)", words.Percent(c.Level), words.Signed(*e.Low), words.Signed(*e.High))
	}
	if mean := c.row(design.Mean); mean != nil && mean.Value > 0 {
		text += fmt.Sprintf(", which is %s %% of the mean", words.Signed(100*e.Value/mean.Value))
	}
	return text
}

func (c *Comparison) n() string { return fmt.Sprintf("n = %s.", words.Count(c.Fit.N, "trial")) }

// finding is what an interval and its corrected p value say.
type finding int

const (
	undetected  finding = iota // the interval includes zero
	uncertain                  // it does not, and the corrected p value is above its level
	significant                // it does not, and the p value is below
)

func (c *Comparison) found(e answer) finding {
	switch apart := *e.Low > 0 || *e.High < 0; {
	case !apart:
		return undetected
	case e.Holm == nil || *e.Holm <= 1-c.Level:
		return significant
	}
	return uncertain
}

// inWords puts an estimate and its interval in one sentence; the same form for
// a null result as for a striking one.
func (c *Comparison) inWords(e answer) string {
	if e.Low == nil || e.High == nil {
		return fmt.Sprintf("%s %s, without an interval.", words.Signed(e.Value), c.Unit)
	}
	span := fmt.Sprintf("%s interval %s to %s", words.Percent(c.Level), words.Signed(*e.Low), words.Signed(*e.High))
	word := "more"
	if e.Value < 0 {
		word = "less"
	}
	switch c.found(e) {
	case significant:
		return fmt.Sprintf("%s %s %s (%s).", magnitude(e.Value), c.Unit, word, span)
	case uncertain:
		return fmt.Sprintf("%s %s %s (%s). Taken alone it would stand out; among all that was asked here it does not "+
			"(p %s, corrected by Holm).",
			magnitude(e.Value), c.Unit, word, span, probability(e.Holm))
	}
	return fmt.Sprintf("no significant difference was detected: %s %s (%s). The data are consistent with any value "+
		"in this interval, including zero.",
		words.Signed(e.Value), c.Unit, span)
}

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
