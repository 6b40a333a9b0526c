package papers

import (
	"slices"
	"strings"
	"testing"
)

// inTwoUnits are trials of P1 with either laptop in the car: the second carries half of what the
// first does, and it does not matter which end moves. Without are those that were given up.
func inTwoUnits(without func(repetition int, unit, moving string) bool) (out []Trial) {
	for rep := 1; rep <= 3; rep++ {
		for unit, v := range map[string]float64{"laptop-1": 100, "laptop-2": 50} {
			for section, moving := range map[string]string{"A": "client", "B": "server"} {
				if without(rep, unit, moving) {
					continue
				}
				ends := "alpha to bravo"
				if (unit == "laptop-1") != (moving == "client") {
					ends = "bravo to alpha"
				}
				out = append(out, Trial{Repetition: rep, Values: map[string]float64{"m": v},
					Facts:   map[string]string{"moving": moving, "ends": ends},
					Factors: map[string]string{"car_unit": unit, "section": section}})
			}
		}
	}
	return out
}

// Two trials of a pair are of one level of every factor that the part does not compare, also of one
// that no paper varies.
func TestPairsAreOfOneLevelOfEveryFactor(t *testing.T) {
	all := inTwoUnits(func(rep int, unit, moving string) bool {
		return rep == 2 && unit == "laptop-2" && moving == "server"
	})
	claim := Claim{Metric: "m", A: Condition{"moving": {"client"}}, B: Condition{"moving": {"server"}}, Relation: Same}
	got := Decide(claim, all, tInterval).Parts[0]
	if got.N != 3 || got.Estimate.Mean != 0 || got.Verdict != Supported ||
		!strings.HasSuffix(got.Test, "n = 3; without 1 cell that a repetition lacks") {
		t.Errorf("%+v", got)
	}
	claim.Relation, claim.B, claim.Low, claim.High = Level, nil, new(90.0), new(110.0)
	all = inTwoUnits(func(rep int, unit, _ string) bool { return rep == 2 && unit == "laptop-2" })
	if got = Decide(claim, all, tInterval).Parts[0]; got.Estimate.Mean != 100 || got.Verdict != Supported ||
		!strings.HasSuffix(got.Test, "; without 1 cell that a repetition lacks") {
		t.Errorf("%+v", got)
	}
}

// A factor that no paper varies is a column of the cells: trials of different cells are no sample of one.
func TestCellsAreOfOneLevelOfEveryFactor(t *testing.T) {
	facts, cells := Cells(inTwoUnits(func(int, string, string) bool { return false }), []string{"m"}, interval)
	if !slices.Equal(facts, []string{"moving", "car_unit"}) || len(cells) != 4 {
		t.Fatalf("%v: %+v", facts, cells)
	}
	for _, c := range cells {
		want := map[string]float64{"laptop-1": 100, "laptop-2": 50}[c.Facts[1]]
		if k := c.Values[0]; c.Trials != 3 || k.Mean != want || k.Half == nil {
			t.Errorf("%v: %+v", c.Facts, k)
		}
	}
}

// A cell of a published table whose trials differ in a factor has a mean without an interval, and the
// table says over what.
func TestATablesMeansOverUnlikeTrialsHaveNoInterval(t *testing.T) {
	p := read(t)
	table := p.Tables("chain", like(p, "chain", 1, 3), interval)[0]
	if k := table.Rows[0].Cells[0].Ours; k.Half == nil || table.Pooled != "" {
		t.Fatalf("%+v, %q", k, table.Pooled)
	}
	var all []Trial
	for i, payload := range []string{"512", "1460"} {
		for _, one := range like(p, "chain", float64(i+1), 3) {
			one.Factors = map[string]string{"payload": payload}
			all = append(all, one)
		}
	}
	table = p.Tables("chain", all, interval)[0]
	if k := table.Rows[0].Cells[0].Ours; k.N != 6 || k.Half != nil || table.Pooled !=
		"The means are over all levels of payload, and have no interval: trials of different cells are no sample of "+
			"one." {
		t.Errorf("%+v, %q", k, table.Pooled)
	}
}

