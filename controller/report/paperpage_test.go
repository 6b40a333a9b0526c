package report

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report/answers"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// withoutRecords copies what a run's folder has besides its records.
func withoutRecords(t *testing.T, a *archive.Archive) Tables {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tables")
	exported := filepath.Join(t.TempDir(), "export")
	if _, err := export.Run(a, exported, export.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(a.Dir(), "run.json"), filepath.Join(a.Dir(), "schedule.json"),
		filepath.Join(a.Dir(), "campaign.yaml"), filepath.Join(a.Dir(), "journal.ndjson")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Tables{Dir: dir, Numbers: numbersOf(t, exported)}
}

// A page that is made without the records has the figures of the report, which is
// made of them, to the byte.
func TestAPageWithoutRecordsHasTheReportsFigures(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 41, Paper: "p1", Repetitions: 3})
	tables := withoutRecords(t, a)
	page, err := Paper("p1", []Tables{tables}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := evidence.Gather(a)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := drawPaper(d)
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for _, f := range figures {
		for _, p := range f.panels {
			drawn++
			svg := []byte(figure.Sheet("", []figure.Panel{p}, ""))
			if !slices.ContainsFunc(slices.Collect(maps.Values(page.Drawings)), func(x []byte) bool {
				return bytes.Equal(x, svg)
			}) {
				t.Errorf("the page has no drawing of %s as the report has it", p.Label)
			}
		}
	}
	if drawn == 0 || drawn != len(page.Drawings) {
		t.Errorf("the report draws %d panels, the page %d", drawn, len(page.Drawings))
	}
	text := string(page.Markdown)
	for path := range page.Drawings {
		if !strings.Contains(text, "]("+path+")") {
			t.Errorf("the page does not show %s", path)
		}
	}
	for _, want := range []string{"# P1", "36 of 36 planned trials accepted", "| 18.20 MB |", "The radio was emulated",
		"seed | 41"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%.2000s", want, text)
		}
	}
	other, err := Paper("p2", []Tables{tables}, nil)
	if err != nil || len(other.Drawings) > 0 || !strings.Contains(string(other.Markdown), "Nothing was driven") {
		t.Errorf("another paper's page has this run: %v\n%.600s", err, other.Markdown)
	}
	// Numbers of another run are refused: an accepted attempt has numbers, and no other.
	for k := range tables.Numbers {
		delete(tables.Numbers, k)
		break
	}
	if _, err := Paper("p1", []Tables{tables}, nil); err == nil || !strings.Contains(err.Error(), "of another run") {
		t.Errorf("numbers are missing: %v", err)
	}
}

// A metric that a fault of the run makes no measure is in no cell and no claim, and
// the page says why beside the paper's table.
func TestAPageLeavesOutWhatARunDidNotMeasure(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 41, Paper: "p1", Repetitions: 3})
	tables := withoutRecords(t, a)
	tables.Without = map[string]string{metrics.ThroughputBps: "Its relays ended early."}
	page, err := Paper("p1", []Tables{tables}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page.Markdown)), " ")
	for _, want := range []string{"Of this run `throughput_bps` is not compared, and claims on it count as not " +
		"asked. Its relays ended early.", "0 cannot be decided by it, and 4 it does not ask"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%.3000s", want, text)
		}
	}
	if got, want := notCompared(map[string]string{"way_changes": "Why.", "hops_max": "Why."}), []string{"Of this run " +
		"`hops_max`, `way_changes` are not compared, and claims on them count as not asked. Why."}; !slices.Equal(got,
		want) {
		t.Errorf("for one reason %q, want %q", got, want)
	}
	d := drivenOf(t, "variants-chain", 3, nil)
	out := PaperPage{Drawings: map[string][]byte{}, without: map[string]string{"packet_loss_percent": "Because."}}
	v, err := out.run(d)
	if err != nil {
		t.Fatal(err)
	}
	if first := v.Figures[0]; !slices.Equal(first.Said, []string{"Ours is not compared. Because."}) ||
		len(first.Drawings) > 0 || len(v.Figures[1].Drawings) != 2 {
		t.Errorf("%s: %q, %d drawings", first.Number, first.Said, len(first.Drawings))
	}
}

