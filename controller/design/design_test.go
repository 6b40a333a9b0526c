package design

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func nodes() []wire.PlanNode {
	return []wire.PlanNode{{Name: "alpha", Unit: "laptop-1"}, {Name: "bravo", Unit: "laptop-2"}}
}

// cell is a trial of a block: who is in the car, who sends, and how fast it is.
func cell(block int, car, section string, mps float64, factors ...string) wire.Trial {
	t := wire.Trial{Block: block, Repetition: block, Car: car, Roadside: "bravo", SpeedMps: &mps,
		Factors: map[string]string{"section": section}}
	if car == "bravo" {
		t.Roadside = "alpha"
	}
	t.Sender, t.Receiver = t.Car, t.Roadside
	if section == "B" {
		t.Sender, t.Receiver = t.Receiver, t.Sender
	}
	t.Traffic = []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: t.Sender, To: t.Receiver}}
	for i := 0; i < len(factors); i += 2 {
		t.Factors[factors[i]] = factors[i+1]
	}
	return t
}

// schedule has every combination once a block, in the order of the cars given.
func schedule(blocks int, cars []string, speeds ...float64) []wire.Trial {
	var out []wire.Trial
	for b := range blocks {
		for _, car := range cars {
			for _, section := range []string{"A", "B"} {
				for _, mps := range speeds {
					out = append(out, cell(b+1, car, section, mps))
				}
			}
		}
	}
	return out
}

func (e Estimable) effect(t *testing.T, name string) Effect {
	t.Helper()
	i := slices.IndexFunc(e.Effects, func(f Effect) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no effect %s: %+v", name, e.Effects)
	}
	return e.Effects[i]
}

func (e Estimable) warns(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !slices.ContainsFunc(e.Warnings, func(s string) bool { return strings.Contains(s, w) }) {
			t.Errorf("no warning says %q: %q", w, e.Warnings)
		}
	}
}

// Where the roles are swapped, section and sending unit are one; where the units
// are crossed with the section they are two.
func TestSwappedIsConfoundedAndCrossedIsNot(t *testing.T) {
	swapped := Judge(nodes(), schedule(3, []string{"alpha"}, 2, 5), nil, stats.Confidence)
	section, sender := swapped.effect(t, Section), swapped.effect(t, Sender)
	if !slices.Equal(section.ConfoundedWith, []string{Sender}) || !slices.Equal(sender.ConfoundedWith,
		[]string{Section}) || !section.Own || sender.Own {
		t.Errorf("section %+v, sender %+v", section, sender)
	}
	swapped.warns(t, "confounded: section, unit that sends change together", "a factor car_unit")
	// 12 trials, less mean, section, speed, their interaction and two blocks.
	if swapped.ResidualDF != 6 || *section.DFMin != 6 || *section.DFMax != 6 || swapped.Sessions != 1 {
		t.Errorf("%+v", swapped)
	}
	crossed := Judge(nodes(), schedule(3, []string{"alpha", "bravo"}, 2, 5), nil, stats.Confidence)
	for _, name := range []string{Section, Sender, Unit, Speed} {
		if f := crossed.effect(t, name); len(f.ConfoundedWith) > 0 || !f.Own {
			t.Errorf("%+v", f)
		}
	}
	if slices.ContainsFunc(crossed.Warnings, func(s string) bool { return strings.Contains(s, "confounded") }) {
		t.Errorf("%q", crossed.Warnings)
	}
}

// The least effect that is found is that which the noncentral t finds so often, by the standard
// error as written out by hand: 2/√n of two levels, half of the trials each.
func TestLeastEffectThatIsFound(t *testing.T) {
	e := Judge(nodes(), schedule(3, []string{"alpha"}, 2, 5), nil, stats.Confidence)
	for name, se := range map[string]float64{Section: 2 / math.Sqrt(12), Speed: 2 / math.Sqrt(12),
		Interaction: 4 / math.Sqrt(12)} { // a difference of differences
		f := e.effect(t, name)
		if f.LeastFoundSD == nil {
			t.Fatalf("%+v", f)
		}
		if power := stats.Power(*f.LeastFoundSD/se, 6, stats.Confidence); math.Abs(power-stats.WishedPower) > 1e-6 {
			t.Errorf("%s: %g SD is found with probability %g, want %g", name, *f.LeastFoundSD, power, stats.WishedPower)
		}
	}
	if f := e.effect(t, Sender); f.LeastFoundSD != nil {
		t.Errorf("no estimate of its own: %+v", f)
	}
	// Where only sessions judge an effect, their spread is what counts, and that is not known.
	judged := false
	for blocks := range 6 {
		f := Judge(nodes(), schedule(blocks+2, []string{"alpha", "bravo"}, 2, 5), nil, stats.Confidence).effect(t, Unit)
		judged = judged || f.Between && f.DFMin != nil
		if f.Between && f.LeastFoundSD != nil {
			t.Errorf("%d blocks: %+v", blocks+2, f)
		}
	}
	if !judged {
		t.Error("sessions judged nothing")
	}
	// Of three levels it is that of the pair of which least is known, with eight trials each.
	var three []wire.Trial
	for b := range 4 {
		for _, level := range []string{"x", "x", "y", "z"} {
			three = append(three, cell(b+1, "alpha", "A", 5, "kind", level), cell(b+1, "alpha", "B", 5, "kind", level))
		}
	}
	f := Judge(nodes(), three, nil, stats.Confidence).effect(t, "kind")
	if power := stats.Power(*f.LeastFoundSD/(2/math.Sqrt(16)), *f.DFMin, stats.Confidence); math.Abs(power-
		stats.WishedPower) > 1e-6 {
		t.Errorf("three levels: %+v: power %g", f, power)
	}
}

