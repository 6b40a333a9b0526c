package papers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// Condition is facts that a trial must have, each with the values that will do.
type Condition map[string][]string

func readCondition(text string) (Condition, error) {
	out := Condition{}
	if text == "" {
		return out, nil
	}
	for part := range strings.SplitSeq(text, ";") {
		fact, values, ok := strings.Cut(part, "=")
		if !ok || fact == "" || values == "" {
			return nil, fmt.Errorf("condition %q is not fact=value", part)
		}
		out[fact] = strings.Split(values, "|")
	}
	return out, nil
}

func (c Condition) holds(t Trial) bool {
	for fact, values := range c {
		if !slices.Contains(values, t.Facts[fact]) {
			return false
		}
	}
	return true
}

// choices are the condition's values one by one. Only one of its facts may have
// several.
func (c Condition) choices() []Condition {
	for fact, values := range c {
		if len(values) > 1 {
			var out []Condition
			for _, v := range values {
				one := maps.Clone(c)
				one[fact] = []string{v}
				out = append(out, one)
			}
			return out
		}
	}
	return []Condition{c}
}

func (c Condition) String() string {
	var out []string
	for _, fact := range slices.Sorted(maps.Keys(c)) {
		values := slices.Clone(c[fact])
		if i := slices.Index(values, ""); i >= 0 {
			values[i] = "not set"
		}
		out = append(out, fact+" "+strings.Join(values, " or "))
	}
	return strings.Join(out, ", ")
}

// Relation is what a claim says of a and b.
type Relation string

// The relations; data/README.md says what they mean. Same is drawn from tables
// only: a and b are equal.
const (
	More  Relation = "more"
	Less  Relation = "less"
	Same  Relation = "same"
	Ratio Relation = "ratio"
	Level Relation = "level"
	None  Relation = "none"
)

var relations = []Relation{More, Less, Ratio, Level, None}

// Claim is what a paper says, so that trials can answer.
type Claim struct {
	ID, Paper, Text, Printed string
	Metric                   string
	Where, A, B              Condition
	Relation                 Relation
	Low, High                *float64
	Note                     string
}

// Verdicts on a claim.
const (
	Supported    = "supported"
	Contradicted = "contradicted"
	Undecided    = "cannot be decided"
	NotAsked     = "not asked"
)

// Answer is what a run says to one claim.
type Answer struct {
	Claim
	Verdict string
	Parts   []Part
}

// Part is one comparison of a claim.
type Part struct {
	What     string
	Verdict  string
	Estimate Interval // of the mean difference a − b, of the mean ratio, or of a's mean
	Ratio    *Interval
	N        int // pairs, or trials
	Test     string
}

// Margin within which two figures count as the same: a share of their mean.
const Margin = 0.1

// rule is how claims are decided, in the words of the report. It was laid down
// before any trial was driven, but for the pairs that a ratio leaves out: that
// was added after the runs of P1 and of P2's chain, of which it decides nothing.
const rule = "Two trials make a pair when they are of one repetition and alike in all but what the claim compares. " +
	"A claim that one has more (or less) is supported when the %[1]s t interval of the pairs' mean difference lies " +
	"wholly on that side of zero, " +
	"contradicted when it lies wholly on the other, and else cannot be decided. " +
	"That two are the same is supported when the interval lies within ± 10 %% of their mean, contradicted when it " +
	"lies wholly beyond. " +
	"A range, of a ratio or of a level, is supported when the %[1]s interval lies wholly within it and contradicted " +
	"when it lies wholly outside. " +
	"Of a ratio, pairs that are 0 on both sides are left out, and the answer has their number. " +
	"Below three pairs nothing is decided, nor of times where one of the trials had not come to it when its window " +
	"closed. A claim of several comparisons is supported when all of them are, and contradicted when one is. " +
	"Intervals are not corrected for there being many claims: of %.0[2]f comparisons without any effect, about one " +
	"comes out on some side."

// Rule is how claims are decided with intervals of a confidence.
func Rule(confidence float64) string {
	return fmt.Sprintf(rule, words.Percent(confidence), 1/(1-confidence))
}

// Decide answers a claim.
func Decide(c Claim, trials []Trial, s Summariser) Answer {
	out := Answer{Claim: c, Verdict: NotAsked}
	if c.Relation == None {
		out.Verdict = Undecided
		return out
	}
	var there []Trial
	for _, t := range trials {
		if _, known := t.Values[c.Metric]; known && c.Where.holds(t) {
			there = append(there, t)
		}
	}
	for _, a := range c.A.choices() {
		if c.Relation == Level {
			out.Parts = append(out.Parts, level(c, a, there, s))
			continue
		}
		for _, b := range c.B.choices() {
			out.Parts = append(out.Parts, compared(c, a, b, there, s))
		}
	}
	out.Parts = slices.DeleteFunc(out.Parts, func(p Part) bool { return p.N == 0 })
	out.Verdict = together(out.Parts)
	if n := c.censored(trials); n > 0 {
		// Those that are known are the short ones: nothing follows from them alone.
		out.Verdict = Undecided
		for i := range out.Parts {
			out.Parts[i].Verdict = Undecided
			out.Parts[i].Test += fmt.Sprintf("; %d of the trials had not come to it when the window closed, and are "+
				"not in it", n)
		}
	}
	return out
}

