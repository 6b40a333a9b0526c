package design

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Estimable is what a schedule can tell, if every trial of it is accepted.
type Estimable struct {
	Trials     int      `json:"trials"` // without those of calibration, and those that measure no TCP
	WithoutTCP int      `json:"trials_without_tcp,omitempty"`
	Sessions   int      `json:"sessions"`
	SessionsAs string   `json:"sessions_as"` // how the model takes them: one of stats.Groups…
	ResidualDF int      `json:"residual_df"`
	Effects    []Effect `json:"effects"`
	Warnings   []string `json:"warnings"`
	confidence float64  // of its intervals
}

// Effect is one term of the model.
type Effect struct {
	Name      string `json:"name"`
	Contrasts int    `json:"contrasts"`
	// DFMin and DFMax are the degrees of freedom by which its contrasts are judged,
	// whatever sessions differ by. Both are absent where it has no interval.
	DFMin *float64 `json:"df_min,omitempty"`
	DFMax *float64 `json:"df_max,omitempty"`
	// LeastFoundSD is how large it must be to be found with the probability
	// stats.WishedPower, in standard deviations between trials that differ in nothing, if
	// sessions are alike: for the contrast that is told worst. A slope's is over all
	// speeds. Absent where it has no interval, and where only sessions judge it.
	LeastFoundSD *float64 `json:"least_found_sd,omitempty"`
	// ConfoundedWith are the effects that change together with it.
	ConfoundedWith []string `json:"confounded_with,omitempty"`
	// Own reports whether an estimate of it is printed: of effects that change
	// together one stands for all.
	Own     bool `json:"own_estimate"`
	Between bool `json:"between_sessions,omitempty"` // it differs only from session to session
}

// Judge says what trials on these nodes can tell, and warns of what they cannot.
// asks are the effects that the campaign names, confidence that of the report's
// intervals.
func Judge(nodes []wire.PlanNode, trials []wire.Trial, asks []string, confidence float64) Estimable {
	passes := passesOf(nodes, trials)
	e := Estimable{Trials: len(passes), WithoutTCP: withoutTCP(trials), Warnings: []string{}, Effects: []Effect{},
		confidence: confidence}
	e.warnUnmeasured()
	if len(passes) == 0 {
		return e
	}
	e.fit(passes)
	e.warnConfounded()
	e.warnFew(passes)
	e.warnSessions(passes)
	e.warnAsked(Asked(asks, passes))
	return e
}

// withoutTCP counts the trials that have no throughput to model.
func withoutTCP(trials []wire.Trial) (n int) {
	for _, t := range trials {
		if t.Pass == "" && len(t.Measured()) == 0 {
			n++
		}
	}
	return n
}

// passesOf are a plan's trials that have a throughput, calibration left out,
// driven without a pause.
func passesOf(nodes []wire.PlanNode, trials []wire.Trial) []Pass {
	var out []Pass
	for _, t := range trials {
		if t.Pass == "" && len(t.Measured()) > 0 {
			out = append(out, Of(nodes, t))
		}
	}
	for i, s := range Sessions(out, func(int) bool { return false }) {
		out[i].Session = s
	}
	return out
}

// farApart is a ratio of variances at which sessions are all that counts.
const farApart = 1e6

func (e *Estimable) fit(passes []Pass) {
	m := stats.Model{Terms: TermsOf(passes).List}
	for _, p := range passes {
		m.Groups = append(m.Groups, p.Session)
	}
	alike, err := m.Support(0)
	e.Sessions, e.SessionsAs, e.ResidualDF = alike.GroupCount, alike.Groups, max(alike.DF, 0)
	apart := alike
	if err == nil && alike.Groups == stats.GroupsRandom {
		apart, err = m.Support(farApart)
	}
	for _, t := range m.Terms[1:] {
		if t.Name == Block {
			continue // in the way, not a question
		}
		f := Effect{Name: t.Name, Contrasts: len(t.Columns), Between: slices.Contains(alike.Between, t.Name)}
		if slices.Contains(alike.Confounded, t.Name) {
			f.ConfoundedWith = partners(m.Terms, t.Name, alike.Confounded)
		}
		if err == nil {
			told := Contrasts(&alike, t)
			f.judgedBy(slices.Concat(told, Contrasts(&apart, t)))
			f.found(&alike, told, speedRange(t.Name, passes), e.confidence)
		}
		e.Effects = append(e.Effects, f)
	}
}

// judgedBy takes what a term's contrasts are judged by. They have an interval all
// or none.
func (e *Effect) judgedBy(contrasts []stats.Estimate) {
	for _, c := range contrasts {
		e.Own = true
		if c.DF == nil {
			continue
		}
		if e.DFMin == nil {
			e.DFMin, e.DFMax = new(*c.DF), new(*c.DF)
		}
		*e.DFMin, *e.DFMax = min(*e.DFMin, *c.DF), max(*e.DFMax, *c.DF)
	}
}

// found works out how large the effect must be, of a fit to noise: how its estimates
// scatter, as a share of the noise, is the design's.
func (e *Effect) found(f *stats.Fit, contrasts []stats.Estimate, units, confidence float64) {
	for _, c := range contrasts {
		if c.SE == nil || c.Between || f.Groups == stats.GroupsNoise {
			continue
		}
		least := stats.Detectable(stats.WishedPower, *c.DF, confidence) * *c.SE / *f.ResidualSD * units
		if e.LeastFoundSD == nil || least > *e.LeastFoundSD {
			e.LeastFoundSD = &least
		}
	}
}