func TestWhatAPlanIsWarnedOf(t *testing.T) {
	once := Judge(nodes(), schedule(1, []string{"alpha"}, 2, 5), []string{"speed"}, stats.Confidence)
	once.warns(t, "uses up all 4 trials", "one repetition", "asks about speed, of which there is no interval")
	Judge(nodes(), schedule(2, []string{"alpha"}, 5), []string{"speed"}, stats.Confidence).warns(t,
		"few residual degrees of freedom (1)",
		"two repetitions",
		"asks about speed, which does not vary")
	var byTrial []wire.Trial
	for b := range 4 {
		for i, car := range []string{"alpha", "bravo", "alpha", "bravo"} {
			byTrial = append(byTrial, cell(b+1, car, []string{"A", "B", "B", "A"}[i], 5))
		}
	}
	e := Judge(nodes(), byTrial, nil, stats.Confidence)
	e.warns(t, "another unit is put into the car before 15 of 16 trials", "whole_plots: [car_unit]")
	if e.SessionsAs != "noise" || e.effect(t, Sender).DFMin == nil {
		t.Errorf("a session a trial: %+v", e)
	}
	for i := range byTrial {
		byTrial[i].Car, byTrial[i].Course.Kind = "", "none"
	}
	if e := Judge(nodes(), byTrial, nil, stats.Confidence); slices.ContainsFunc(e.Warnings, func(w string) bool {
		return strings.Contains(w, "into the car")
	}) {
		t.Errorf("nothing drives: %q", e.Warnings)
	}
	whole := Judge(nodes(), schedule(2, []string{"alpha", "bravo"}, 2, 5), nil, stats.Confidence)
	whole.warns(t, "unit in the car differs only from session to session, of which there are 4")
	if f := whole.effect(t, Unit); f.DFMin != nil || !f.Between {
		t.Errorf("%+v", f)
	}
	if e := Judge(nodes(), nil, nil, stats.Confidence); e.Trials != 0 || len(e.Effects) != 0 {
		t.Errorf("no trials: %+v", e)
	}
}

// A factor whose levels are speeds or sections is that term under another name,
// and no further one; one that only varies with it is confounded with it.
func TestAFactorsNameDoesNotMatter(t *testing.T) {
	var passes []Pass
	for _, trial := range schedule(2, []string{"alpha"}, 2, 5) {
		trial.Factors = map[string]string{"side": trial.Factors["section"], "pace": fmt.Sprint(*trial.SpeedMps),
			"tcp": map[float64]string{2: "reno", 5: "vegas"}[*trial.SpeedMps]}
		passes = append(passes, Of(nodes(), trial))
	}
	if got := FurtherFactors(passes); !slices.Equal(got, []string{"tcp"}) {
		t.Errorf("further factors %v, want tcp", got)
	}
	if got := Asked([]string{"pace", "side", "tcp", "interaction"}, passes); !slices.Equal(got,
		[]string{Speed, Section, "tcp", Interaction}) {
		t.Errorf("asked %v", got)
	}
	if got := Asked(nil, passes); !slices.Equal(got, []string{Speed, Section, "tcp"}) {
		t.Errorf("asked by default %v", got)
	}
	if got := Asked(nil, passesOf(nodes(), schedule(2, []string{"alpha", "bravo"}, 5))); !slices.Equal(got,
		[]string{Section, Sender, Unit}) {
		t.Errorf("asked by default of units that change places %v", got)
	}
}

func TestAFactorThatGoesWithSpeedIsConfoundedWithIt(t *testing.T) {
	trials := schedule(3, []string{"alpha"}, 2, 5)
	for i := range trials {
		trials[i].Factors["tcp"] = map[float64]string{2: "reno", 5: "vegas"}[*trials[i].SpeedMps]
	}
	Judge(nodes(), trials, nil, stats.Confidence).warns(t, "confounded: speed, tcp change together",
		"asks about tcp, of which there "+
			"is no estimate of its own")
}

func TestSessionsEndWithTheUnitAndWithAPause(t *testing.T) {
	var passes []Pass
	for _, u := range []string{"a", "a", "b", "b", "a"} {
		passes = append(passes, Pass{Unit: u})
	}
	got := Sessions(passes, func(i int) bool { return i == 3 })
	if want := []string{"1", "1", "2", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Of a factor's levels one may be told within sessions and another only by how
// these differ: what judges the factor ranges over all its contrasts.
func TestDegreesOfFreedomAreThoseOfAllContrasts(t *testing.T) {
	var trials []wire.Trial
	for b := range 4 {
		for _, levels := range [][]string{{"x", "y"}, {"z", "z"}} {
			for _, car := range []string{"alpha", "bravo"} {
				for _, level := range levels {
					for _, section := range []string{"A", "B"} {
						trials = append(trials, cell(b+1, car, section, 5, "tcp", level))
					}
				}
			}
		}
	}
	e := Judge(nodes(), trials, nil, stats.Confidence)
	if e.SessionsAs != stats.GroupsRandom || e.Sessions != 16 {
		t.Fatalf("%d sessions as %s", e.Sessions, e.SessionsAs)
	}
	tcp, section := e.effect(t, "tcp"), e.effect(t, Section)
	if *tcp.DFMin > 16 || *tcp.DFMax < *section.DFMax-1 {
		t.Errorf("tcp is judged by %.1f to %.1f degrees of freedom, section by %.1f to %.1f: want from those of 16 "+
			"sessions to as many",
			*tcp.DFMin, *tcp.DFMax, *section.DFMin, *section.DFMax)
	}
}
