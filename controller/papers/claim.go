package papers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Condition is facts that a trial must have, each with the values that will do.
type Condition map[string][]string

// readCondition reads fact=value;fact=value. A value|value is a choice. In each are
// the facts whose values are to have a comparison of their own: fact=value&value and,
// of all values that trials have, fact=*, which is no condition.
func readCondition(text string) (c Condition, each []string, err error) {
	c = Condition{}
	if text == "" {
		return c, nil, nil
	}
	for part := range strings.SplitSeq(text, ";") {
		fact, values, ok := strings.Cut(part, "=")
		if !ok || fact == "" || values == "" || strings.Contains(values, "|") && strings.ContainsAny(values, "&*") {
			return nil, nil, fmt.Errorf("condition %q is not fact=value, fact=value|value, fact=value&value or fact=*",
				part)
		}
		if strings.ContainsAny(values, "&*") {
			each = append(each, fact)
		}
		if values != "*" {
			c[fact] = strings.FieldsFunc(values, func(r rune) bool { return r == '|' || r == '&' })
		}
	}
	return c, each, nil
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

// factWords say the values of facts; the values of the others say themselves.
var factWords = map[string]string{"speed_max_mps": "%s m/s", "speed_mps": "%s m/s", "channel_error": "channel error %s",
	"cbr_flows": "%s background flows", "cbr_kbit_s": "%s kbit/s of background", "tcp_flows": "%s TCP connections",
	"nodes": "%s nodes", "window_packets": "window of %s packets", "queue_frames": "buffers of %s packets",
	"field_m": "field of %s m", "mobility": "%s mobility", "moving": "%s moves", "hops": "at least %s hops"}

// String says a condition in words. A value of "" is the campaign's own, which goes
// without saying where another is named beside it.
func (c Condition) String() string {
	var out []string
	for _, fact := range slices.Sorted(maps.Keys(c)) {
		var values []string
		for _, v := range c[fact] {
			switch {
			case v == "" && len(c[fact]) > 1:
				continue
			case v == "reference":
				v = "R-TCP" // as its paper calls it
			case fact == "channel_error":
				share, err := strconv.ParseFloat(v, 64)
				if err == nil {
					v = fmt.Sprintf("%g %%", 100*share)
				}
			}
			values = append(values, v)
		}
		text := strings.Join(values, " or ")
		if format := factWords[fact]; format != "" {
			if text == "1" && !strings.HasSuffix(format, "/s") {
				format = strings.TrimSuffix(format, "s")
			}
			text = fmt.Sprintf(format, text)
		}
		out = append(out, text)
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
	Apart Relation = "difference"
	Level Relation = "level"
	None  Relation = "none"
)

var relations = []Relation{More, Less, Ratio, Apart, Level, None}

// Claim is what a paper says, so that trials can answer. Several may be of one
// statement, and have its ID.
type Claim struct {
	ID, Paper, Text, Printed string
	Metric                   string
	Where, A, B              Condition
	Each                     []string // facts of which every value has a comparison of its own
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
	Untestable   = "cannot be tested" // by any trial
)

// Answer is what a run says to one statement.
type Answer struct {
	Claim
	Verdict string
	Parts   []Part
	Notes   []string
}

// Part is one comparison of a statement.
type Part struct {
	Claim    Claim
	What     string
	Verdict  string
	Estimate Interval // of the mean difference a − b, or of a's mean
	Ratio    *Quotient
	N        int // repetitions
	Test     string
}

// OfSide reports whether only the side of a published size is tested.
func (p Part) OfSide() bool {
	return (p.Claim.Relation == More || p.Claim.Relation == Less) && (p.Claim.Low != nil || p.Claim.High != nil)
}

// Margin within which two figures count as the same: a share of their mean.
const Margin = 0.1

// rule is how claims are decided, in the words of the report. It was laid down
// before any trial was driven. Added after the runs in the guides: what it says of
// ratios, of repetitions with several pairs, of every one, and of what a run asks in part.
const rule = "A claim is a statement of the paper or what its tables show, and each of its comparisons is a part of " +
	"it. " +
	"What the paper says of every one, of both or of all has a part for each. " +
	"Two trials make a pair when they are of one repetition and alike in all but what the part compares. " +
	"Several pairs of a repetition, where a part is about a mean over unlike cells, count as one, their mean: " +
	"n is the number of repetitions. A repetition that has fewer pairs than another is left out. " +
	"So it is where tables show what has no words: their cells stand one by one in the tables. " +
	"That one has more (or less) is supported when the %[1]s t interval of the mean difference lies " +
	"wholly on that side of zero, " +
	"contradicted when it lies wholly on the other, and else cannot be decided. " +
	"Where it says “direction only”, the paper has a size too, which is told and not tested. " +
	"That two are the same is supported when the interval lies within ± 10 %% of their mean, contradicted when it " +
	"lies wholly beyond. " +
	"A range, of a ratio, a difference or a level, is supported when the %[1]s interval lies wholly within it and " +
	"contradicted when it lies wholly outside. " +
	"A ratio is that of the two means, its interval Fieller's. " +
	"Below three repetitions nothing is decided, nor of times where one of the trials had not come to it when its " +
	"window closed. A claim is supported when all of its parts are, and contradicted when one is; " +
	"where only some of its parts are asked, it cannot be supported. " +
	"Intervals are not corrected for there being many parts: of %.0[2]f without any effect, about one " +
	"comes out on some side."

// Rule is how claims are decided with intervals of a confidence.
func Rule(confidence float64) string {
	return fmt.Sprintf(rule, words.Percent(confidence), 1/(1-confidence))
}

// Answers are what trials say to claims, one to a statement.
func Answers(claims []Claim, trials []Trial, s Summariser) []Answer {
	var out []Answer
	for _, c := range claims {
		one := Decide(c, trials, s)
		i := slices.IndexFunc(out, func(a Answer) bool { return a.ID == c.ID })
		if i < 0 {
			out = append(out, one)
			continue
		}
		all := &out[i]
		all.Parts = append(all.Parts, one.Parts...)
		all.Verdict = together(all.Parts)
		if !slices.Contains(all.Notes, c.Note) {
			all.Notes = append(all.Notes, one.Notes...)
		}
	}
	for _, a := range out {
		for i, p := range a.Parts {
			if own := p.Claim.apart(a.Parts); own != "" {
				a.Parts[i].What = own + ", " + p.What
			}
		}
	}
	return out
}

// apart says in what a claim is not the others of its statement: its metric, and what it
// asks of the trials.
func (c Claim) apart(parts []Part) string {
	var out []string
	if slices.ContainsFunc(parts, func(p Part) bool { return p.Claim.Metric != c.Metric }) {
		out = append(out, Words(c.Metric))
	}
	own := Condition{}
	for fact, values := range c.Where {
		if !slices.Contains(c.Each, fact) && slices.ContainsFunc(parts, func(p Part) bool {
			return !slices.Equal(p.Claim.Where[fact], values)
		}) {
			own[fact] = values
		}
	}
	if len(own) > 0 {
		out = append(out, own.String())
	}
	return strings.Join(out, ", ")
}

// bounds says from where to where a claim has a range.
func (c Claim) bounds() string {
	switch {
	case c.Low == nil && c.High == nil || c.Relation == More || c.Relation == Less:
		return ""
	case c.High == nil:
		return fmt.Sprintf(" beside at least %g", *c.Low)
	case c.Low == nil:
		return fmt.Sprintf(" beside at most %g", *c.High)
	}
	return fmt.Sprintf(" beside %g to %g", *c.Low, *c.High)
}

// Decide answers a claim by itself.
func Decide(c Claim, trials []Trial, s Summariser) Answer {
	out := Answer{Claim: c, Verdict: Untestable}
	if c.Note != "" {
		out.Notes = []string{c.Note}
	}
	if c.Relation == None {
		return out
	}
	for _, one := range c.every(trials) {
		in := c.Where.and(one)
		var there []Trial
		for _, t := range trials {
			if in.holds(t) {
				there = append(there, t)
			}
		}
		for _, a := range c.A.choices() {
			bs := c.B.choices()
			if c.Relation == Level {
				bs = []Condition{nil}
			}
			for _, b := range bs {
				p := c.part(a, b, there, s)
				if len(one) > 0 {
					p.What = one.String() + ": " + p.What
				}
				out.Parts = append(out.Parts, p)
			}
		}
	}
	out.Verdict = together(out.Parts)
	return out
}

// every are the values of the facts of which each has parts of its own: those that the
// claim names or, where it names none, those that trials have together which it compares.
func (c Claim) every(trials []Trial) []Condition {
	out := []Condition{{}}
	trials = slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return !c.Where.holds(t) || !c.compares(t) })
	for _, fact := range c.Each {
		values := c.Where[fact]
		if values == nil {
			for _, t := range trials {
				if v := t.Facts[fact]; !slices.Contains(values, v) {
					values = append(values, v)
				}
			}
			slices.SortFunc(values, wire.CompareLevels)
		}
		if values == nil {
			continue // what is not asked is a part all the same
		}
		var next []Condition
		for _, one := range out {
			for _, v := range values {
				next = append(next, one.and(Condition{fact: {v}}))
			}
		}
		out = next
	}
	return slices.DeleteFunc(out, func(one Condition) bool {
		found := maps.Clone(one)
		maps.DeleteFunc(found, func(fact string, _ []string) bool { return c.Where[fact] != nil })
		return len(found) > 0 && !slices.ContainsFunc(trials, found.holds)
	})
}