// A mean over the values of several facts is of every combination of them: of one that is not in
// it, it says so, and decides nothing.
func TestAMeanIsOfEveryCombination(t *testing.T) {
	with := func(cells ...string) (all []Trial) {
		for rep := 1; rep <= 3; rep++ {
			for _, cell := range cells {
				speed, nodes, _ := strings.Cut(cell, " ")
				for variant, v := range map[string]float64{"vegas": 9, "reno": 2} {
					all = append(all, Trial{Repetition: rep, Values: map[string]float64{"m": v + float64(rep)},
						Facts: map[string]string{"variant": variant, "speed_max_mps": speed, "nodes": nodes}})
				}
			}
		}
		return all
	}
	for _, k := range []struct {
		where, verdict, lacks string
		cells                 []string
	}{
		{"speed_max_mps=1|5;nodes=50|100", Supported, "", []string{"1 50", "1 100", "5 50", "5 100"}},
		{"speed_max_mps=1|5;nodes=50|100", Undecided, "; not asked of 2 of 4 combinations, such as 50 nodes, 5 m/s",
			[]string{"1 50", "5 100"}},
		{"speed_max_mps=1|5;nodes=50|100", Undecided, "; not asked of 1 of 4 combinations, such as 100 nodes, 5 m/s",
			[]string{"1 50", "1 100", "5 50"}},
		{"speed_max_mps=1|5;nodes=50|100", Undecided, "; not asked of 5 m/s", []string{"1 50", "1 100"}},
		{"speed_max_mps=1|5;nodes=50|100 but speed_max_mps=5;nodes=100", Supported, "",
			[]string{"1 50", "1 100", "5 50"}},
		{"speed_max_mps=1|5;nodes=50|100 but speed_max_mps=5;nodes=100", Undecided,
			"; not asked of 1 of 3 combinations, such as 50 nodes, 1 m/s", []string{"1 100", "5 50", "5 100"}},
	} {
		where, but, _ := strings.Cut(k.where, " but ")
		claim := Claim{Metric: "m", A: Condition{"variant": {"vegas"}}, B: Condition{"variant": {"reno"}},
			Relation: More}
		var err error
		if claim.Where, _, err = readCondition(where); err != nil {
			t.Fatal(err)
		}
		if but != "" {
			if claim.But, _, err = readCondition(but); err != nil {
				t.Fatal(err)
			}
		}
		got := Decide(claim, with(k.cells...), interval)
		if _, lacks, _ := strings.Cut(got.Parts[0].Test, "pairs"); got.Verdict != k.verdict || lacks != k.lacks {
			t.Errorf("%q of %v: %s, %s", k.where, k.cells, got.Verdict, got.Parts[0].Test)
		}
	}
	// A value that a repetition lacks is not told as one that nobody asked.
	part := with("1 50", "5 50")
	part = slices.DeleteFunc(part, func(t Trial) bool { return t.Repetition == 2 && t.Facts["speed_max_mps"] == "5" })
	speeds, _, _ := readCondition("speed_max_mps=1|5")
	left := Decide(Claim{Metric: "m", Where: speeds, A: Condition{"variant": {"vegas"}},
		B: Condition{"variant": {"reno"}}, Relation: More}, part, interval)
	if left.Verdict != Undecided || !strings.HasSuffix(left.Parts[0].Test, "; without 1 cell that a repetition lacks; "+
		"not asked of 5 m/s in every repetition") {
		t.Errorf("%+v", left)
	}
	// Nor is a combination: without it the mean is not of them all, even where each value is still in it.
	where, _, _ := readCondition("speed_max_mps=1|5;nodes=50|100")
	for _, k := range []struct {
		lost map[int]string // by repetition
		ends string
	}{
		{map[int]string{2: "5 100"}, "; without 1 cell that a repetition lacks; not asked of 1 of 4 " +
			"combinations in every repetition, such as 100 nodes, 5 m/s"},
		{map[int]string{1: "1 50", 2: "5 100"}, "; without 2 cells that a repetition lacks; not asked of 2 of 4 " +
			"combinations in every repetition, such as 50 nodes, 1 m/s"},
	} {
		all := slices.DeleteFunc(with("1 50", "1 100", "5 50", "5 100"), func(t Trial) bool {
			return t.Facts["speed_max_mps"]+" "+t.Facts["nodes"] == k.lost[t.Repetition]
		})
		got := Decide(Claim{Metric: "m", Where: where, A: Condition{"variant": {"vegas"}},
			B: Condition{"variant": {"reno"}}, Relation: More}, all, interval)
		if got.Verdict != Undecided || !strings.HasSuffix(got.Parts[0].Test, k.ends) {
			t.Errorf("without %v: %s, %s", k.lost, got.Verdict, got.Parts[0].Test)
		}
	}
}

// Where no cell is in every repetition, only repetitions of the same cells are a sample.
func TestRepetitionsOfOtherCellsAreNoSample(t *testing.T) {
	with := func(repetitions ...string) (all []Trial) {
		for i, cells := range repetitions {
			for _, mobility := range strings.Fields(cells) {
				for variant, v := range map[string]float64{"vegas": 9, "reno": 2} {
					all = append(all, Trial{Repetition: i + 1, Values: map[string]float64{"m": v},
						Facts: map[string]string{"variant": variant, "mobility": mobility}})
				}
			}
		}
		return all
	}
	for want, repetitions := range map[string][]string{
		"n = 1, each the mean of 2 pairs": {"low mid", "mid high", "low high"},
		"n = 3":                           {"low", "low", "mid high", "low", "mid high"},
		"n = 2, each the mean of 2 pairs": {"low", "mid high", "low", "mid high"},
	} {
		want = "paired t interval, " + want + "; without 2 repetitions that had other cells"
		got := Decide(Claim{Metric: "m", A: Condition{"variant": {"vegas"}}, B: Condition{"variant": {"reno"}},
			Relation: More}, with(repetitions...), interval).Parts[0]
		if got.Test != want || (got.N == 3) != (got.Verdict == Supported) {
			t.Errorf("%v: %s, %s; want %s", repetitions, got.Verdict, got.Test, want)
		}
	}
}

// What is not known to have carried anything is not what carried the least.
func TestTheLeastIsOfWhatIsKnown(t *testing.T) {
	trial := func(repetition int, tcp string, carried ...float64) Trial {
		out := Trial{Repetition: repetition, Facts: map[string]string{"tcp": tcp, "variant": "reno", "routing": "dsr",
			"tcp_flows": "1", "cbr_kbit_s": "50"}, Values: map[string]float64{}}
		if len(carried) > 0 {
			out.Values[ThroughputKbitS] = carried[0]
		}
		return out
	}
	all := []Trial{trial(1, plainReno), trial(1, fixedRTO, 9), trial(2, plainReno, 5), trial(2, fixedRTO, 9)}
	f := figureOf(t, "p3", "Figure 7")
	if got, reason := f.Overlay(f.Panels[0], all); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("%v: %s", got, reason)
	}
	if got, reason := f.Overlay(f.Panels[0], all[:2]); got != nil || reason == "" {
		t.Errorf("of one that is not known: %v, %q", got, reason)
	}
	f.Least = false
	if got, reason := f.Overlay(f.Panels[0], all); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("%v: %s", got, reason)
	}
}