// speedRange is from the slowest to the fastest for a term whose contrasts are slopes,
// and 1 for the others.
func speedRange(term string, passes []Pass) float64 {
	if term != Speed && term != Interaction {
		return 1
	}
	slowest, fastest := math.Inf(1), 0.0
	for _, p := range passes { // such a term is there only if all have a speed
		slowest, fastest = min(slowest, *p.Trial.SpeedMps), max(fastest, *p.Trial.SpeedMps)
	}
	return fastest - slowest
}

// partners are the terms but for which another could be told; where it takes
// several, all that are confounded.
func partners(terms []stats.Term, name string, confounded []string) []string {
	var out, others []string
	for i, t := range terms {
		if t.Name == name || !slices.Contains(confounded, t.Name) {
			continue
		}
		others = append(others, t.Name)
		if !slices.Contains(stats.Confounded(slices.Delete(slices.Clone(terms), i, i+1)), name) {
			out = append(out, t.Name)
		}
	}
	if len(out) == 0 {
		return others
	}
	return out
}

func (e *Estimable) warn(format string, args ...any) {
	e.Warnings = append(e.Warnings, fmt.Sprintf(format, args...))
}

func (e *Estimable) warnUnmeasured() {
	switch {
	case e.WithoutTCP == 0:
	case e.Trials == 0:
		e.warn("no trial measures a flow of TCP, so that there is no model of throughput: of UDP the receiver's " +
			"kernel counts nothing; iperf3's own figures are in metrics.csv")
	default:
		e.warn("%d of %d trials measure no flow of TCP, and are in no model of throughput", e.WithoutTCP,
			e.Trials+e.WithoutTCP)
	}
}

func (e *Estimable) warnConfounded() {
	seen := map[string]bool{}
	for _, f := range e.Effects {
		if len(f.ConfoundedWith) == 0 {
			continue
		}
		all := append([]string{f.Name}, f.ConfoundedWith...)
		slices.Sort(all)
		what := strings.Join(all, ", ")
		if seen[what] {
			continue
		}
		seen[what] = true
		cure := ""
		if slices.Contains(all, Section) && (slices.Contains(all, Sender) || slices.Contains(all, Unit)) {
			cure = "; a factor car_unit that puts either unit into the car, crossed with the section, tells them apart"
		}
		e.warn("confounded: %s change together, so that the effect of one cannot be separated from those of the "+
			"others%s", what,
			cure)
	}
}

// fewDF is below how many degrees of freedom an interval is much wider than with
// many: at four it reaches 2.8 standard errors to either side, for 2, at 95 %.
const fewDF, manyDF = 5, 1e6

func (e *Estimable) warnFew(passes []Pass) {
	switch df := e.ResidualDF; {
	case df == 0:
		e.warn("the model uses up all %d trials: no effect has an interval; drive more repetitions", e.Trials)
	case df < fewDF:
		e.warn("few residual degrees of freedom (%d): an interval reaches %.1f standard errors to either side, with "+
			"many it is %.2g; drive more repetitions",
			df, stats.TQuantile(e.confidence, float64(df)), stats.TQuantile(e.confidence, manyDF))
	default:
		e.warnFewForSome()
	}
	switch len(blocks(passes)) {
	case 1:
		e.warn("one repetition: no cell is driven twice, so that noise cannot be separated from what the model " +
			"leaves " +
			"out, and no cell has an interval of its own")
	case 2:
		e.warn("two repetitions: no cell has an interval of its own, which takes three")
	}
}

// warnFewForSome names the effects that lean on how much sessions differ.
func (e *Estimable) warnFewForSome() {
	var few []string
	least := float64(fewDF)
	for _, f := range e.Effects {
		if f.DFMin != nil && *f.DFMin < fewDF {
			few, least = append(few, f.Name), min(least, *f.DFMin)
		}
	}
	if len(few) > 0 {
		e.warn("as few as %.0f degrees of freedom for %s, should sessions differ much: an interval then reaches %.1f "+
			"standard errors to either side, with many it is %.2g",
			least, strings.Join(few, ", "), stats.TQuantile(e.confidence, least),
			stats.TQuantile(e.confidence, manyDF))
	}
}

func blocks(passes []Pass) []string {
	return levels(passes, func(p Pass) string { return fmt.Sprint(p.Trial.Block) })
}

func (e *Estimable) warnSessions(passes []Pass) {
	if cars := len(levels(passes, unit)); cars > 0 && e.Sessions > cars*len(blocks(passes)) {
		e.warn("another unit is put into the car before %d of %d trials, and each time begins a session, which has "+
			"something of its own; with design.whole_plots: [car_unit] each unit is in the car once a block",
			e.Sessions-1, e.Trials)
	}
	for _, f := range e.Effects {
		if f.Between && f.DFMin == nil && e.ResidualDF > 0 {
			e.warn("%s differs only from session to session, of which there are %d: too few for an interval; drive "+
				"more repetitions", f.Name, e.Sessions)
		}
	}
}

func (e *Estimable) warnAsked(asked []string) {
	for _, name := range asked {
		i := slices.IndexFunc(e.Effects, func(f Effect) bool { return f.Name == name })
		switch {
		case i < 0:
			e.warn("the campaign asks about %s, which does not vary", name)
		case !e.Effects[i].Own:
			e.warn("the campaign asks about %s, of which there is no estimate of its own", name)
		case e.Effects[i].DFMin == nil:
			e.warn("the campaign asks about %s, of which there is no interval", name)
		}
	}
}
