package report

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
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

const allSpeeds = "levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]"

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
		{"swapped, a fifth lost", swapped, nil, 0, 0.2},
		{"crossed, a fifth lost", swapped, []string{"\nfactors:\n", crossing, allSpeeds, "levels: [2.8, 5.6, 8.3]"}, 0,
			0.2},
	}
}

// campaign is the placebo's, with an order drawn from a seed.
func (p placebo) campaign(t *testing.T, seed uint64) *plan.Campaign {
	t.Helper()
	raw, err := os.ReadFile("../../campaigns/" + p.file)
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

// driven are the attempts of a campaign, one a trial, as gather leaves them but
// for their amounts.
func (p placebo) driven(t *testing.T, c *plan.Campaign, luck *rand.Rand) *data {
	t.Helper()
	r, err := c.RunPlan("placebo", make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	d := &data{info: archive.RunInfo{Plan: r}, campaign: c}
	at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	for i, trial := range r.Trials {
		a := d.attemptOf(trial)
		a.TrialKey, a.Verdict = wire.TrialKey{Trial: trial.Number, Attempt: 1}, &wire.Verdict{Outcome: verdict.Accepted}
		a.MB, a.Mbps = new(0.0), new(0.0)
		if luck.Float64() < p.lost {
			a.Verdict.Outcome = verdict.Rejected
		}
		if at = at.Add(time.Minute); p.pause > 0 && i%p.pause == p.pause-1 {
			at = at.Add(time.Hour)
		}
		a.began = at
		d.attempts = append(d.attempts, a)
	}
	d.rate = d.windowsDiffer()
	d.sessions()
	return d
}

// redraw gives every attempt an amount that only noise and its session make.
func redraw(d *data, noise *rand.Rand, sessionSD float64) {
	d.compared = nil
	of := map[string]float64{}
	for i := range d.attempts {
		a := &d.attempts[i]
		common, ok := of[a.Session]
		if !ok {
			common = sessionSD * noise.NormFloat64()
			of[a.Session] = common
		}
		v := 20 + common + noise.NormFloat64()
		*a.MB, *a.Mbps = v, v
	}
}

// supported are the terms of which a design supports an interval, reckoned from
// ranks by singular values, with nothing of the model's own arithmetic. A term
// is judged within sessions, where they leave it and a residual, or by how
// sessions differ, from two differences on that the terms do not tell.
func supported(d *data) map[string]bool {
	var columns, sessions [][]float64
	var terms []string
	results := d.results()
	for _, t := range termsOf(results).List {
		for _, c := range t.Columns {
			columns, terms = append(columns, c.Values), append(terms, t.Name)
		}
	}
	at := map[string]int{}
	for i, a := range results {
		g, ok := at[a.Session]
		if !ok {
			g = len(sessions)
			at[a.Session], sessions = g, append(sessions, make([]float64, len(results)))
		}
		sessions[g][i] = 1
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

// tally counts intervals by term.
type tally map[string]*struct{ given, held int }

func (c tally) add(term string, e answer) {
	if c[term] == nil {
		c[term] = &struct{ given, held int }{}
	}
	c[term].given++
	if *e.Low <= 0 && 0 <= *e.High {
		c[term].held++
	}
}

func (c tally) share(term string) float64 { return float64(c[term].held) / float64(c[term].given) }

// Of simulated campaigns in which nothing is to be found the report's intervals
// hold zero as often as they say, whatever sessions differ by, and none is
// missing that the design supports.
func TestPlaceboCoverage(t *testing.T) { placeboCoverage(t, 200) }

func TestSoakPlaceboCoverage(t *testing.T) {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skip("long: run by `make soak`; TestPlaceboCoverage is its short form")
	}
	placeboCoverage(t, 4000)
}

// sessionSDs are how much sessions differ, by the noise of a trial: not at all,
// less than trials do, and much more.
var sessionSDs = []float64{0, 0.5, 3}

// placeboCoverage draws so many campaigns of each kind and each spread of
// sessions; every tenth has an order of its own.
func placeboCoverage(t *testing.T, campaigns int) {
	n := float64(campaigns * len(sessionSDs))
	t.Logf("an effect's share is known to ± %.4f (binomial, 95 %%)", 1.96*math.Sqrt(0.95*0.05/n))
	t.Logf("%-28s %9s %9s %7s  %s", "design", "campaigns", "intervals", "hold 0", "by effect")
	for i, p := range placebos() {
		noise := rand.New(rand.NewPCG(20261123, uint64(i)))
		all, groups := tally{}, map[string]int{}
		for order := range campaigns / 10 {
			d := p.driven(t, p.campaign(t, uint64(1000*i+order)), noise)
			want := supported(d)
			for _, sd := range sessionSDs {
				for range 10 {
					redraw(d, noise, sd)
					c := compare(d)
					groups[c.Fit.Groups]++
					p.judge(t, c, want, all)
				}
			}
		}
		given := all["all"].given
		var by []string
		for _, term := range slices.Sorted(maps.Keys(all)) {
			if term != "all" {
				by = append(by, fmt.Sprintf("%s %.3f", term, all.share(term)))
			}
		}
		t.Logf("%-28s %9d %9d %7.4f  %s; sessions %v", p.name, campaigns*len(sessionSDs), given, all.share("all"),
			strings.Join(by, ", "), groups)
		if share := all.share("all"); share < 0.93 || share > 0.97 {
			t.Errorf("%s: of %d intervals %.4f hold 0, want 0.93 to 0.97", p.name, given, share)
		}
	}
}

// judge counts a campaign's intervals and looks for those that are missing, or
// that the design does not support.
func (p placebo) judge(t *testing.T, c comparison, want map[string]bool, all tally) {
	t.Helper()
	for _, r := range append(slices.Clone(c.Rows), c.Slopes...) {
		supported, told := want[r.Term]
		switch {
		case r.Term == design.Mean:
		case told && supported != (r.Low != nil):
			t.Fatalf("%s: %s has an interval: %v; the design supports one: %v (sessions %s)", p.name, r.Term,
				r.Low != nil, supported, c.Fit.Groups)
		case r.Low != nil:
			all.add("all", r)
			all.add(r.Term, r)
		}
	}
	for term, supported := range want {
		if supported && term != design.Block && c.row(term) == nil {
			t.Fatalf("%s: nothing is said of %s, which the design supports", p.name, term)
		}
	}
}
