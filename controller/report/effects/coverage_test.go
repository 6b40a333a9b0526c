package effects

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A placebo is a shipped campaign changed into a design of its kind, in which
// nothing is to be found.
type placebo struct {
	name    string
	file    string
	changes []string // pairs: what is replaced by what
	// pause is after how many trials people go away: then sessions are more than
	// the units make.
	pause int
	lost  float64 // share of the trials that were never accepted
}

const crossing = `
factors:
  car_unit:
    levels:
      laptop-1: {car: alpha, roadside: bravo}
      laptop-2: {car: bravo, roadside: alpha}
`

const (
	allSpeeds   = "levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]"
	lastSection = "      B: {sender: roadside, receiver: car}\n"
)

func placebos() []placebo {
	const swapped, whole = "velocity.yaml", "velocity-powered.yaml"
	return []placebo{
		{"crossed, trial by trial", swapped, []string{"\nfactors:\n", crossing, allSpeeds, "levels: [2.8, 8.3]"}, 0, 0},
		{"crossed, one speed", swapped, []string{"\nfactors:\n", crossing, allSpeeds, "levels: [5.6]", "repetitions: 2",
			"repetitions: 4"}, 0, 0},
		{"swapped", swapped, nil, 0, 0},
		{"swapped, over days", swapped, []string{"repetitions: 2", "repetitions: 6"}, 9, 0},
		{"whole-plot", whole, nil, 0, 0},
		{"whole-plot, two repetitions", whole, []string{"repetitions: 10", "repetitions: 2"}, 0, 0},
		{"one speed", swapped, []string{allSpeeds, "levels: [5.6]", "repetitions: 2", "repetitions: 6"}, 0, 0},
		{"two repetitions", swapped, []string{allSpeeds, "levels: [5.6, 8.3, 11.1]"}, 0, 0},
		{"two repetitions, over days", swapped, []string{allSpeeds, "levels: [5.6, 8.3, 11.1]"}, 4, 0},
		{"three repetitions, a day each", swapped,
			[]string{allSpeeds, "levels: [5.6, 8.3, 11.1]", "repetitions: 2", "repetitions: 3"}, 6, 0},
		{"three sections, three repetitions", swapped,
			[]string{allSpeeds, "levels: [2.8, 8.3]", "repetitions: 2", "repetitions: 3",
				lastSection, lastSection + "      C: {sender: car, receiver: roadside}\n"}, 0, 0},
		{"swapped, a fifth lost", swapped, nil, 0, 0.2},
		{"crossed, a fifth lost", swapped, []string{"\nfactors:\n", crossing, allSpeeds, "levels: [2.8, 5.6, 8.3]"}, 0,
			0.2},
	}
}