// Of a campaign whose file has other words since its run, and the same trials, the
// deviations are those of now, and it counts as driven. Where its trials are others, those
// that the run's own file lacks stand apart.
func TestOtherWordsAreNoOtherCampaign(t *testing.T) {
	run := resultsOf(t, "six-variants")
	raw, err := os.ReadFile(filepath.Join(run.Dir, "campaign.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const old = "    - Three scenarios; the paper does not say how many it has."
	worded := bytes.Replace(raw, []byte(old), []byte("    # Words.\n    - Three scenarios are ours."), 1)
	worded = bytes.Replace(worded, []byte("ways are long and break."), []byte("ways break."), 1)
	shorter := bytes.Replace(worded, []byte("duration_s: 20,"), []byte("duration_s: 21,"), 1)
	for _, k := range []struct {
		raw      []byte
		has, not string
	}{
		{worded, "- Three scenarios are ours.", "what ships now was not driven"},
		{worded, "- Three scenarios are ours.", "the paper does not say how many it has"},
		{worded, "- Three scenarios are ours.", "| six-variants | quick |"},
		{worded, "the campaign's file says since the run: 20 s instead of 200", "nothing else"},
		{shorter, "what ships now was not driven", "nothing else"},
		{shorter, "- Three scenarios; the paper does not say how many it has.", "nothing else"},
		{shorter, "\nNamed since the run, in the campaign as it ships:\n\n- Three scenarios are ours.\n\n",
			"nothing else"},
		{worded, "- Three scenarios are ours.", "Named since the run"},
		{shorter, "| six-variants | quick |", "nothing else"},
	} {
		c, err := plan.ParseAt("six", k.raw, "quick")
		if err != nil {
			t.Fatal(err)
		}
		page, err := Paper("p5", []Tables{run}, []*plan.Campaign{c})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page.Markdown), k.has) {
			t.Errorf("the page lacks %q", k.has)
		}
		if strings.Contains(string(page.Markdown), k.not) {
			t.Errorf("the page says %q", k.not)
		}
	}
}

