package report_test

import (
	"bytes"
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func written(t *testing.T, o synthetic.Options) string {
	t.Helper()
	return of(t, synthetic.Run(t, o))
}

func of(t *testing.T, a *archive.Archive) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := report.Write(a, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func has(t *testing.T, html string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(html, w) {
			t.Errorf("the report does not say %q", w)
		}
	}
}

func hasNot(t *testing.T, html string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(html, w) {
			t.Errorf("the report says %q", w)
		}
	}
}

// exact gives every trial of a cell a known amount.
func exact(mb map[string]float64) func(wire.Trial, *rand.Rand) float64 {
	return func(t wire.Trial, _ *rand.Rand) float64 {
		return mb[t.Factors["section"]+t.Factors["speed_mps"]] + float64(t.Block-1)
	}
}

func TestP1Table(t *testing.T) {
	o := synthetic.Options{Seed: 1, Campaign: "a-road", Paper: "p1", Speeds: []float64{2.8, 16.7},
		MB: exact(map[string]float64{"A2.8": 18, "A16.7": 10, "B2.8": 20, "B16.7": 19.5})}
	html := written(t, o)
	has(t, html, "<span>14.40</span> <span>15.20</span>", `<td class="mean">14.80</td>`, "no interval from two",
		"P1, as published",
		"18.20", "10.33", "20.95", "14.6–15.3", // the paper's, and one as a rate
		"Section A (the car sends): 14.80 Mbit/s on average at 2.8 m/s, 8.40 Mbit/s at 16.7 m/s.",
		"one of them was driven in a car.",
		"8 of 8 planned trials accepted")
	o.Repetitions = 3 // 14.4, 15.2, 16: mean 15.2, half width 0.8·4.303/√3 = 1.99
	has(t, written(t, o), `<td class="mean">15.20</td>`, "13.21 to 17.19")
}

// smallReport is that of a run of four trials, written once: see small.
var smallReport string

func small(t *testing.T) string {
	t.Helper()
	if smallReport == "" {
		smallReport = written(t, synthetic.Options{Seed: 1, Speeds: []float64{2.8, 5.6}, Repetitions: 1})
	}
	return smallReport
}

func TestPaperStandsOnlyBesideItsOwnQuestion(t *testing.T) {
	html := small(t)
	hasNot(t, html, "as published", "Eleje", "The paper's figures")
	has(t, html, "no interval from one")
}

func TestSelfContained(t *testing.T) {
	html := small(t)
	for _, pattern := range []string{`(?i)<script[^>]*src`, `(?i)<link`, `(?i)src=`, `(?i)@import`, `(?i)\burl\(`,
		`https?://`} {
		if m := regexp.MustCompile(pattern).FindString(html); m != "" {
			t.Errorf("the page reaches outside: %q", m)
		}
	}
	if n := strings.Count(strings.ToLower(html), "<script"); n != 4 {
		t.Errorf("%d scripts, want the playback's data, its code, the timelines' and the reader's", n)
	}
	for _, id := range []string{"results", "figures", "comparison", "threats", "timelines", "playback", "verdicts",
		"setup", "methods"} {
		has(t, html, `<section id="`+id+`">`, `href="#`+id+`"`)
	}
	hasNot(t, html, "%!", "&lt;nil&gt;", "ZgotmplZ", "NaN", "+Inf", "-Inf")
	if n := strings.Count(html, `class="strip"`); n != 4*5 {
		t.Errorf("%d strips in the timelines, want five for each of four trials", n)
	}
}

// Every drawing is well-formed XML, as SVG must be where it is used elsewhere.
func TestDrawingsAreWellFormed(t *testing.T) {
	html := small(t)
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1)
	if len(drawings) < 20 {
		t.Fatalf("%d drawings", len(drawings))
	}
	for _, d := range drawings {
		testnet.WellFormed(t, d)
	}
}

