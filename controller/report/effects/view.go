package effects

import (
	"fmt"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// View is the model as a table, for the report's page.
type View struct {
	Comparison
	Interval  string // its confidence
	Rows      []estimateRow
	SlopeRows []estimateRow
	Sentences []string
	Names     string // of the terms
	Speed     string // how speed is in the model
	Straight  bool   // it is in it, by a line
	Residual  string
	Sessions  string
	Carried   carriedView
	Power     powerView
	Distance  string
	Measured  string // the slope by measured speeds
}

type estimateRow struct{ Term, Label, Value, SE, DF, Interval, P, Holm string }

// View tells the comparison as the report's page has it.
func (c *Comparison) View() View {
	v := View{Comparison: *c, Interval: words.Percent(c.Level)}
	if c.Missing != "" {
		return v
	}
	for _, e := range c.Rows {
		v.Rows = append(v.Rows, rowOf(e))
	}
	for _, e := range c.Slopes {
		v.SlopeRows = append(v.SlopeRows, rowOf(e))
	}
	if c.Fit.ResidualSD != nil {
		v.Residual = fmt.Sprintf("; residual standard deviation %.3g %s", *c.Fit.ResidualSD, c.Unit)
	}
	for _, one := range c.Said {
		v.Sentences = append(v.Sentences, one.Text)
	}
	v.Names = strings.Join(c.Terms.Names(), " + ")
	v.Speed, v.Straight = speedInWords(c.Terms), c.Terms.Has(design.Speed)
	v.Sessions = sessionsInWords(c.Fit, c.Unit) + c.meanUnjudged()
	v.Carried, v.Power = c.carried(), c.power()
	v.Distance, v.Measured = c.atEqualDistance(), c.measuredSpeed()
	return v
}

func rowOf(e answer) estimateRow {
	r := estimateRow{Term: e.Term, Label: e.Label, Value: words.Signed(e.Value), SE: "—", DF: "—", Interval: "none",
		P: "—", Holm: probability(e.Holm)}
	if e.SE != nil {
		r.SE = fmt.Sprintf("%.3g", *e.SE)
	}
	if e.DF != nil {
		r.DF = fmt.Sprintf("%.3g", *e.DF)
	}
	if e.Low != nil && e.High != nil {
		r.Interval = words.Signed(*e.Low) + " to " + words.Signed(*e.High)
	}
	r.P = probability(e.P)
	if e.Term == design.Mean {
		r.Value, r.P = fmt.Sprintf("%.3g", e.Value), "—"
	}
	return r
}

// speedInWords says how speed is in the model.
func speedInWords(t design.Terms) string {
	switch {
	case t.SpeedMps == nil:
		return "Not every trial has a target speed, so speed is in no term."
	case !t.Has(design.Speed):
		return fmt.Sprintf("Every trial's target was %.3g m/s, so speed is in no term.", *t.SpeedMps)
	}
	return fmt.Sprintf("Speed is the target, centred at its mean of %.3g m/s, so that section and mean are told there.",
		*t.SpeedMps)
}

// sessionsInWords says what the model made of the sessions.
func sessionsInWords(f stats.Fit, unit string) string {
	switch f.Groups {
	case stats.GroupsOne:
		return "All of it is one session: what varies from session to session is in no interval here."
	case stats.GroupsInside:
		return fmt.Sprintf("The %d sessions differ only as blocks and the other terms do, which take them out.",
			f.GroupCount)
	case stats.GroupsFixed:
		return fmt.Sprintf("The %d sessions are too few to know how much sessions vary, so each has an effect of "+
			"its own.", f.GroupCount)
	case stats.GroupsNoise:
		return noiseInWords(f)
	}
	return fmt.Sprintf("The %d sessions are a random effect (standard deviation %.3g %s), by restricted maximum "+
		"likelihood; degrees of freedom are Satterthwaite's.",
		f.GroupCount, *f.GroupSD, unit)
}

// meanUnjudged says why the mean has no interval where others may have one.
func (c *Comparison) meanUnjudged() string {
	if mean := c.row(design.Mean); mean == nil || mean.Low != nil || c.unjudged() != "" {
		return ""
	}
	return " They are too few to say how far another session would be from these, so the mean has no interval."
}

// noiseInWords explains how the model treats sessions of about one trial each.
func noiseInWords(f stats.Fit) string {
	return fmt.Sprintf("There are %d sessions for %d trials, and sessions of one trial cannot be separated from "+
		"noise between trials: both are in the residual, by least squares. "+
		"Where trials of one session count together in an estimate, its interval is as wide as it would have to be "+
		"if sessions were all that varies.", f.GroupCount, f.N)
}

// Prose is what a paper on the run says of its analysis.
func (c *Comparison) Prose() string {
	if c.Missing != "" {
		return "No model was fitted. " + c.Missing + " "
	}
	how := "least squares"
	if c.Fit.Groups == stats.GroupsRandom {
		how = "restricted maximum likelihood with the session as a random effect (degrees of freedom after " +
			"Satterthwaite)"
	}
	text := fmt.Sprintf("The unit of analysis is the pass (n = %d). The response, in %s, was modelled on %s by %s. ",
		c.Fit.N, c.Unit, strings.Join(c.Terms.Names()[1:], ", "), how)
	switch c.Fit.Groups {
	case stats.GroupsFixed:
		text += fmt.Sprintf("The %d sessions each had an effect of their own. ", c.Fit.GroupCount)
	case stats.GroupsNoise:
		text += noiseInWords(c.Fit) + " "
	}
	if len(c.Fit.Confounded) > 0 {
		text += fmt.Sprintf("Not separable in this design: %s. ", strings.Join(c.Fit.Confounded, ", "))
	}
	asked := 0
	for _, r := range c.Rows {
		if r.Holm != nil {
			asked++
		}
	}
	if asked == 0 {
		return text + "No estimate has an interval. "
	}
	return text + fmt.Sprintf("Intervals are at %s each; p values are corrected by Holm's procedure (%s). ",
		words.Percent(c.Level), words.Count(asked, "contrast"))
}