// campaign is the placebo's, with an order drawn from a seed.
func (p placebo) campaign(t *testing.T, seed uint64) *plan.Campaign {
	t.Helper()
	raw, err := os.ReadFile("../../../campaigns/" + p.file)
	if err != nil {
		t.Fatal(err)
	}
	was := "seed: 20261120"
	if p.file == "velocity-powered.yaml" {
		was = "seed: 20261121"
	}
	text := string(raw)
	changes := append([]string{was, fmt.Sprint("seed: ", seed)}, p.changes...)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("%s has no %q", p.file, changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	c, err := plan.Parse(p.file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// driven are the results of a campaign in which every trial had one attempt, but
// for their responses.
func (p placebo) driven(t *testing.T, c *plan.Campaign, luck *rand.Rand) Run {
	t.Helper()
	r, err := c.RunPlan("placebo", make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	var passes []design.Pass
	var lost []bool
	for _, trial := range r.Trials {
		if gone := luck.Float64() < p.lost; trial.Pass == "" {
			passes, lost = append(passes, design.Of(r.Nodes, trial)), append(lost, gone)
		}
	}
	run := Run{Unit: "MB", Level: stats.Confidence}
	for i, s := range design.Sessions(passes, func(i int) bool { return p.pause > 0 && i%p.pause == 0 }) {
		if passes[i].Session = s; !lost[i] {
			run.Results = append(run.Results, Result{Pass: passes[i]})
		}
	}
	return run
}

// trueMean is what every campaign's mean is about.
const trueMean = 20

// redraw gives every result a response that only noise and its session make, and
// returns what each session adds.
func redraw(r Run, noise *rand.Rand, sessionSD float64) map[string]float64 {
	of := map[string]float64{}
	for i := range r.Results {
		one := &r.Results[i]
		common, ok := of[one.Session]
		if !ok {
			common = sessionSD * noise.NormFloat64()
			of[one.Session] = common
		}
		one.Response = trueMean + common + noise.NormFloat64()
	}
	return of
}

// supported are the terms of which a design supports an interval, reckoned from
// ranks by singular values, with nothing of the model's own arithmetic. A term
// is judged within sessions, where they leave it and a residual, or by how
// sessions differ, from two differences on that the terms do not tell. Of one
// session all is within it, and the mean is its own.
func supported(r Run) map[string]bool {
	var columns, sessions [][]float64
	var terms []string
	results := r.Results
	for _, t := range Compare(r).Terms.List {
		for _, c := range t.Columns {
			columns, terms = append(columns, c.Values), append(terms, t.Name)
		}
	}
	at := map[string]int{}
	for i, one := range results {
		g, ok := at[one.Session]
		if !ok {
			g = len(sessions)
			at[one.Session], sessions = g, append(sessions, make([]float64, len(results)))
		}
		sessions[g][i] = 1
	}
	if len(sessions) == 1 {
		sessions = nil
	}
	both := slices.Concat(columns, sessions)
	all, within := len(results)-rankOf(columns), len(results)-rankOf(both)
	out := map[string]bool{}
	for i, term := range terms {
		told := rankOf(slices.Delete(slices.Clone(columns), i, i+1)) < rankOf(columns)
		inside := rankOf(slices.Delete(slices.Clone(both), i, i+1)) < rankOf(both)
		if told {
			out[term] = inside && within > 0 || all-within >= 2
		}
	}
	return out
}

// rankOf is a matrix's rank by its singular values.
func rankOf(columns [][]float64) int {
	m := mat.NewDense(len(columns[0]), len(columns), nil)
	for j, c := range columns {
		m.SetCol(j, c)
	}
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDNone) {
		return -1
	}
	values := svd.Values(nil)
	return len(slices.DeleteFunc(values, func(v float64) bool { return v <= 1e-9*values[0] }))
}

// cell is the intervals of one term at one spread of sessions.
type cell struct {
	term      string
	sessionSD float64
}

// share counts intervals, those that hold the truth, and the campaigns that they
// are from.
type share struct{ given, held, campaigns int }

func (s share) of() float64 { return float64(s.held) / float64(s.given) }

// chance is how often intervals that hold the truth as often as they say are
// found to hold it too seldom, by luck: some 400 shares are looked at.
const chance = 1e-4

// least is the share of intervals that have to hold the truth: as many as do of
// so many campaigns but for that chance (binomial). Several intervals of one
// campaign lean on one residual, and count as one.
func (s share) least() float64 {
	b := distuv.Binomial{N: float64(s.campaigns), P: stats.Confidence}
	k := math.Floor(b.N * b.P)
	for k > 0 && b.CDF(k-1) > chance {
		k--
	}
	return k / b.N
}

// tally counts the intervals of one kind of campaign.
type tally map[cell]*share

func (c tally) add(at cell, e answer, truth float64) {
	if c[at] == nil {
		c[at] = &share{}
	}
	c[at].given++
	if *e.Low <= truth && truth <= *e.High {
		c[at].held++
	}
}

// sum adds up the cells that are asked for.
func (c tally) sum(in func(cell) bool) (out share) {
	for at, s := range c {
		if in(at) {
			out.given, out.held, out.campaigns = out.given+s.given, out.held+s.held, max(out.campaigns, s.campaigns)
		}
	}
	return out
}

// Of simulated campaigns in which nothing is to be found the intervals
// hold the truth as often as they say, whatever sessions differ by, and none is
// missing that the design supports.
func TestPlaceboCoverage(t *testing.T) { placeboCoverage(t, 200) }

func TestSoakPlaceboCoverage(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "long; TestPlaceboCoverage is its short form")
	placeboCoverage(t, 4000)
}

// sessionSDs are how much sessions differ, by the noise of a trial: not at all,
// less than trials do, and much more.
var sessionSDs = []float64{0, 0.5, 3}

// placeboCoverage draws so many campaigns of each kind and each spread of
// sessions; every tenth has an order of its own.
func placeboCoverage(t *testing.T, campaigns int) {
	t.Logf("share of intervals that hold the truth (the least that it has to be) by what sessions differ: %v",
		sessionSDs)
	for i, p := range placebos() {
		noise := rand.New(rand.NewPCG(20261123, uint64(i)))
		all, groups := tally{}, map[string]int{}
		for order := range campaigns / 10 {
			r := p.driven(t, p.campaign(t, uint64(1000*i+order)), noise)
			want := supported(r)
			for _, sd := range sessionSDs {
				for range 10 {
					sessions := redraw(r, noise, sd)
					c := Compare(r)
					groups[c.Fit.Groups]++
					p.judge(t, c, want)
					all.count(c, sd, sessions)
				}
			}
		}
		all.tell(t, p.name, groups)
	}
}

// count counts a campaign's intervals. What is asked is truly 0, and the mean is
// what it is about; where there is one session, that of this session.
func (c tally) count(by Comparison, sessionSD float64, sessions map[string]float64) {
	mean := float64(trueMean)
	if by.Fit.Groups == stats.GroupsOne {
		mean += sessions["1"]
	}
	told := map[cell]bool{}
	for _, r := range append(slices.Clone(by.Rows), by.Slopes...) {
		truth := 0.0
		if r.Term == design.Mean {
			truth = mean
		}
		if r.Low != nil {
			told[cell{r.Term, sessionSD}] = true
			c.add(cell{r.Term, sessionSD}, r, truth)
		}
	}
	for at := range told {
		c[at].campaigns++
	}
}

func (c tally) terms() []string {
	of := map[string]bool{}
	for at := range c {
		of[at.term] = true
	}
	return slices.Sorted(maps.Keys(of))
}

// tell prints the table of one kind of campaign: a line for each term, and one
// for all of them, with a share for each spread of sessions and for all spreads.
// None may be below its least. All intervals together hold the truth in 93 to
// 97 %.
func (c tally) tell(t *testing.T, name string, groups map[string]int) {
	t.Helper()
	t.Logf("%s: sessions %v", name, groups)
	const all = "all terms"
	for _, term := range append(c.terms(), all) {
		in := func(at cell) bool { return term == all || at.term == term }
		line := fmt.Sprintf("    %-22s", term)
		whole := c.sum(in)
		whole.campaigns = 0
		for _, sd := range sessionSDs {
			s := c.sum(func(at cell) bool { return in(at) && at.sessionSD == sd })
			whole.campaigns += s.campaigns
			line += s.tell(t, fmt.Sprintf("%s: %s, sessions %g", name, term, sd))
		}
		t.Log(line + "  together" + whole.tell(t, name+": "+term))
		if term == all && (whole.of() < 0.93 || whole.of() > 0.97) {
			t.Errorf("%s: of %d intervals %.4f hold the truth, want 0.93 to 0.97", name, whole.given, whole.of())
		}
	}
}

// tell prints a share with the least that it has to be, and holds it to that.
func (s share) tell(t *testing.T, of string) string {
	t.Helper()
	if s.given == 0 {
		return "  none"
	}
	if s.of() < s.least() {
		t.Errorf("%s: of %d intervals %.4f hold the truth, want %.4f", of, s.given, s.of(), s.least())
	}
	return fmt.Sprintf("  %.4f (%.3f)", s.of(), s.least())
}

// judge looks for a campaign's intervals that are missing, or that the design
// does not support.
func (p placebo) judge(t *testing.T, c Comparison, want map[string]bool) {
	t.Helper()
	for _, r := range append(slices.Clone(c.Rows), c.Slopes...) {
		if supported, told := want[r.Term]; told && supported != (r.Low != nil) {
			t.Fatalf("%s: %s has an interval: %v; the design supports one: %v (sessions %s)", p.name, r.Term,
				r.Low != nil, supported, c.Fit.Groups)
		}
	}
	for term, supported := range want {
		if supported && term != design.Block && c.row(term) == nil {
			t.Fatalf("%s: nothing is said of %s, which the design supports", p.name, term)
		}
	}
}
