package papers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// Condition is facts that a trial must have, each with the values that will do.
type Condition map[string][]string

// readCondition reads fact=value;fact=value. A value|value is a choice. In each are
// the facts whose values are to have a comparison of their own: fact=value&value.
func readCondition(text string) (c Condition, each []string, err error) {
	c = Condition{}
	if text == "" {
		return c, nil, nil
	}
	for part := range strings.SplitSeq(text, ";") {
		fact, values, ok := strings.Cut(part, "=")
		if !ok || fact == "" || values == "" || values == "*" ||
			strings.Contains(values, "|") && strings.Contains(values, "&") {
			return nil, nil, fmt.Errorf("condition %q is not fact=value, fact=value|value or fact=value&value", part)
		}
		if strings.Contains(values, "&") {
			each = append(each, fact)
		}
		c[fact] = strings.FieldsFunc(values, func(r rune) bool { return r == '|' || r == '&' })
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
	But                      Condition // what of where is not meant; nil: nothing
	Each                     []string  // facts of which every value has a comparison of its own
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
	again    func(Summariser) Part // the same by other intervals
}

// OfSide reports whether only the side of a published size is tested.
func (p Part) OfSide() bool { return !p.OfSize() && (p.Claim.Low != nil || p.Claim.High != nil) }

// OfSize reports whether a size is tested.
func (p Part) OfSize() bool {
	return slices.Contains([]Relation{Ratio, Apart, Level}, p.Claim.Relation)
}

// Margin within which two figures count as the same: a share of their mean.
const Margin = 0.1

// rule is how claims are decided, in the words of the report. It was laid down before
// any trial was driven. Added after the runs in the guides: what it says of ratios, of
// none, of what does not vary, of repetitions with several pairs, of every one and every
// cell, of what a run asks in part, and of the interval of one of several parts.
const rule = "A claim is a statement of the paper or what its tables show, and each of its comparisons is a part of " +
	"it. " +
	"What the paper says of every one, of both or of all has a part for each, and what its tables show has one for " +
	"each cell. " +
	"Two trials make a pair when they are of one repetition and alike in all but what the part compares. " +
	"Several pairs of a repetition, where a part is about a mean over unlike cells, count as one, their mean: " +
	"n is the number of repetitions. A cell that a repetition lacks is left out of that mean; where no cell is in " +
	"all, the largest group of repetitions with the same cells counts. " +
	"A mean over values that the claim names cannot be decided where one of them, or a combination of them, is " +
	"not in it. " +
	"That one has more (or less) is supported when the %[1]s t interval of the mean difference lies " +
	"wholly on that side of zero, " +
	"contradicted when it lies wholly on the other, and else cannot be decided. " +
	"Where it says “direction only”, the paper has a size too, which is told and not tested. " +
	"That two are the same is supported when the interval lies within ± 10 %% of their mean, contradicted when it " +
	"lies wholly beyond. " +
	"A range, of a ratio, a difference or a level, is supported when the %[1]s interval lies wholly within it and " +
	"contradicted when it lies wholly outside. " +
	"That there is none is supported when every repetition has 0, and contradicted when one has more. " +
	"What does not vary has no interval: two that are equal in every repetition have the difference 0 and the ratio " +
	"1, a level that repeats is what it is, and other differences that repeat decide nothing. " +
	"A ratio is that of the two means, its interval Fieller's. Only throughput ÷ R-TCP's is taken of each two " +
	"trials, and compared as their mean; where R-TCP carried nothing there is none. " +
	"Below three repetitions nothing is decided, nor of times where one of the trials had not come to it when its " +
	"window closed. A claim is supported when all of its parts are, and contradicted when one is; " +
	"where only some of its parts are asked, it cannot be supported. " +
	"Of k parts that are asked, one is contradicted by its interval at 100 %% − %[2]s ÷ k only: k of them err " +
	"together no more often than one. " +
	"Intervals are not corrected for there being many claims: of %.0[3]f without any effect, about one " +
	"comes out on some side."

// Rule is how claims are decided with intervals of a confidence.
func Rule(confidence float64) string {
	return fmt.Sprintf(rule, words.Percent(confidence), words.Percent(1-confidence), 1/(1-confidence))
}

// Answers are what trials say to claims, one to a statement. of gives the intervals by
// which one of a number of parts is contradicted; all else is by those of one.
func Answers(claims []Claim, trials []Trial, of func(parts int) Summariser) []Answer {
	var out []Answer
	for _, c := range claims {
		one := Decide(c, trials, of(1))
		i := slices.IndexFunc(out, func(a Answer) bool { return a.ID == c.ID })
		if i < 0 {
			out = append(out, one)
			continue
		}
		all := &out[i]
		all.Parts = append(all.Parts, one.Parts...)
		if !slices.Contains(all.Notes, c.Note) {
			all.Notes = append(all.Notes, one.Notes...)
		}
	}
	for i, a := range out {
		if len(a.Parts) > 1 {
			contradictTogether(a.Parts, of)
			out[i].Verdict = together(a.Parts)
		}
		for i, p := range a.Parts {
			if own := p.Claim.apart(a.Parts); own != "" {
				a.Parts[i].What = own + ", " + p.What
			}
		}
	}
	return out
}

// contradictTogether leaves contradicted only what is so by the interval of one of so
// many parts as are asked.
func contradictTogether(parts []Part, of func(parts int) Summariser) {
	asked := 0
	for _, p := range parts {
		if p.Verdict != NotAsked {
			asked++
		}
	}
	for i, p := range parts {
		if p.Verdict == Contradicted && p.again(of(asked)).Verdict != Contradicted {
			parts[i].Verdict = Undecided
			parts[i].Test += fmt.Sprintf("; not contradicted by its interval as one of %d parts", asked)
		}
	}
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
	case c.none():
		return " beside none"
	case c.Low == nil && c.High == nil || c.Relation == More || c.Relation == Less:
		return ""
	case c.High == nil:
		return fmt.Sprintf(" beside at least %g", *c.Low)
	case c.Low == nil:
		return fmt.Sprintf(" beside at most %g", *c.High)
	}
	return fmt.Sprintf(" beside %g to %g", *c.Low, *c.High)
}