func (c Claim) compares(t Trial) bool {
	return slices.ContainsFunc(slices.Concat(c.A.choices(), c.B.choices()), func(k Condition) bool {
		return k.holds(t)
	})
}

// part is one comparison, of trials of its cells.
func (c Claim) part(a, b Condition, trials []Trial, s Summariser) Part {
	p := compared(c, a, b, trials, s)
	late := 0
	for _, t := range trials {
		if t.censored(c.Metric) && (a.holds(t) || b != nil && b.holds(t)) {
			late++
		}
	}
	switch {
	case late > 0: // those that are known are the short ones: nothing follows from them alone
		p.Verdict = Undecided
		p.Test += fmt.Sprintf("; %d of the trials had not come to it when the window closed, and are not in it", late)
	case p.N == 0:
		p.Verdict = NotAsked
	}
	return p
}

func together(parts []Part) string {
	count := map[string]int{}
	for _, p := range parts {
		count[p.Verdict]++
	}
	switch {
	case count[NotAsked] == len(parts):
		return NotAsked
	case count[Contradicted] > 0:
		return Contradicted
	case count[Supported] == len(parts):
		return Supported
	}
	return Undecided
}

// compared compares a with b or, where b is nil, a with the claim's bounds.
func compared(c Claim, a, b Condition, trials []Trial, s Summariser) Part {
	pairs, each, left := pairsOf(c.Metric, a, b, trials)
	p := Part{Claim: c, What: a.String(), N: len(pairs), Test: "t interval of the mean"}
	var as, bs, differences []float64
	for _, k := range pairs {
		as, bs, differences = append(as, k.a), append(bs, k.b), append(differences, k.a-k.b)
	}
	p.Estimate = s.of(differences)
	counted := "trials"
	if b != nil {
		p.What, p.Test, counted = p.What+" against "+b.String(), "paired t interval", "pairs"
		p.Ratio = s.quotient(as, bs)
	}
	switch c.Relation {
	case More:
		p.Verdict = []string{Contradicted, Undecided, Supported}[1+p.Estimate.Side()]
	case Less:
		p.Verdict = []string{Supported, Undecided, Contradicted}[1+p.Estimate.Side()]
	case Same:
		margin := 0.0
		for _, k := range pairs {
			margin += Margin * (math.Abs(k.a) + math.Abs(k.b)) / 2 / float64(len(pairs))
		}
		p.Verdict = p.Estimate.within(new(-margin), &margin)
	case Apart, Level:
		p.Verdict = p.Estimate.within(c.Low, c.High)
	case Ratio:
		p.Verdict, p.Test = Undecided, "Fieller interval of the ratio"
		if p.Ratio != nil {
			p.Verdict = within(p.Ratio.Low, p.Ratio.High, c.Low, c.High)
		}
	}
	p.Test += fmt.Sprintf("%s, n = %d", c.bounds(), p.N)
	if each > 1 {
		p.Test += fmt.Sprintf(", each the mean of %d %s", each, counted)
	}
	if left > 0 {
		p.Test += fmt.Sprintf("; without %d that had fewer", left)
	}
	return p
}

