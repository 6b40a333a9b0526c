package report_test

import (
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// heads are the report's answer and first findings, as text.
func heads(t *testing.T, page string) string {
	t.Helper()
	header, _, ok := strings.Cut(page, "</header>")
	if !ok {
		t.Fatal("the report has no head")
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?s)<p class="(?:lead|finding)[^>]*>(.*?)</p>`).FindAllStringSubmatch(header, -1) {
		out = append(out, html.UnescapeString(m[1]))
	}
	return strings.Join(out, "\n")
}

// crossed puts either unit into the car for either section, trial by trial: four
// cells a block at one speed.
func crossed(seed uint64) synthetic.Options {
	seen := map[string]int{}
	return synthetic.Options{Seed: seed, Speeds: []float64{5.6, 5.6}, Repetitions: 4, Change: func(x *wire.Trial) {
		cell := fmt.Sprint(x.Block, x.Factors["section"])
		x.Factors["car_unit"] = []string{"laptop-1", "laptop-2"}[seen[cell]%2]
		seen[cell]++
		x.Direction = "outbound"
	}, MB: func(x wire.Trial, noise *rand.Rand) float64 {
		mb := 5.4 + 0.05*noise.NormFloat64()
		if (x.Factors["section"] == "A") == (x.Factors["car_unit"] == "laptop-2") {
			mb -= 1.1 // laptop-2 sends
		}
		return mb
	}}
}

// A plan that changes the unit in the car from trial to trial has about as many
// sessions as trials, and finds the weak unit all the same.
func TestACrossedPlanTrialByTrialFindsTheWeakUnit(t *testing.T) {
	for _, seed := range []uint64{4, 5, 8} { // orders of 8, 12 and 14 sessions
		page := html.UnescapeString(written(t, crossed(seed)))
		if head := heads(t, page); !strings.Contains(head, "By the unit that sends (laptop-2 − laptop-1): 0.") {
			t.Errorf("seed %d: the head does not tell the units' difference: %s", seed, head)
		}
		if !regexp.MustCompile(`By the unit that sends \(laptop-2 − laptop-1\): 0\.[89]\d* Mbit/s less \(95 % interval −0\.[89]`).MatchString(page) {
			t.Errorf("seed %d: the weak unit is not found", seed)
		}
		how := map[uint64]string{4: "8 sessions are too few to know", 5: "12 sessions are a random effect",
			8: "There are 14 sessions for 16 trials, and sessions of one trial cannot be separated from noise"}
		has(t, page, how[seed])
		hasNot(t, page, "Residual degrees of freedom: 0", "too few to tell it from")
	}
}

// One speed is told as it was, and is in no term.
func TestOneSpeedIsToldAsItWas(t *testing.T) {
	page := html.UnescapeString(written(t, synthetic.Options{Seed: 4, Speeds: []float64{5.6}, Repetitions: 6}))
	has(t, page, "together with all that changed with the section), at 5.6 m/s:", "Every trial's target was 5.6 m/s, "+
		"so speed is in no term.")
	hasNot(t, page, "mean speed of", " 0 m/s", "straight line in speed")
}

// The mean is that of all blocks, and so are the shares of it that precision is
// reckoned for.
func TestTheMeanIsThatOfAllBlocks(t *testing.T) {
	page := html.UnescapeString(written(t, synthetic.Options{Seed: 4, Speeds: []float64{2.8, 8.3}, Repetitions: 3,
		MB: func(x wire.Trial, noise *rand.Rand) float64 {
			return []float64{10, 20, 20}[x.Block-1] + 0.01*noise.NormFloat64()
		}}))
	has(t, page, `<th scope="row">mean</th><td class="words">mean</td><td>13.3</td>`, "± 0.27 Mbit/s", "± 0.67 Mbit/s",
		"± 1.3 Mbit/s", "± 2.7 Mbit/s", `<td class="group">reached</td>`)
}