//attack:archive a name that a browser would take for a script
func TestOutsideStringsAreEscaped(t *testing.T) {
	const evil = `"><script>alert(1)</script>`
	info := synthetic.Info(synthetic.Options{Seed: 1, Speeds: []float64{2.8, 5.6}, Repetitions: 1})
	info.Campaign = "velocity" + evil
	info.Site = map[string]string{"weather" + evil: evil}
	for i := range info.Plan.Trials {
		info.Plan.Trials[i].Factors["section"] += evil
		info.Plan.Trials[i].TCP.Variant = evil
	}
	a, err := archive.Create(t.TempDir()+"/run", info)
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, a)
	seqs := map[string]*uint64{}
	for _, tr := range info.Plan.Trials {
		for _, node := range []string{"car", "roadside", "field"} {
			records := synthetic.Attempt(info.Plan, tr, 1, synthetic.Conditions{MB: 3}, seqs)[node]
			if node == "car" {
				records = append(records, wire.Record{Header: wire.Header{Node: "car", Epoch: "e-evil",
					Seq: uint64(tr.Number), Run: info.Run, Trial: tr.Number, Attempt: 1},
					Body: &wire.Event{Level: "warning", Text: evil}})
			}
			seqs = map[string]*uint64{"car": new(uint64(tr.Number * 10000)), "roadside": new(uint64(tr.Number * 10000)),
				"field": new(uint64(tr.Number * 10000))}
			if err := synthetic.Store(a, node, records); err != nil {
				t.Fatal(err)
			}
		}
		v := wire.Verdict{TrialKey: wire.TrialKey{Trial: tr.Number, Attempt: 1}, Outcome: "accepted",
			Reason: wire.ParseReason(evil), Final: true}
		if tr.Number == 1 {
			v.Word = &wire.Word{Decision: "accept", By: "phone", Text: evil, Judged: "rejected"}
		}
		if err := a.Decide(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Note(evil); err != nil {
		t.Fatal(err)
	}
	html := of(t, a)
	hasNot(t, html, "<script>alert", evil)
	has(t, html, "&lt;script&gt;", `\u003cscript\u003e`, // in text, and in the playback's data
		"People decided about attempts", "1 attempt decided by people", "trial 1.1, by the rules rejected: phone "+
			"said accept")
}

func TestRejectedAttemptsAreTold(t *testing.T) {
	html := written(t, synthetic.Options{
		Seed: 3, Speeds: []float64{2.8, 5.6}, Repetitions: 1,
		Mishap: func(x wire.Trial, attempt int, c *synthetic.Conditions) {
			switch {
			case x.Number == 1 && attempt == 1:
				c.GPSGapFromS, c.GPSGapToS = 3, 6
			case x.Number == 2 && attempt == 1:
				c.SpeedOffsetMps = 3
			case x.Number == 3 && attempt == 1:
				c.FailedNode = "roadside"
			case x.Number == 3 && attempt < 6: // more often than there are attempts
				c.InterruptedNode = "car"
			case x.Number == 4:
				c.NoConnection, c.MB = true, 0
			}
		},
	})
	has(t, html, "4 of 4 planned trials accepted, in 11 attempts (2 rejected, 1 failed, 4 interrupted).",
		"gps: fix_age_ms_max on car is 3200, limit 1500",
		"speed: in_band_share_min is 0, limit 0.9", "iperf3: on roadside: did not start",
		"1 trial transferred nothing and counts as 0",
		"1 accepted trial transferred nothing", "3 attempts rejected or failed", "4 attempts ended from outside",
		"(3.2 agent_restarted, 3.3 agent_restarted, ", "Of 11 attempts 4 were accepted, 2 rejected, 1 failed and 4 "+
			"interrupted from outside", "No person decided about an attempt")
}

// A trial that connected and transferred nothing is not said to have had no connection.
func TestConnectedTrialsWithoutAByteAreNotWithoutConnection(t *testing.T) {
	html := written(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8, 16.7}, Repetitions: 2,
		MB: func(x wire.Trial, _ *rand.Rand) float64 {
			if x.Number <= 2 {
				return 0
			}
			return 20
		}})
	has(t, html, "2 trials transferred nothing and count as 0.", "Trials that transferred nothing count as 0")
	hasNot(t, html, "had no connection", "Trials without a connection")
}

func TestThreatsThatApply(t *testing.T) {
	depart := written(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8, 8.3, 16.7}})
	has(t, depart, "A rehearsal is no evidence about velocity, only about the campaign", "Speed goes with distance",
		"course &#34;depart&#34;", "One hardware unit was in the car throughout", "Few repetitions",
		"late for at most 0.10 %")
	road := written(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8, 8.3, 16.7}, Repetitions: 3, Place: "road"})
	hasNot(t, road, "A rehearsal is no evidence", "Few repetitions")
	confounded := written(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8, 8.3, 16.7}, Repetitions: 3,
		Confounded: true})
	has(t, confounded, "Hardware unit and design changed together", "Confounded, not estimable separately: section, "+
		"unit in the car",
		"No separate estimate is given for unit in the car", "together with all that changed with the section")
}