// Quotient is the ratio of two means.
type Quotient struct {
	Mean      float64
	Low, High *float64 // its interval; nil: too few, or what it divides by may be 0
}

// quotient is the mean of a ÷ that of b; nil where that is 0. Its interval, by Fieller,
// is of all r for which the interval of the mean of a − r·b has 0 in it.
func (s Summariser) quotient(as, bs []float64) *Quotient {
	a, b := s.of(as), s.of(bs)
	if b.Mean == 0 {
		return nil
	}
	out := &Quotient{Mean: a.Mean / b.Mean}
	differences := make([]float64, len(as))
	for i := range as {
		differences[i] = as[i] - bs[i]
	}
	d := s.of(differences)
	if a.Half == nil && b.Half == nil && d.Half == nil {
		return out
	}
	square := func(v Interval) float64 { // of what does not vary there is no interval
		if v.Half == nil {
			return 0
		}
		return *v.Half * *v.Half
	}
	// (a − r·b)² ≤ A − 2rC + r²B: A, B, and C by way of the difference's.
	p := b.Mean*b.Mean - square(b)
	q := a.Mean*b.Mean - (square(a)+square(b)-square(d))/2
	under := q*q - p*(a.Mean*a.Mean-square(a))
	if p <= 0 || under < 0 {
		return out
	}
	out.Low, out.High = new((q-math.Sqrt(under))/p), new((q+math.Sqrt(under))/p)
	return out
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
	return within(new(v.Mean-*v.Half), new(v.Mean+*v.Half), low, high)
}