// Trials of which none had a connection show no spread: there is no interval, of
// no width either.
func TestNoSpreadGivesNoInterval(t *testing.T) {
	page := written(t, synthetic.Options{Seed: 4, Speeds: []float64{2.8, 5.6}, Repetitions: 3,
		Mishap: func(_ wire.Trial, _ int, c *synthetic.Conditions) {
			c.NoConnection, c.MB = true, 0
		}})
	has(t, page, "These trials cannot tell: all 12 accepted trials gave the same 0 Mbit/s.", "no interval: all alike")
	hasNot(t, page, "+0 to +0", "0.00 to 0.00", "Anything within that interval")
	if head := heads(t, page); !strings.Contains(head, "These trials cannot tell: all 12 accepted trials gave the "+
		"same 0 Mbit/s.") || !strings.Contains(head, "n = 12 trials.") {
		t.Errorf("the head does not say that the trials cannot tell: %s", head)
	}
}

// The head answers what a campaign on speed and section asks, with estimate,
// interval and n, and leaves the interaction to its section.
func TestTheHeadAnswersWhatIsAsked(t *testing.T) {
	page := written(t, synthetic.Options{Seed: 9, Speeds: []float64{2.8, 8.3, 13.9}, Repetitions: 3,
		MB: func(x wire.Trial, noise *rand.Rand) float64 { return 20 - 1.06*(*x.SpeedMps) + 0.1*noise.NormFloat64() }})
	head := heads(t, page)
	if !regexp.MustCompile(`(?m)^Throughput falls with speed over both sections: −0\.8[3-6]\d* Mbit/s per m/s \(95 % CI −0\.8\d+ to −0\.8\d+\), which is −[89]\.\d+ % of the mean; n = 18 trials\.$`).MatchString(head) {
		t.Errorf("the head does not answer for speed: %s", head)
	}
	if !regexp.MustCompile(`(?m)^Section B against section A \(together with all that changed with the section\), at the mean speed of 8.33 m/s: .* n = 18 trials\.$`).MatchString(head) {
		t.Errorf("the head does not answer for section: %s", head)
	}
	if strings.Contains(head, "Whether speed acts differently") {
		t.Errorf("the head answers for the interaction, which nobody asked for: %s", head)
	}
}

// Where speed acts differently in the sections the head gives each its slope.
func TestTheHeadTellsSlopesThatDiffer(t *testing.T) {
	page := written(t, synthetic.Options{Seed: 9, Speeds: []float64{2.8, 8.3, 13.9}, Repetitions: 2})
	if head := heads(t, page); !regexp.MustCompile(`(?m)^How throughput changes with speed depends on the section ` +
		`\(together with all that changed with the section\): section A −0\.3\d* Mbit/s per m/s \(95 % CI .*, section B ` +
		`.* Mbit/s per m/s \(95 % CI .*; n = 12 trials\.$`).MatchString(head) {
		t.Errorf("the head does not tell both slopes: %s", head)
	}
}

// Where only UDP is measured there is no result, and the reason given is that.
func TestUDPAloneHasNoResult(t *testing.T) {
	udp := func(x *wire.Trial) { x.Traffic[0].Kind, x.Traffic[0].ClientPort = "iperf3_udp", 0 }
	page := html.UnescapeString(written(t, synthetic.Options{Seed: 4, Speeds: []float64{2.8, 5.6}, Repetitions: 1,
		Change: udp}))
	has(t, page, "4 accepted trials without a transferred amount",
		"it measures no flow of TCP; of UDP the receiver's kernel counts nothing", "no accepted trial with a result")
	hasNot(t, page, "the receiver's records end before", "Nothing that could be compared varied")
	if head := heads(t, page); !strings.Contains(head,
		"There is no model of throughput: no accepted trial measures a flow of TCP.") {
		t.Errorf("the head does not say why there is no model: %s", head)
	}
	some := html.UnescapeString(written(t, synthetic.Options{Seed: 4, Speeds: []float64{2.8, 5.6}, Repetitions: 2,
		Change: func(x *wire.Trial) {
			if x.Block == 1 && x.Factors["section"] == "A" {
				udp(x)
			}
		}}))
	has(t, some, "2 accepted trials without a transferred amount", "it measures no flow of TCP")
}