// censored counts the trials that a claim compares and whose times are only
// known to be longer.
func (c Claim) censored(trials []Trial) int {
	n := 0
	for _, t := range trials {
		compared := slices.ContainsFunc(slices.Concat(c.A.choices(), c.B.choices()), func(k Condition) bool {
			return k.holds(t)
		})
		if t.censored(c.Metric) && c.Where.holds(t) && compared {
			n++
		}
	}
	return n
}

func together(parts []Part) string {
	count := map[string]int{}
	for _, p := range parts {
		count[p.Verdict]++
	}
	switch {
	case len(parts) == 0:
		return NotAsked
	case count[Contradicted] > 0:
		return Contradicted
	case count[Supported] == len(parts):
		return Supported
	}
	return Undecided
}

func level(c Claim, a Condition, trials []Trial, s Summariser) Part {
	var values []float64
	for _, t := range trials {
		if a.holds(t) {
			values = append(values, t.Values[c.Metric])
		}
	}
	p := Part{What: a.String(), N: len(values), Estimate: s.of(values), Test: "t interval of the mean"}
	p.Verdict = p.Estimate.within(c.Low, c.High)
	return p
}

func compared(c Claim, a, b Condition, trials []Trial, s Summariser) Part {
	pairs := pairsOf(c.Metric, a, b, trials)
	p := Part{What: a.String() + " against " + b.String(), N: len(pairs), Test: "paired t interval"}
	var differences, ratios []float64
	mean, nothing := 0.0, 0
	for _, k := range pairs {
		differences = append(differences, k.a-k.b)
		mean += (math.Abs(k.a) + math.Abs(k.b)) / 2 / float64(len(pairs))
		switch {
		case k.b != 0:
			ratios = append(ratios, k.a/k.b)
		case k.a == 0:
			nothing++
		}
	}
	p.Estimate = s.of(differences)
	if len(ratios) > 0 && len(ratios)+nothing == len(pairs) {
		p.Ratio = new(s.of(ratios))
	}
	switch c.Relation {
	case More:
		p.Verdict = []string{Contradicted, Undecided, Supported}[1+p.Estimate.Side()]
	case Less:
		p.Verdict = []string{Supported, Undecided, Contradicted}[1+p.Estimate.Side()]
	case Same:
		p.Verdict = p.Estimate.within(new(-Margin*mean), new(Margin*mean))
	case Ratio:
		p.Verdict, p.Test = Undecided, "t interval of the pairs' mean ratio"
		if p.Ratio != nil {
			p.Verdict = p.Ratio.within(c.Low, c.High)
		}
	}
	if nothing > 0 && len(ratios)+nothing == len(pairs) {
		p.Test += fmt.Sprintf("; the ratio leaves out %d with 0 on both sides", nothing)
	}
	return p
}

// Side of zero on which the whole interval lies: −1, 1, or 0 for neither.
func (v Interval) Side() int {
	switch {
	case v.Half == nil:
		return 0
	case v.Mean-*v.Half > 0:
		return 1
	case v.Mean+*v.Half < 0:
		return -1
	}
	return 0
}

// within reports whether an interval lies in a range, outside of it, or both.
func (v Interval) within(low, high *float64) string {
	if v.Half == nil {
		return Undecided
	}
	from, to := v.Mean-*v.Half, v.Mean+*v.Half
	switch {
	case low != nil && to < *low, high != nil && from > *high:
		return Contradicted
	case (low == nil || from >= *low) && (high == nil || to <= *high):
		return Supported
	}
	return Undecided
}

// twin is one pair's values.
type twin struct{ a, b float64 }

// pairsOf finds the pairs. Several trials of one repetition that are alike
// count as their mean.
func pairsOf(metric string, a, b Condition, trials []Trial) []twin {
	type sums struct{ a, b, nA, nB float64 }
	found := map[string]*sums{}
	for _, t := range trials {
		v, known := t.Values[metric]
		inA, inB := a.holds(t), b.holds(t)
		if !known || inA == inB {
			continue
		}
		key := t.alike(a, b)
		if found[key] == nil {
			found[key] = &sums{}
		}
		k := found[key]
		if inA {
			k.a, k.nA = k.a+v, k.nA+1
		} else {
			k.b, k.nB = k.b+v, k.nB+1
		}
	}
	var out []twin
	for _, key := range slices.Sorted(maps.Keys(found)) { // sums must come out the same each time
		if k := found[key]; k.nA > 0 && k.nB > 0 {
			out = append(out, twin{k.a / k.nA, k.b / k.nB})
		}
	}
	return out
}

// alike names all that two trials of a pair have in common.
func (t Trial) alike(a, b Condition) string {
	var out []string
	for _, fact := range slices.Sorted(maps.Keys(t.Facts)) {
		_, inA := a[fact]
		_, inB := b[fact]
		if !inA && !inB && !twoViews(fact, a, b) {
			out = append(out, fact+"="+t.Facts[fact])
		}
	}
	return fmt.Sprint(t.Repetition, out)
}

// twoViews tells facts that are two views of one thing, of which one is compared.
func twoViews(fact string, a, b Condition) bool {
	for _, views := range [][]string{{"tcp", "variant"}, {"motion", "speed_max_mps", "mobility"},
		{"moving", "ends"}, {"nodes", "ends"}} {
		if !slices.Contains(views, fact) {
			continue
		}
		for _, v := range views {
			if a[v] != nil || b[v] != nil {
				return true
			}
		}
	}
	return false
}
