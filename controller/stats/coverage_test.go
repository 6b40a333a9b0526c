package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A population makes campaigns of known truth: blocks of a factor within sessions,
// speeds, and a factor that changes with the session only.
type population struct {
	name              string
	sessions, blocks  int     // blocks of each session
	perBlock          int     // trials of each block
	lost              float64 // share of the trials that were never accepted
	sessionSD         float64
	section, slope    float64 // 0: nothing to find
	mostUnder         float64 // by how much the coverage of what differs between sessions may stay below
	noBetweenInterval bool
}

func (w population) draw(noise *rand.Rand) Model {
	var section, speed, unit []float64
	var blocks [][]float64
	m := Model{}
	for s := range w.sessions {
		common := w.sessionSD * noise.NormFloat64()
		for range w.blocks {
			block := len(blocks)
			blocks = append(blocks, nil)
			for i := range w.perBlock {
				if noise.Float64() < w.lost {
					continue
				}
				section = append(section, float64(i%2)-0.5)
				speed = append(speed, float64(i/2%3)-1)
				unit = append(unit, float64(s%2)-0.5)
				blocks[block] = append(blocks[block], float64(len(m.Y)))
				m.Groups = append(m.Groups, fmt.Sprint(s))
				n := len(m.Y)
				m.Y = append(m.Y, 20+w.section*section[n]+w.slope*speed[n]+common+noise.NormFloat64())
			}
		}
	}
	ones := make([]float64, len(m.Y))
	for i := range ones {
		ones[i] = 1
	}
	m.Terms = []Term{
		{"mean", []Column{{"", ones}}}, {"section", []Column{{"", section}}}, {"speed", []Column{{"", speed}}},
		{"unit", []Column{{"", unit}}},
	}
	return m
}

func populations() []population {
	return []population{
		{name: "one session, nothing to find", sessions: 1, blocks: 3, perBlock: 6},
		{name: "one session, few passes, unbalanced", sessions: 1, blocks: 2, perBlock: 6, lost: 0.2, section: 1,
			slope: -0.5},
		{name: "three sessions: too few for a spread", sessions: 3, blocks: 2, perBlock: 6, sessionSD: 2, section: 1,
			noBetweenInterval: true},
		{name: "eight sessions, nothing to find", sessions: 8, blocks: 1, perBlock: 6, sessionSD: 1, mostUnder: 0.01},
		{name: "eight sessions that do not differ", sessions: 8, blocks: 1, perBlock: 6, section: 1, slope: -0.5,
			mostUnder: 0.01},
		{name: "eight sessions, unbalanced", sessions: 8, blocks: 1, perBlock: 6, lost: 0.3, sessionSD: 2, section: 1,
			slope: -0.5, mostUnder: 0.02},
		{name: "twenty sessions, unbalanced", sessions: 20, blocks: 1, perBlock: 6, lost: 0.3, sessionSD: 0.5,
			mostUnder: 0.01},
	}
}

// Intervals hold the truth as often as they say, what differs only from session
// to session included, where sessions are enough for an interval at all.
func TestCoverage(t *testing.T) { coverage(t, 800) }

func TestSoakCoverage(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "long; TestCoverage is its short form")
	coverage(t, 40_000)
}

func coverage(t *testing.T, runs int) {
	t.Helper()
	const seed = 20261122
	least := Confidence - 4*math.Sqrt(Confidence*(1-Confidence)/float64(runs))
	for i, w := range populations() {
		noise := rand.New(rand.NewPCG(seed, uint64(i)))
		truth := map[string]float64{"section": w.section, "speed": w.slope, "unit": 0}
		held, asked, familywise := map[string]float64{}, map[string]float64{}, 0.0
		for range runs {
			f, err := w.draw(noise).Fit()
			if err != nil {
				continue // everything of a campaign may be lost
			}
			false1 := w.count(&f, truth, held, asked)
			familywise += false1 / float64(runs)
		}
		for _, term := range []string{"section", "speed", "unit"} {
			share := held[term] / max(1, asked[term])
			t.Logf("%s: %s is covered in %.4f of %.0f (seed %d)", w.name, term, share, asked[term], seed)
			switch {
			case term == "unit" && w.noBetweenInterval:
				if asked[term] > 0 {
					t.Errorf("%s: %s has an interval, from three sessions", w.name, term)
				}
			case term == "unit" && w.sessions == 1:
			case asked[term] < float64(runs)*0.9:
				t.Errorf("%s: %s has an interval in %.0f of %d campaigns", w.name, term, asked[term], runs)
			case term == "unit" && share < least-w.mostUnder, term != "unit" && share < least:
				t.Errorf("%s: %s is covered in %.4f, want %.4f", w.name, term, share, least)
			case share > Confidence+(1-Confidence)*0.95:
				t.Errorf("%s: %s is covered in %.4f: the intervals say nothing", w.name, term, share)
			}
		}
		// Among the terms of which nothing is true, Holm keeps even one false finding rare.
		t.Logf("%s: a false finding in %.4f", w.name, familywise)
		if familywise > 1-least+w.mostUnder {
			t.Errorf("%s: a false finding in %.4f of the campaigns", w.name, familywise)
		}
	}
}

// count adds up which intervals hold the truth, and tells (as 1) whether there
// is a false finding after Holm's correction.
func (w population) count(f *Fit, truth, held, asked map[string]float64) float64 {
	var p []float64
	var null []bool
	for _, e := range f.Estimates {
		want, question := truth[e.Term]
		if !question || e.Low == nil {
			continue
		}
		asked[e.Term]++
		if *e.Low <= want && want <= *e.High {
			held[e.Term]++
		}
		p, null = append(p, *e.P), append(null, want == 0)
	}
	for i, adjusted := range Holm(p) {
		if null[i] && adjusted < 1-Confidence {
			return 1
		}
	}
	return 0
}