// The model on amounts that follow it to the letter finds what was put in.
func TestModelFindsWhatWasPutIn(t *testing.T) {
	html := written(t, synthetic.Options{
		Seed: 8, Speeds: []float64{2, 6, 10}, Repetitions: 2,
		MB: func(x wire.Trial, noise *rand.Rand) float64 {
			mb := 20 + noise.Float64()*1e-3
			if x.Factors["section"] == "A" {
				mb -= 0.5 * (*x.SpeedMps - 6) // −0.5 MB a m/s in A, none in B
			} else {
				mb += 1
			}
			return mb
		},
	})
	has(t, html, "Section B against section A (together with all that changed with the section), at the mean speed "+
		"of 6 m/s: 0.8 Mbit/s more",
		"Confounded, not estimable separately: section, unit that sends", "In section A, for each m/s faster: 0.4 "+
			"Mbit/s less",
		"In section B, for each m/s faster: no significant difference was detected", "(difference of the slopes, per "+
			"m/s): 0.4 Mbit/s more", "How throughput changes with speed depends on the section")
}

// The same words for a null result: noise alone is not dressed up.
func TestNullResultIsSaid(t *testing.T) {
	html := written(t, synthetic.Options{Seed: 9, Speeds: []float64{2.8, 8.3, 16.7}, Repetitions: 3,
		MB: func(_ wire.Trial, noise *rand.Rand) float64 { return 20 + noise.NormFloat64() }})
	if n := strings.Count(html, "no significant difference was detected"); n < 3 {
		t.Errorf("noise alone is called no difference %d times, want at least in slopes and interaction", n)
	}
}

func TestWindowsOfDifferentLengthAreComparedByRate(t *testing.T) {
	o := synthetic.Options{Seed: 6, Speeds: []float64{5, 10}, Repetitions: 1}
	o.MB = func(wire.Trial, *rand.Rand) float64 { return 20 }
	o.WindowS = func(x wire.Trial) float64 { return 100 / *x.SpeedMps }
	html := written(t, o)
	has(t, html, "estimate, Mbit/s", "<span>8.00</span>", "<span>16.00</span>")
}

func TestRunWithNothingInIt(t *testing.T) {
	a, err := archive.Create(t.TempDir()+"/run", synthetic.Info(synthetic.Options{Seed: 1}))
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, a)
	html := of(t, a)
	has(t, html, "0 of 24 planned trials accepted, in 0 attempts", "no accepted trial", "Planned trials are missing",
		"Nothing that could be compared varied")
}

func TestOtherCampaignsGetTheirOwnTable(t *testing.T) {
	o := synthetic.Options{Seed: 6, Campaign: "variants", Speeds: []float64{5}, Repetitions: 3}
	o.Change = func(x *wire.Trial) {
		x.Factors["tcp"] = []string{"reno", "vegas", "cubic"}[x.Block-1]
		delete(x.Factors, "speed_mps")
	}
	html := written(t, o)
	for _, v := range []string{"cubic", "reno", "vegas"} {
		for _, s := range []string{"A", "B"} {
			has(t, html, fmt.Sprintf(`<th scope="row">%s</th><th scope="row">%s</th>`, s, v))
		}
	}
	has(t, html, "not estimable separately", "tcp")
}

// The page begins with the campaign's title, its question, the answer and one
// figure, before all else; then come the threats.
func TestTheAnswerComesFirst(t *testing.T) {
	raw, err := os.ReadFile("../../campaigns/velocity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page := html.UnescapeString(written(t, synthetic.Options{Seed: 9, Speeds: []float64{2.8, 8.3, 13.9},
		Repetitions: 3, Raw: raw, MB: func(x wire.Trial, noise *rand.Rand) float64 {
			return 20 - 1.06*(*x.SpeedMps) + 0.1*noise.NormFloat64()
		}}))
	at := 0
	for _, next := range []string{"<h1>Impact of node velocity on TCP throughput</h1>",
		`<p class="question">Does TCP throughput between`, `<p class="lead">Throughput falls with speed over both sections: `,
		`aria-label="Throughput by speed"`, "section A: the car sends (n = 9)", "section B: the car receives (n = 9)",
		"horizontal bars: means with their 95 % CI, n = 3 each", "</svg>", "18 of 18 planned trials accepted", `<section id="threats">`,
		`<section id="results">`} {
		i := strings.Index(page[at:], next)
		if i < 0 {
			t.Fatalf("%q does not come after %.200q", next, page[at:])
		}
		at += i
	}
}
