package design

import (
	"cmp"
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/stats"
)

// Names of the model's terms; a further factor's is its own.
const (
	Mean        = "mean"
	Section     = "section"
	Speed       = "speed"
	Interaction = "section × speed"
	Block       = "block"
	Unit        = "unit in the car"
	Sender      = "unit that sends"
	Direction   = "direction of travel"
)

// Minus stands between the two levels of a contrast.
const Minus = " − "

// PerMps is the contrast of a slope.
const PerMps = "per m/s"

// slopeOf begins a contrast of slopes.
const slopeOf = "slope of "

// Terms are a model's terms.
type Terms struct {
	List []stats.Term
	// SpeedMps is the mean target speed; absent when a pass has none.
	SpeedMps *float64
}

// Names are the terms' names, the mean's first.
func (t Terms) Names() []string {
	var out []string
	for _, one := range t.List {
		out = append(out, one.Name)
	}
	return out
}

// Has reports whether a term is in the model.
func (t Terms) Has(name string) bool { return slices.Contains(t.Names(), name) }

// TermsOf builds the design. Speed is centred at its mean, and each factor over
// its levels: so the mean, and where slopes differ the slope, is that over all
// levels, each of which counts alike, and the others' estimates are a level less
// the first.
func TermsOf(passes []Pass) Terms {
	n := len(passes)
	ones := slices.Repeat([]float64{1}, n)
	out := Terms{List: []stats.Term{{Name: Mean, Columns: []stats.Column{{Label: "mean", Values: ones}}}}}
	sections := factorTerm(Section, passes, section)
	speed, mean := speedTerm(passes)
	out.SpeedMps = mean
	both := interaction(sections, speed)
	for _, t := range append([]*stats.Term{sections, speed, both}, otherTerms(passes)...) {
		if t != nil {
			out.List = append(out.List, *t)
		}
	}
	return out
}

func interaction(sections, speed *stats.Term) *stats.Term {
	if sections == nil || speed == nil {
		return nil
	}
	both := &stats.Term{Name: Interaction}
	for _, c := range sections.Columns {
		v := slices.Clone(c.Values)
		for i := range v {
			v[i] *= speed.Columns[0].Values[i]
		}
		both.Columns = append(both.Columns, stats.Column{Label: slopeOf + c.Label, Values: v})
	}
	return both
}

func section(p Pass) string { return p.Section }

func unit(p Pass) string { return p.Unit }

func sender(p Pass) string { return p.Sender }

func direction(p Pass) string { return p.Trial.Direction }

func speed(p Pass) string {
	if p.Trial.SpeedMps == nil {
		return ""
	}
	return fmt.Sprint(*p.Trial.SpeedMps)
}

// otherTerms are block, units, direction, and the campaign's further factors.
func otherTerms(passes []Pass) []*stats.Term {
	out := []*stats.Term{
		factorTerm(Block, passes, func(p Pass) string { return fmt.Sprint(p.Trial.Block) }),
		factorTerm(Unit, passes, unit),
		// With two units this is section × unit in the car: the only place where a
		// difference between the units' transmitters shows, since crossing them
		// takes it out of both main effects.
		factorTerm(Sender, passes, sender),
		factorTerm(Direction, passes, direction),
	}
	for _, name := range FurtherFactors(passes) {
		out = append(out, factorTerm(name, passes, factor(name)))
	}
	return out
}

func factor(name string) func(Pass) string {
	return func(p Pass) string { return p.Trial.Factors[name] }
}

// known are the properties that have a term of their own, whatever the campaign
// calls the factor that sets them.
func known() map[string]func(Pass) string {
	return map[string]func(Pass) string{Speed: speed, Section: section, Unit: unit, Direction: direction}
}

// FurtherFactors are the campaign's factors that vary and that are no other
// term's by another name.
func FurtherFactors(passes []Pass) []string {
	seen := map[string]bool{}
	for _, p := range passes {
		for name := range p.Trial.Factors {
			seen[name] = true
		}
	}
	var out []string
	for name := range seen {
		if known()[termOf(passes, name)] == nil && len(levels(passes, factor(name))) > 1 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// termOf is the term in which a factor of the campaign is: its own, or that of
// the property that its levels are.
func termOf(passes []Pass, name string) string {
	switch name {
	case "speed", "speed_mps":
		return Speed
	case "section":
		return Section
	case "car_unit":
		return Unit
	case "direction":
		return Direction
	}
	for _, term := range []string{Speed, Section, Unit, Direction} {
		if alike(passes, factor(name), known()[term]) {
			return term
		}
	}
	return name
}

// alike reports whether two properties have the same words for all passes. That
// they vary together is not enough: then they are confounded, and told so.
func alike(passes []Pass, a, b func(Pass) string) bool {
	return len(passes) > 0 && !slices.ContainsFunc(passes, func(p Pass) bool { return a(p) == "" || a(p) != b(p) })
}

// AtLevel is what a factor's columns are at one of its levels, of which each but
// the first has a column: 1 at its own and 0 elsewhere, less what that comes to
// over all levels. Two levels are −½ and +½.
func AtLevel(level, columns int) []float64 {
	out := slices.Repeat([]float64{-1 / float64(columns+1)}, columns)
	if level > 0 {
		out[level-1]++
	}
	return out
}

// factorTerm codes a factor; nil when it does not vary. Passes without a level, where others have
// one, are a level of their own, the last.
func factorTerm(name string, passes []Pass, of func(Pass) string) *stats.Term {
	all := levels(passes, of)
	if len(all) < 2 {
		return nil
	}
	if slices.ContainsFunc(passes, func(p Pass) bool { return of(p) == "" }) {
		all = append(all, "")
	}
	t := stats.Term{Name: name}
	for _, level := range all[1:] {
		t.Columns = append(t.Columns, stats.Column{Label: cmp.Or(level, "none") + Minus + all[0]})
	}
	for _, p := range passes {
		for j, v := range AtLevel(slices.Index(all, of(p)), len(t.Columns)) {
			t.Columns[j].Values = append(t.Columns[j].Values, v)
		}
	}
	return &t
}

// speedTerm is the centred target speed, nil when it does not vary, and the mean
// target speed; neither is there when a pass has no target.
func speedTerm(passes []Pass) (*stats.Term, *float64) {
	v := make([]float64, len(passes))
	var sum float64
	for i, p := range passes {
		if p.Trial.SpeedMps == nil {
			return nil, nil
		}
		v[i] = *p.Trial.SpeedMps
		sum += v[i]
	}
	if len(v) == 0 {
		return nil, nil
	}
	if slices.Min(v) == slices.Max(v) {
		return nil, new(v[0])
	}
	center := sum / float64(len(passes))
	for i := range v {
		v[i] -= center
	}
	return &stats.Term{Name: Speed, Columns: []stats.Column{{Label: PerMps, Values: v}}}, &center
}

// AtSpeeds are the terms with these speeds in the place of the targets.
func (t Terms) AtSpeeds(mps []float64) Terms {
	passes := make([]Pass, len(mps))
	for i := range mps {
		passes[i].Trial.SpeedMps = &mps[i]
	}
	speed, mean := speedTerm(passes)
	out := Terms{SpeedMps: mean}
	var sections *stats.Term
	for i, one := range t.List {
		switch {
		case one.Name == Section:
			sections = &t.List[i]
		case one.Name == Speed && speed != nil:
			one = *speed
		case one.Name == Interaction && speed != nil:
			one = *interaction(sections, speed)
		}
		out.List = append(out.List, one)
	}
	return out
}
