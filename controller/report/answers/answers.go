// Package answers tells what a run says to the claims of a paper.
package answers

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// View is what a run says to a paper's claims.
type View struct {
	Counts                       string
	Claims, NotAsked, Untestable []Answer
}

// Answer is an answer. Of its parts those that the run does not ask stand in Unasked.
// Where it asks Several, each of Parts has a verdict of its own.
type Answer struct {
	papers.Answer
	Parts                  []Part
	Unasked                []string
	Several, DirectionOnly bool
}

// partsMost is how many comparisons of a claim are told one by one.
const partsMost = 6

// Part is a comparison, or several that are told together, in words.
type Part struct{ What, Estimate, Ratio, Test, Verdict string }

// Class is the verdict as a word for the style sheet.
func (c Answer) Class() string { return strings.ReplaceAll(c.Verdict, " ", "-") }

// Of answers claims by trials; of gives the interval of one of several comparisons.
func Of(claims []papers.Claim, trials []papers.Trial, of func(parts int) papers.Summariser) (v View) {
	count := map[string]int{}
	answers := papers.Answers(claims, trials, of)
	for _, a := range answers {
		count[a.Verdict]++
		answer := Answer{Answer: a}
		var asked []papers.Part
		for _, p := range a.Parts {
			if p.Verdict == papers.NotAsked {
				answer.Unasked = append(answer.Unasked, p.What)
			} else {
				asked, answer.Parts = append(asked, p), append(answer.Parts, viewPart(p))
			}
		}
		answer.Several = len(asked) > 1
		if len(asked) > partsMost {
			answer.Parts = viewShort(asked)
		}
		if n := len(answer.Unasked); n > partsMost {
			answer.Unasked = []string{fmt.Sprintf("%d of %d comparisons", n, len(a.Parts))}
		}
		answer.DirectionOnly = slices.ContainsFunc(asked, papers.Part.OfSide) &&
			!slices.ContainsFunc(asked, papers.Part.OfSize)
		switch a.Verdict {
		case papers.NotAsked:
			v.NotAsked = append(v.NotAsked, answer)
		case papers.Untestable:
			v.Untestable = append(v.Untestable, answer)
		default:
			v.Claims = append(v.Claims, answer)
		}
	}
	if len(answers) > 0 {
		v.Counts = fmt.Sprintf("Of %s that can be tested this run supports %d and contradicts %d; %d cannot be "+
			"decided by it, and %d it does not ask.", words.Count(len(answers)-len(v.Untestable), "claim"),
			count[papers.Supported], count[papers.Contradicted], count[papers.Undecided], count[papers.NotAsked])
	}
	return v
}

func viewPart(p papers.Part) Part {
	unit := unitOfMetric(p.Claim.Metric)
	out := Part{What: p.What, Verdict: p.Verdict, Test: p.Test}
	if p.N == 0 { // of times of which none is known
		return out
	}
	if p.Claim.Relation == papers.Level {
		out.Estimate = Interval(p.Estimate, unit)
		return out
	}
	out.Estimate = "difference " + strings.TrimSpace(signed(p.Estimate.Mean)+halfText(p.Estimate)+" "+
		unitOfDifference(unit))
	switch r := p.Ratio; {
	case r == nil:
	case r.Low == nil:
		out.Ratio = fmt.Sprintf("ratio %s, without an interval", nearOne(r.Mean))
	default:
		out.Ratio = fmt.Sprintf("ratio %s (%s to %s)", nearOne(r.Mean), nearOne(*r.Low), nearOne(*r.High))
	}
	return out
}

// viewShort tells many parts together, those of one metric in one line: how many are
// decided how, and from where to where they lie.
func viewShort(parts []papers.Part) (out []Part) {
	type kind struct {
		metric string
		level  bool
	}
	var kinds []kind
	of := map[kind][]papers.Part{}
	for _, p := range parts {
		k := kind{p.Claim.Metric, p.Claim.Relation == papers.Level}
		if of[k] == nil {
			kinds = append(kinds, k)
		}
		of[k] = append(of[k], p)
	}
	for _, k := range kinds {
		v := Part{What: words.Count(len(of[k]), "comparison")}
		if len(kinds) > 1 {
			v.What = papers.Words(k.metric) + ", " + v.What
		}
		count, remarked := map[string]int{}, map[string]int{}
		var means []float64
		var tests, remarks []string
		for _, p := range of[k] {
			count[p.Verdict]++
			if p.N > 0 {
				means = append(means, p.Estimate.Mean)
			}
			test, remark, remarkable := strings.Cut(p.Test, "; ")
			if !slices.Contains(tests, test) {
				tests = append(tests, test)
			}
			if remarkable && !slices.Contains(remarks, remark) {
				remarks = append(remarks, remark)
			}
			remarked[remark]++
		}
		v.Test = strings.Join(tests, " or ")
		for _, remark := range remarks {
			v.Test += fmt.Sprintf("; in %d of them: %s", remarked[remark], remark)
		}
		unit := unitOfMetric(k.metric)
		switch {
		case len(means) == 0:
		case k.level:
			v.Estimate = strings.TrimSpace(fmt.Sprintf("from %s to %s %s", words.Digits(slices.Min(means)),
				words.Digits(slices.Max(means)), unit))
		default:
			v.Estimate = strings.TrimSpace(fmt.Sprintf("differences from %s to %s %s", signed(slices.Min(means)),
				signed(slices.Max(means)), unitOfDifference(unit)))
		}
		v.Verdict = fmt.Sprintf("%d supported, %d contradicted, %d cannot be decided", count[papers.Supported],
			count[papers.Contradicted], count[papers.Undecided])
		out = append(out, v)
	}
	return out
}

func unitOfDifference(unit string) string {
	if unit == "%" {
		return "percentage points"
	}
	return unit
}

func unitOfMetric(name string) string {
	for _, m := range metrics.PaperMetrics() {
		if m = InPapersUnit(m); m.Name == name {
			return strings.TrimSuffix(m.Unit, "1")
		}
	}
	return ""
}

// InPapersUnit tells throughput as the papers do.
func InPapersUnit(m metrics.PaperMetric) metrics.PaperMetric {
	if m.Name == metrics.ThroughputBps {
		m.Name, m.Unit = papers.ThroughputKbitS, "kbit/s"
	}
	return m
}

// Interval prints a mean with half of its interval.
func Interval(v papers.Interval, unit string) string {
	if v.N == 0 {
		return "—"
	}
	return strings.TrimSpace(words.Digits(v.Mean) + halfText(v) + " " + unit)
}

func halfText(v papers.Interval) string {
	if v.Half == nil {
		return ""
	}
	return " ± " + words.Digits(*v.Half)
}

func signed(v float64) string {
	if v < 0 {
		return words.Digits(v)
	}
	return "+" + words.Digits(v)
}

// nearOne prints a ratio, and what it is off 1 by where three digits would not.
func nearOne(v float64) string {
	if math.Abs(v-1) < 0.01 {
		return strconv.FormatFloat(math.Round(v*1e4)/1e4, 'g', -1, 64)
	}
	return words.Digits(v)
}