// numbersOf are the numbers of a run's trials, as an export has them in a folder.
func numbersOf(t *testing.T, folder string) map[wire.TrialKey][]metrics.Row {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	numbers, err := export.ReadResults(f)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

// resultsOf are the tables of a run that are kept.
func resultsOf(t *testing.T, name string) Tables {
	t.Helper()
	dir := filepath.Join("../../field-guides/results/runs", name)
	return Tables{Dir: dir, Numbers: numbersOf(t, dir)}
}

// The tables of P2's chain have each published number beside ours, and the campaigns
// that were not driven their cost.
func TestAPageHasThePapersTables(t *testing.T) {
	d := drivenOf(t, "variants-chain", 3, nil)
	out := PaperPage{Drawings: map[string][]byte{}}
	v, err := out.run(d)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Figures) != 3 || len(out.Drawings) != 6 {
		t.Fatalf("%d tables and %d drawings, want 3 and 6", len(v.Figures), len(out.Drawings))
	}
	first := v.Figures[0]
	if len(first.Rows) != 30 || first.Rows[0][0] != "dsdv, static, tahoe" || first.Rows[0][2] != "0.09" ||
		first.Rows[0][4] != "3" || first.Number != "Table 1" {
		t.Errorf("%s has %d rows, the first %q", first.Number, len(first.Rows), first.Rows[0])
	}
	if len(first.Said) < 3 || !strings.Contains(first.Said[0], "Static: ours are ") ||
		!strings.Contains(first.Said[0], " %, the paper's 0 to 0.09; ours ÷ paper is ") ||
		!strings.Contains(first.Said[1], "Mobile: ours are ") ||
		!strings.Contains(first.Said[1], " %, the paper's 0.11 to 0.75; ours ÷ paper is ") {
		t.Errorf("of %s it says %q", first.Number, first.Said)
	}
	for path, svg := range out.Drawings {
		// two curves' marks: of ours, and of theirs
		if n, m := bytes.Count(svg, []byte(`class="ours"`)), bytes.Count(svg, []byte(`class="paper"`)); n != 15 ||
			m != 15 {
			t.Errorf("%s has %d marks of ours and %d of theirs, want 15 of each", path, n, m)
		}
	}
	if len(v.Claims) == 0 || len(v.Deviations) == 0 || len(v.Undrawn) == 0 {
		t.Errorf("%d claims, %d deviations, %d undrawn", len(v.Claims), len(v.Deviations), len(v.Undrawn))
	}
	night, err := plan.LoadAt("../../campaigns/variants-chain.yaml", "night")
	if err != nil {
		t.Fatal(err)
	}
	page, err := Paper("p2", nil, []*plan.Campaign{planned["variants-chain"].of, night})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| variants-chain | full | 90 | 9 h 09 min |", "| variants-chain | night | 90 |",
		"which no run here asks:  - P2 chain.1 chain, loss: tahoe as reno", papers.Rule(0.95)[:40]} {
		if !strings.Contains(strings.ReplaceAll(string(page.Markdown), "\n", " "), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// Why a figure of traces is not drawn of tables is said once, and is not that its
// trials were not driven. A simulated paper's page says of the radio what is true of it.
func TestAPageOfTablesSaysWhatTheyLack(t *testing.T) {
	d := drivenOf(t, "reference-tcp", 3, func(w wire.Trial) bool { return w.Factors["error"] != "0" })
	for i := range d.Attempts {
		d.Attempts[i].Traces, d.Attempts[i].Points = nil, nil
	}
	out := PaperPage{Drawings: map[string][]byte{}}
	v, err := out.run(d)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(v.Undrawn, func(u undrawn) bool { return u.Number == "Figure 2" })
	if i < 0 {
		t.Fatalf("Figure 2 is not among %q", v.Undrawn)
	}
	want := "congestion, nobody moves; nodes move at 5 m/s: its trials have no traces here; the records of a run " +
		"have them; congestion and channel error 1 %, nobody moves: no accepted trial has 2 background flows, " +
		"channel error 1 %, field of 400x800 m, static, buffers of 50 packets, dsr, window of 8 packets"
	if v.Undrawn[i].Why != want {
		t.Errorf("%q, want %q", v.Undrawn[i].Why, want)
	}
	if doubts := strings.Join(v.Doubts, " "); strings.Contains(doubts, "no evidence about velocity") ||
		!strings.Contains(doubts, "neither is evidence about real radios") {
		t.Errorf("doubts: %q", doubts)
	}
	page, err := Paper("p4", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"its R-TCP is the variant “reference” of our campaigns",
		"| throughput, bit/s | highest packet sequence number received ÷ the session's length | payload that arrived " +
			"in order, "} {
		if !strings.Contains(strings.ReplaceAll(string(page.Markdown), "\n", " "), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// Where only the side of a published size is tested, the answer says so; what cannot be
// tested is not counted.
func TestAnAnswerSaysWhatWasTested(t *testing.T) {
	trial := func(variant string, kbits float64, repetition int) papers.Trial {
		return papers.Trial{Repetition: repetition, Facts: map[string]string{"variant": variant},
			Values: map[string]float64{papers.ThroughputKbitS: kbits}}
	}
	var trials []papers.Trial
	for i := range 3 {
		off := 0.01 * float64(i*i)
		trials = append(trials, trial("newreno", 10+off, i+1), trial("reference", 30+2*off, i+1))
	}
	a, b := papers.Condition{"variant": {"reference"}}, papers.Condition{"variant": {"newreno", "vegas"}}
	v := answers.Of([]papers.Claim{
		{ID: "P4.5", Metric: papers.ThroughputKbitS, A: a, B: papers.Condition{"variant": {"newreno"}},
			Relation: papers.More, Low: new(10.0)},
		{ID: "P4.6", Metric: papers.ThroughputKbitS, A: a, B: b, Relation: papers.More},
		{ID: "P4.6", Metric: papers.ThroughputKbitS, A: a, B: b, Relation: papers.Ratio, Low: new(2.5), High: new(3.5)},
		{ID: "P4.7", Relation: papers.None, Note: "no unit"},
	}, trials, intervalsOf(&evidence.Run{}))
	if v.Counts != "Of 2 claims that can be tested this run supports 1 and contradicts 0; 1 cannot be decided by it, "+
		"and 0 it does not ask." || len(v.Claims) != 2 || len(v.Untestable) != 1 {
		t.Fatalf("%+v", v)
	}
	one, two := v.Claims[0], v.Claims[1]
	if !one.DirectionOnly || two.DirectionOnly || len(two.Parts) != 2 || len(two.Unasked) != 2 ||
		two.Unasked[0] != "R-TCP against vegas" || !strings.HasPrefix(two.Parts[1].Ratio, "ratio 3 (2.9") {
		t.Errorf("%+v", v.Claims)
	}
}

// Many parts are told in one line a metric, and an answer is of the direction only where
// no part of it is of a size.
func TestManyPartsAreToldInShort(t *testing.T) {
	var trials []papers.Trial
	where := papers.Condition{"variant": nil}
	for i := range 8 {
		variant := fmt.Sprintf("v%d", i)
		where["variant"] = append(where["variant"], variant)
		for rep := range 3 {
			for routing, v := range map[string]float64{"dsr": 20, "aodv": 20 + 10*float64(i)} {
				trials = append(trials, papers.Trial{Repetition: rep + 1, Facts: map[string]string{"variant": variant,
					"routing": routing}, Values: map[string]float64{metrics.OneWayMeanMs: v + 0.1*float64(rep*rep)*v}})
			}
		}
	}
	a, b := papers.Condition{"routing": {"aodv"}}, papers.Condition{"routing": {"dsr"}}
	claim := papers.Claim{ID: "P2.1", Metric: metrics.OneWayMeanMs, Where: where, Each: []string{"variant"}, A: a, B: b,
		Relation: papers.More, Low: new(2.0)}
	size := claim
	size.Where, size.Each, size.Relation = papers.Condition{"variant": {"v1"}}, nil, papers.Ratio
	for _, k := range []struct {
		claims    []papers.Claim
		parts     int
		direction bool
	}{{[]papers.Claim{claim}, 8, true}, {[]papers.Claim{claim, size}, 9, false}} {
		v := answers.Of(k.claims, trials, intervalsOf(&evidence.Run{})).Claims[0]
		if len(v.Parts) != 1 || v.DirectionOnly != k.direction || !v.Several {
			t.Fatalf("%+v", v)
		}
		if p := v.Parts[0]; p.What != words.Count(k.parts, "comparison") || !strings.HasPrefix(p.Estimate,
			"differences from +0 to +81.7 ms") || !strings.HasPrefix(p.Test, "paired t interval, n = 3") {
			t.Errorf("%+v", p)
		}
	}
	unasked := claim
	unasked.Where = papers.Condition{"variant": append([]string{"w0", "w1", "w2", "w3", "w4", "w5", "w6"}, "v1")}
	v := answers.Of([]papers.Claim{unasked}, trials, intervalsOf(&evidence.Run{})).Claims[0]
	if len(v.Parts) != 1 || v.Several || !slices.Equal(v.Unasked, []string{"7 of 8 comparisons"}) {
		t.Errorf("%+v", v)
	}
}

// A line is broken at 120 columns, a table's is not, and no line begins with a sign
// that would make a list of it.
func TestLinesAreWrapped(t *testing.T) {
	long, row := strings.Repeat("word ", 24)+"+ more", "| "+strings.Repeat("cell ", 40)+"|"
	want := strings.TrimSuffix(strings.Repeat("word ", 23), " ") + "\nword + more\n" + row + "\n"
	if got := wrapped(long + "\n" + row + "\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
