package effects

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/design"
)

// sectioned is a run of so many sections, each with a slope of its own and as
// many MB more than the one before.
func sectioned(t *testing.T, slopes ...float64) Run {
	t.Helper()
	var more strings.Builder
	for i := 2; i < len(slopes); i++ {
		fmt.Fprintf(&more, "      %c: {sender: car, receiver: roadside}\n", 'A'+i)
	}
	p := placebo{file: "velocity.yaml", changes: []string{allSpeeds, "levels: [2, 5, 11]",
		"repetitions: 2", "repetitions: 3", lastSection, lastSection + more.String(), "balance:", "# balance:"}}
	noise := rand.New(rand.NewPCG(20261125, uint64(len(slopes))))
	r := p.driven(t, p.campaign(t, 7), noise)
	for i := range r.Results {
		one := &r.Results[i]
		s := int(one.Section[0] - 'A')
		one.Response = 20 + float64(s) + slopes[s]*(*one.Trial.SpeedMps-6) + 0.05*noise.NormFloat64()
	}
	return r
}

// tells looks for sentences that match, one each.
func tells(t *testing.T, sentences []string, patterns ...string) {
	t.Helper()
	all := strings.Join(sentences, "\n")
	for _, p := range patterns {
		if n := len(regexp.MustCompile("(?m)^"+p+"$").FindAllString(all, -1)); n != 1 {
			t.Errorf("%d sentences are %q:\n%s", n, p, all)
		}
	}
}

// The first line of the report names all sections, too.
func TestTheHeadlineIsOverAllSections(t *testing.T) {
	for _, k := range []struct {
		slopes []float64
		want   string
	}{{[]float64{-1, -1}, "Throughput falls with speed over both sections: "},
		{[]float64{-1, -1, -1}, "Throughput falls with speed over all 3 sections: "}} {
		c := Compare(sectioned(t, k.slopes...))
		if got, _ := c.Headline([]string{design.Speed}); !strings.HasPrefix(got, k.want) {
			t.Errorf("%q does not begin with %q", got, k.want)
		}
	}
}

// Of three sections the slope is that over all of them, and each contrast of
// sections and of slopes is told.
func TestThreeSectionsAreTold(t *testing.T) {
	c := Compare(sectioned(t, 0, -1, -2))
	if slope := c.row(design.Speed); math.Abs(slope.Value+1) > 0.02 || *slope.High > -0.9 {
		t.Errorf("the slope over all sections: %+v", slope)
	}
	if len(c.Slopes) != 3 {
		t.Fatalf("%d slopes", len(c.Slopes))
	}
	for i, e := range c.Slopes {
		if want := fmt.Sprintf("slope in section %c", 'A'+i); e.Term != want || math.Abs(e.Value+float64(i)) > 0.03 ||
			e.Low == nil {
			t.Errorf("slope %d: %+v", i, e)
		}
	}
	const of, trials = ` \(95 % interval .* to .*\)\.`, ` n = 27 trials\.`
	tells(t, c.Answers([]string{design.Speed, design.Section, design.Interaction}),
		`For each m/s faster, over all 3 sections: (1|1\.0\d|0\.9\d+) MB less`+of+trials,
		`In section A, for each m/s faster: no significant difference was detected: .*`+trials,
		`In section B, for each m/s faster: (1|1\.0\d|0\.9\d+) MB less`+of+trials,
		`In section C, for each m/s faster: (2|2\.0\d|1\.9\d) MB less`+of+trials,
		`Section B against section A \(together with all that changed with the section\), at the mean speed of 6 m/s: .* MB more`+of+trials,
		`Section C against section A \(together with all that changed with the section\), at the mean speed of 6 m/s: .* MB more`+of+trials,
		`Section C against section B \(together with all that changed with the section\), at the mean speed of 6 m/s: .* MB more`+of+trials,
		`Whether speed acts differently in section B than in section A \(difference of the slopes, per m/s\): .* MB less`+of+trials,
		`Whether speed acts differently in section C than in section A \(difference of the slopes, per m/s\): .* MB less`+of+trials,
		`Whether speed acts differently in section C than in section B \(difference of the slopes, per m/s\): .* MB less`+of+trials,
	)
	for _, label := range []string{"slope of B − A", "slope of C − A", "slope of C − B"} {
		found := 0
		for _, r := range c.Rows {
			if r.Term == design.Interaction && r.Label == label && r.Holm != nil {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d rows of %q", found, label)
		}
	}
}

// Of many contrasts it is told how many stand out, and the largest.
func TestManySectionsAreSummedUp(t *testing.T) {
	c := Compare(sectioned(t, 0, -1, -2, -4))
	answers := c.Answers([]string{design.Speed, design.Section, design.Interaction})
	tells(t, answers,
		`For each m/s faster, over all 4 sections: 1\.7\d MB less .*`,
		`Sections \(together with all that changed with the section\), at the mean speed of 6 m/s: of 6 differences 6 can be distinguished from noise \(corrected by Holm\)\. The largest, D − A: .* MB more .*`,
		`Whether speed acts differently by section \(difference of the slopes, per m/s\): of 6 differences 6 can be distinguished from noise \(corrected by Holm\)\. The largest, slope of D − A: .* MB less .*`)
	if all := strings.Join(answers, "\n"); strings.Contains(all, "no estimate of its own") {
		t.Errorf("there are estimates: %s", all)
	}
}