// none reports whether a claim has it that there is none of something.
func (c Claim) none() bool { return c.Relation == Level && c.High != nil && *c.High == 0 }

// Decide answers a claim by itself.
func Decide(c Claim, trials []Trial, s Summariser) Answer {
	out := Answer{Claim: c, Verdict: Untestable}
	if c.Note != "" {
		out.Notes = []string{c.Note}
	}
	if c.Relation == None {
		return out
	}
	for _, one := range c.Where.each(c.Each) {
		in := c.Where.and(one)
		var there []Trial
		for _, t := range trials {
			if in.holds(t) && (c.But == nil || !c.But.holds(t)) {
				there = append(there, t)
			}
		}
		for _, a := range c.A.choices() {
			bs := c.B.choices()
			if c.Relation == Level {
				bs = []Condition{nil}
			}
			for _, b := range bs {
				again := func(s Summariser) Part { return c.part(a, b, there, s) }
				p := again(s)
				p.again = again
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

// each are the combinations of the values of some facts, also those that no run asks.
func (c Condition) each(facts []string) []Condition {
	out := []Condition{{}}
	for _, fact := range facts {
		var next []Condition
		for _, one := range out {
			for _, v := range c[fact] {
				next = append(next, one.and(Condition{fact: {v}}))
			}
		}
		out = next
	}
	return out
}

// part is one comparison, of trials of its cells.
func (c Claim) part(a, b Condition, trials []Trial, s Summariser) Part {
	p := compared(c, a, b, trials, s)
	late, without := 0, 0
	for _, t := range trials {
		if !a.holds(t) && (b == nil || !b.holds(t)) {
			continue
		}
		if t.censored(c.Metric) {
			late++
		}
		if _, beside := t.Values[referenceGap]; beside && c.Metric == referenceRatio {
			if _, known := t.Values[referenceRatio]; !known {
				without++
			}
		}
	}
	if without > 0 {
		p.Test += fmt.Sprintf("; without %s whose R-TCP carried nothing", words.Count(without, "trial"))
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
	of := pairsOf(c.Metric, a, b, trials)
	p := Part{Claim: c, What: a.String(), N: len(of.pairs), Test: "t interval of the mean"}
	var as, bs, differences []float64
	for _, k := range of.pairs {
		as, bs, differences = append(as, k.a), append(bs, k.b), append(differences, k.a-k.b)
	}
	p.Estimate = s.of(differences)
	counted := "trials"
	if b != nil {
		p.What, p.Test, counted = p.What+" against "+b.String(), "paired t interval", "pairs"
		if c.Metric != referenceRatio && c.Metric != referenceGap { // a ratio itself, and what may be below 0
			p.Ratio = s.quotient(as, bs)
		}
	}
	switch c.Relation {
	case More:
		p.Verdict = []string{Contradicted, Undecided, Supported}[1+p.Estimate.Side()]
	case Less:
		p.Verdict = []string{Supported, Undecided, Contradicted}[1+p.Estimate.Side()]
	case Same:
		margin := 0.0
		for _, k := range of.pairs {
			margin += Margin * (math.Abs(k.a) + math.Abs(k.b)) / 2 / float64(len(of.pairs))
		}
		p.Verdict = p.Estimate.within(new(-margin), &margin)
	case Apart, Level:
		p.Verdict = p.Estimate.within(c.Low, c.High)
		if c.none() { // what cannot be below 0 has no interval about it
			p.Verdict, p.Test = noneOf(as), "each repetition"
		}
	case Ratio:
		p.Verdict, p.Test = Undecided, "Fieller interval of the ratio"
		if p.Ratio != nil {
			p.Verdict = within(p.Ratio.Low, p.Ratio.High, c.Low, c.High)
		}
	}
	if verdict := c.unvarying(as, bs); verdict != "" {
		p.Verdict, p.Test = verdict, "each repetition"
	}
	p.Test += fmt.Sprintf("%s, n = %d", c.bounds(), p.N)
	if of.each > 1 {
		p.Test += fmt.Sprintf(", each the mean of %d %s", of.each, counted)
	}
	if of.cells > 0 {
		p.Test += fmt.Sprintf("; without %s that a repetition lacks", words.Count(of.cells, "cell"))
	}
	if of.repetitions > 0 {
		p.Test += fmt.Sprintf("; without %s that had other cells", words.Count(of.repetitions, "repetition"))
	}
	if lacking := c.lacking(of); lacking != "" {
		p.Verdict = Undecided
		p.Test += "; not asked of " + lacking
	}
	return p
}

// noneOf decides whether there is none of something in any repetition.
func noneOf(values []float64) string {
	switch {
	case len(values) < 3:
		return Undecided
	case slices.Max(values) > 0:
		return Contradicted
	}
	return Supported
}

// unvarying decides on values of which there is no interval because they do not vary: two that are
// equal in each of three repetitions or more, and a level that all of these have. "" is for all else:
// of a difference that repeats and is not 0 nobody knows whether it is more than one step of a count.
func (c Claim) unvarying(as, bs []float64) string {
	if len(as) < 3 {
		return ""
	}
	equal := slices.Equal(as, bs)
	switch c.Relation {
	case Same:
		if equal {
			return Supported
		}
	case Apart:
		if equal {
			return within(new(0.0), new(0.0), c.Low, c.High)
		}
	case Ratio:
		if equal && slices.Max(as) > 0 { // of nothing there is no ratio
			return within(new(1.0), new(1.0), c.Low, c.High)
		}
	case Level:
		if slices.Min(as) == slices.Max(as) {
			return within(&as[0], &as[0], c.Low, c.High)
		}
	}
	return ""
}

// lacking says which values that a claim has a mean over are not in it or, where each of them is,
// which combinations of them are not.
func (c Claim) lacking(of pooled) string {
	if len(of.trials) == 0 {
		return ""
	}
	everywhere := " in every repetition" // "" where no repetition has one of what lacks
	in := func(one Condition) bool {
		if slices.ContainsFunc(of.trials, one.holds) {
			return true
		}
		if !slices.ContainsFunc(of.asked, one.holds) {
			everywhere = ""
		}
		return false
	}
	missing := Condition{}
	var several []string
	for _, fact := range slices.Sorted(maps.Keys(c.Where)) {
		if slices.Contains(c.Each, fact) {
			continue
		}
		if len(c.Where[fact]) > 1 {
			several = append(several, fact)
		}
		for _, v := range c.Where[fact] {
			if !in(Condition{fact: {v}}) {
				missing[fact] = append(missing[fact], v)
			}
		}
	}
	if len(missing) > 0 {
		return missing.String() + everywhere
	}
	all := slices.DeleteFunc(c.Where.each(several), func(one Condition) bool {
		return c.But != nil && one.within(c.But)
	})
	n := len(all)
	without := slices.DeleteFunc(all, in)
	if len(without) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d combinations%s, such as %s", len(without), n, everywhere, without[0])
}

// within reports whether a combination, of one value of each fact, is of another condition.
func (c Condition) within(other Condition) bool {
	for fact, values := range other {
		if len(c[fact]) != 1 || !slices.Contains(values, c[fact][0]) {
			return false
		}
	}
	return true
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
	if a.Half == nil && (a.Mean == 0 || b.Half == nil && d.Half == nil) {
		return out // it does not vary
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
	if min(slices.Min(as), slices.Min(bs)) >= 0 {
		*out.Low = max(*out.Low, 0) // of what cannot be below 0
	}
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

// pooled are the pairs of a part.
type pooled struct {
	pairs              []twin  // one a repetition
	each               int     // how many pairs of a repetition one is the mean of
	cells, repetitions int     // left out, so that all are means of the same
	trials             []Trial // one of each pair that is in a mean
	asked              []Trial // one of each pair, also of those that are in none
}

// pairsOf finds the pairs and makes one of those of a repetition, their mean. Trials that
// are alike count as their mean. Without b a pair is a trial. Of the cells those are in
// that every repetition has; where there are none, those of the largest group of repetitions
// with the same cells.
func pairsOf(metric string, a, b Condition, trials []Trial) (out pooled) {
	type sums struct {
		a, b, nA, nB float64
		of           Trial
		cell         string
	}
	apart := maps.Clone(a) // what tells the cells of a repetition apart
	if !endsMatter(trials) {
		apart["ends"] = nil
	}
	other := a // compared with nothing: every factor is open
	if b != nil {
		other = b
	}
	open := openFactors(trials, a.holds, other.holds)
	found := map[string]*sums{}
	for _, t := range trials {
		v, known := t.Values[metric]
		inA, inB := a.holds(t), b != nil && b.holds(t)
		if !known || inA == inB {
			continue
		}
		levels := t.levels(open)
		key := t.alike(a, b) + levels
		if found[key] == nil {
			found[key] = &sums{of: t, cell: t.cell(apart, b) + levels}
		}
		k := found[key]
		if inA {
			k.a, k.nA = k.a+v, k.nA+1
		} else {
			k.b, k.nB = k.b+v, k.nB+1
		}
	}
	of, in := map[int][]*sums{}, map[string]map[int]bool{}
	for _, key := range slices.Sorted(maps.Keys(found)) { // sums must come out the same each time
		k := found[key]
		if b == nil {
			k.nB = 1
		}
		if k.nA > 0 && k.nB > 0 {
			of[k.of.Repetition], out.asked = append(of[k.of.Repetition], k), append(out.asked, k.of)
			if in[k.cell] == nil {
				in[k.cell] = map[int]bool{}
			}
			in[k.cell][k.of.Repetition] = true
		}
	}
	whole := 0
	for _, repetitions := range in {
		if len(repetitions) == len(of) {
			whole++
		}
	}
	cells := map[int]string{} // of each repetition
	for repetition, all := range of {
		if whole > 0 {
			all = slices.DeleteFunc(all, func(k *sums) bool { return len(in[k.cell]) < len(of) })
			of[repetition], out.cells = all, len(in)-whole
		}
		var names []string
		for _, k := range all {
			names = append(names, k.cell)
		}
		slices.Sort(names)
		cells[repetition] = strings.Join(names, "\n")
	}
	most, common := 0, ""
	for _, repetition := range slices.Sorted(maps.Keys(of)) {
		n := 0
		for _, other := range cells {
			if other == cells[repetition] {
				n++
			}
		}
		if n > most || n == most && len(of[repetition]) > out.each {
			most, common, out.each = n, cells[repetition], len(of[repetition])
		}
	}
	for _, repetition := range slices.Sorted(maps.Keys(of)) {
		if cells[repetition] != common {
			out.repetitions++
			continue
		}
		mean, n := twin{}, float64(out.each)
		for _, k := range of[repetition] {
			mean.a, mean.b = mean.a+k.a/k.nA/n, mean.b+k.b/k.nB/n
			out.trials = append(out.trials, k.of)
		}
		out.pairs = append(out.pairs, mean)
	}
	return out
}

// openFactors are the factors of a campaign that are not what sides are compared by: one level of
// them has trials of two sides.
func openFactors(trials []Trial, sides ...func(Trial) bool) []string {
	type at struct{ factor, level string }
	last, open := map[at]int{}, map[string]bool{}
	for side, of := range sides {
		for _, t := range trials {
			if !of(t) {
				continue
			}
			for factor, level := range t.Factors {
				if other, met := last[at{factor, level}]; met && other != side {
					open[factor] = true
				}
				last[at{factor, level}] = side
			}
		}
	}
	return slices.Sorted(maps.Keys(open))
}

// levels are a trial's of some factors.
func (t Trial) levels(of []string) string {
	var out []string
	for _, factor := range of {
		out = append(out, factor+" "+t.Factors[factor])
	}
	return fmt.Sprint(out)
}

// alike names all that two trials of a pair have in common.
func (t Trial) alike(a, b Condition) string { return fmt.Sprint(t.Repetition, " ", t.cell(a, b)) }

// cell names what a trial has in common with its pair in each repetition.
func (t Trial) cell(a, b Condition) string {
	var out []string
	for _, fact := range slices.Sorted(maps.Keys(t.Facts)) {
		_, inA := a[fact]
		_, inB := b[fact]
		if !inA && !inB && !twoViews(fact, a, b) {
			out = append(out, fact+"="+t.Facts[fact])
		}
	}
	return fmt.Sprint(out)
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