func within(from, to, low, high *float64) string {
	switch {
	case from == nil || to == nil:
		return Undecided
	case low != nil && *to < *low, high != nil && *from > *high:
		return Contradicted
	case (low == nil || *from >= *low) && (high == nil || *to <= *high):
		return Supported
	}
	return Undecided
}

// twin is one pair's values.
type twin struct{ a, b float64 }

// pairsOf finds the pairs and makes one of those of a repetition, their mean; each is how
// many those are. Trials that are alike count as their mean. Without b a pair is a trial.
// A repetition that has fewer is left out.
func pairsOf(metric string, a, b Condition, trials []Trial) (out []twin, each, left int) {
	type sums struct {
		a, b, nA, nB float64
		repetition   int
	}
	found := map[string]*sums{}
	for i, t := range trials {
		v, known := t.Values[metric]
		inA, inB := a.holds(t), b != nil && b.holds(t)
		if !known || inA == inB {
			continue
		}
		key := t.alike(a, b)
		if b == nil {
			key = strconv.Itoa(i)
		}
		if found[key] == nil {
			found[key] = &sums{repetition: t.Repetition}
		}
		k := found[key]
		if inA {
			k.a, k.nA = k.a+v, k.nA+1
		} else {
			k.b, k.nB = k.b+v, k.nB+1
		}
	}
	of := map[int][]twin{}
	for _, key := range slices.Sorted(maps.Keys(found)) { // sums must come out the same each time
		k := found[key]
		if b == nil {
			k.nB = 1
		}
		if k.nA > 0 && k.nB > 0 {
			of[k.repetition] = append(of[k.repetition], twin{k.a / k.nA, k.b / k.nB})
			each = max(each, len(of[k.repetition]))
		}
	}
	for _, repetition := range slices.Sorted(maps.Keys(of)) {
		mean, n := twin{}, float64(each)
		if len(of[repetition]) < each {
			left++
			continue
		}
		for _, k := range of[repetition] {
			mean.a, mean.b = mean.a+k.a/n, mean.b+k.b/n
		}
		out = append(out, mean)
	}
	return out, each, left
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
