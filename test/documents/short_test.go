package documents

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the results' summary says of P2's chain stands in the tables of P2's page: how many claims were
// decided how, those that it names, and how throughput compares.
func TestWhatIsSaidInShortOfP2IsInItsTables(t *testing.T) {
	short, page := inShort(t, "P2's chain"), sectionOf(t, "variants-chain")
	saidOfClaims(t, short, page)
	said := numbers(t, short, `Of the tables' (\d+) orders (\d+) are the other way round here, (\d+) of them beyond noise`)
	if is := orders(t, page); !slices.Equal(said, is) {
		t.Errorf("the summary says %v of the tables' orders, and the page has %v", said, is)
	}
	for _, routing := range []string{"AODV", "DSR", "DSDV"} {
		said := numbers(t, short, `over `+routing+` ([\d.]+) to ([\d.]+)`)
		if is := ratios(t, page, "### Table 3", strings.ToLower(routing)+", static"); said[0] != slices.Min(is) ||
			said[1] != slices.Max(is) {
			t.Errorf("over %s the summary has %v of the paper's throughput, and the page %v", routing, said, is)
		}
	}
}

// The same of its grid.
func TestWhatIsSaidInShortOfP2sGridIsInItsTables(t *testing.T) {
	short, page := inShort(t, "P2's grid, at the small scale"), sectionOf(t, "variants-grid")
	saidOfClaims(t, short, page)
	said := numbers(t, short, `that stands ([\d.]+) to ([\d.]+) % is lost over AODV where the paper has none`)
	lost := columnOf(t, page, "### Table 4", "aodv, static", 1)
	tenth := func(v float64) float64 { return math.Round(v*10) / 10 }
	if is := []float64{tenth(slices.Min(lost)), tenth(slices.Max(lost))}; !slices.Equal(said, is) {
		t.Errorf("the summary has %v %% lost over AODV, and the page %v", said, is)
	}
}

// How many claims of P3, P4 and P5 were decided how is what their pages have.
func TestWhatIsSaidInShortOfP3ToP5IsOnTheirPages(t *testing.T) {
	for name, paper := range map[string]string{"P3, at the small scale": "p3", "P4, at the small scale": "p4",
		"P5's six variants, at the small scale": "p5"} {
		page, err := os.ReadFile(filepath.Join(resultsFolder, paper+".md"))
		if err != nil {
			t.Fatal(err)
		}
		said := numbers(t, inShort(t, name), `Of (\d+) claims (\d+) (?:is|are) supported, (\d+) contradicted, (\d+) `+
			`cannot be decided, and (\d+) are about`)
		is := numbers(t, strings.Join(strings.Fields(string(page)), " "), `Of (\d+) claims that can be tested this run `+
			`supports (\d+) and contradicts (\d+); (\d+) cannot be decided by it, and (\d+) it does not ask`)
		if !slices.Equal(said, is) {
			t.Errorf("of %s the summary says %v, and the page has %v", paper, said, is)
		}
	}
}

// The differences that the summary says of P3 and P4 are those of their pages, rounded.
func TestWhatIsSaidInShortOfP3AndP4IsInTheirTables(t *testing.T) {
	for _, c := range []struct {
		paper, said, is string
		per             float64 // of the page's unit
	}{
		{"P3", `carries ([\d.]+) ± ([\d.]+) kbit/s more than ADV`,
			`\| P3\.1 .*?dsr against adv: difference \+([\d.]+) ± ([\d.]+) kbit`, 1},
		{"P3", `\(P3\.3, ([\d.]+) ± ([\d.]+) kbit/s more\)`,
			`\| P3\.3 .*?difference \+([\d.]+) ± ([\d.]+) kbit`, 1},
		{"P3", `\(P3\.2, ([\d.]+) ± ([\d.]+) s sooner\)`,
			`\| P3\.2 .*?difference −([\d.]+) ± ([\d.]+) ms`, 1000},
		{"P3", `connections took ([\d.]+) s`, `\| connect time \| DSR \| 50 \| ([\d.]+) ± `, 1},
		{"P3", `published, ([\d.]+) ± ([\d.]+) packets a second more than DSR`,
			`\| P3\.56 .*?adv against dsr: difference \+([\d.]+) ± ([\d.]+) packets`, 1},
		{"P4", `is left with ([\d.]+) of .*? by the interval with 0 to ([\d.]+);`,
			`\| P4\.4 .*?ratio ([\d.]+) \(0 to ([\d.]+)\)`, 1},
		{"P4", `has ([\d.]+) ± ([\d.]+) kbit/s less`,
			`\| P4\.27 .*?10 m/s: R-TCP against newreno: difference −([\d.]+) ± ([\d.]+) kbit`, 1},
		{"P4", `carries ([\d.]+) of what NewReno does \(([\d.]+) to ([\d.]+)\)`,
			`\| P4\.22 .*?ratio ([\d.]+) \(([\d.]+) to ([\d.]+)\)`, 1},
		{"P4", `without congestion, ([\d.]+) ± ([\d.]+) kbit/s,`,
			`\| P4\.11 .*?difference \+([\d.]+) ± ([\d.]+) kbit`, 1},
		{"P4", `carries ([\d.]+) times what .*? \(([\d.]+) to ([\d.]+)\)`,
			`\| P4\.24 .*?window of 8 packets: .*?ratio ([\d.]+) \(([\d.]+) to ([\d.]+)\)`, 1},
		{"P4", `\(P4\.24, ([\d.]+) ± ([\d.]+) kbit/s\)`,
			`\| P4\.24 .*?window of 8 packets: .*?difference \+([\d.]+) ± ([\d.]+) kbit`, 1},
		{"P4", `\(P4\.8, ([\d.]+) ± ([\d.]+) kbit/s less\)`,
			`\| P4\.8 .*?5 m/s, R-TCP against newreno: difference −([\d.]+) ± ([\d.]+) kbit`, 1},
	} {
		page, err := os.ReadFile(filepath.Join(resultsFolder, strings.ToLower(c.paper)+".md"))
		if err != nil {
			t.Fatal(err)
		}
		said, is := numbers(t, inShort(t, c.paper+", at the small scale"), c.said), numbers(t, string(page), c.is)
		for i := range said {
			if math.Abs(said[i]*c.per/is[i]-1) > 0.025 { // two digits
				t.Errorf("%s: the summary says %v, and the page has %v", c.said, said, is)
			}
		}
	}
}

// saidOfClaims holds how many claims were decided how, and those that are named, to a section of P2's page.
func saidOfClaims(t *testing.T, short, page string) {
	t.Helper()
	decided := map[string][]string{}
	claims := regexp.MustCompile(`(?m)^\| P2[ .]((?:chain\.|grid\.)?\d+) [^|]*\| (supported|contradicted|cannot be ` +
		`decided)(?:, direction only)? \|`)
	for _, m := range claims.FindAllStringSubmatch(page, -1) {
		decided[m[2]] = append(decided[m[2]], m[1])
	}
	said := numbers(t, short, `Of (\d+) claims (\d+) are supported, (\d+) contradicted and (\d+) cannot be decided`)
	supported, contradicted, open := len(decided["supported"]), len(decided["contradicted"]),
		len(decided["cannot be decided"])
	if is := []float64{float64(supported + contradicted + open), float64(supported), float64(contradicted),
		float64(open)}; !slices.Equal(said, is) {
		t.Errorf("the summary says %v of the claims, and the page has %v", said, is)
	}
	for _, v := range []struct{ begin, verdict string }{
		{"As published:", "supported"}, {"Otherwise than published:", "contradicted"}} {
		_, sentence, there := strings.Cut(short, v.begin)
		sentence, _, _ = strings.Cut(sentence, ". ")
		named := regexp.MustCompile(`(?:chain|grid|P2)\.\d+`).FindAllString(sentence, -1)
		if len(named) == 0 && len(decided[v.verdict]) == 0 && strings.TrimSpace(sentence) == "nothing" {
			continue
		}
		if !there || len(named) == 0 {
			t.Errorf("the summary has no %q with claims", v.begin)
		}
		if v.verdict == "contradicted" && len(named) != contradicted {
			t.Errorf("the summary names %v as contradicted, and the page has %v", named, decided[v.verdict])
		}
		for _, claim := range named {
			if !slices.Contains(decided[v.verdict], strings.TrimPrefix(claim, "P2.")) {
				t.Errorf("the summary has %s among %q, and the page does not have it %s", claim, v.begin, v.verdict)
			}
		}
	}
}

// orders are how many the page compares, how many of them are turned, and how many beyond noise.
func orders(t *testing.T, page string) []float64 {
	t.Helper()
	page = strings.Join(strings.Fields(page), " ")
	out := []float64{0, 0, float64(strings.Count(page, "(beyond noise)"))}
	const counted = `Of (\d+) orders of two variants or protocols that could be compared, the other way round here: (\d+)`
	for _, m := range regexp.MustCompile(counted).FindAllString(page, -1) {
		for i, n := range numbers(t, m, counted) {
			out[i] += n
		}
	}
	return out
}

// What the summary says of P2's moving chain: its throughput beside the paper's, and how many of its
// cells carry more than the standing chain in the 67 s before the cut, of 360, so that something came
// after it.
func TestP2sMovingChainInShort(t *testing.T) {
	short, page := inShort(t, "P2's chain"), sectionOf(t, "variants-chain")
	var beside []float64
	cells, after := 0, 0
	for _, routing := range []string{"aodv", "dsr", "dsdv"} {
		beside = append(beside, ratios(t, page, "### Table 3", routing+", mobile")...)
		stands, moves := columnOf(t, page, "### Table 3", routing+", static", 1), columnOf(t, page, "### Table 3",
			routing+", mobile", 1)
		for i := range stands {
			cells++
			if moves[i] > 1.02*stands[i]*67/360 {
				after++
			}
		}
	}
	said := numbers(t, short, `middle moves carries ([\d.]+) to ([\d.]+) times the paper's`)
	if is := []float64{slices.Min(beside), slices.Max(beside)}; !slices.Equal(said, is) {
		t.Errorf("the summary has %v of the paper's throughput, and the page %v", said, is)
	}
	said = numbers(t, short, `paper's, over DSR ([\d.]+) to ([\d.]+); in`)
	if is := ratios(t, page, "### Table 3", "dsr, mobile"); said[0] != slices.Min(is) || said[1] != slices.Max(is) {
		t.Errorf("of the moving chain over DSR the summary has %v, and the page %v", said, is)
	}
	said = numbers(t, short, `in (\d+) of its (\d+) cells data comes after the cut`)
	if is := []float64{float64(after), float64(cells)}; !slices.Equal(said, is) {
		t.Errorf("the summary has %v cells in which data comes after the cut, and the page %v", said, is)
	}
}

// What the summary says of P2's chain and loss.
func TestP2sChainLosesInShort(t *testing.T) {
	short, page := inShort(t, "P2's chain"), sectionOf(t, "variants-chain")
	numbers(t, short, `on the chain that stands nothing is lost, in any of (\d+) trials`)
	var moves, dsr, others []float64
	for _, routing := range []string{"aodv", "dsr", "dsdv"} {
		if stands := columnOf(t, page, "### Table 1", routing+", static", 1); slices.Max(stands) != 0 {
			t.Errorf("over %s the page has losses on the chain that stands: %v", routing, stands)
		}
		moves = append(moves, columnOf(t, page, "### Table 1", routing+", mobile", 1)...)
		if beside := ratios(t, page, "### Table 1", routing+", mobile"); routing == "dsr" {
			dsr = beside
		} else {
			others = append(others, beside...)
		}
	}
	said := numbers(t, short, `On the other ([\d.]+) to ([\d.]+) % are lost`)
	if is := []float64{slices.Min(moves), slices.Max(moves)}; !slices.Equal(said, is) {
		t.Errorf("the summary has %v %% lost where the middle moves, and the page %v", said, is)
	}
	said = numbers(t, short, `over DSR ([\d.]+) to ([\d.]+) times the paper's, over AODV and DSDV ([\d.]+) to ([\d.]+) times`)
	for i, is := range []float64{slices.Min(dsr), slices.Max(dsr), slices.Min(others), slices.Max(others)} {
		if math.Abs(is-said[i]) > 0.1 {
			t.Errorf("the summary has %v of the paper's loss, and the page %v and %v", said, dsr, others)
		}
	}
}

// inShort is an entry of the summary, in one line.
func inShort(t *testing.T, of string) string {
	t.Helper()
	_, entry, there := strings.Cut(textOf(t, filepath.Join(resultsFolder, "README.md")), "- **"+of+".**")
	if !there {
		t.Fatalf("the results' summary has no entry of %s", of)
	}
	entry, _, _ = strings.Cut(entry, "\n- ")
	return strings.Join(strings.Fields(entry), " ") + " "
}

// sectionOf is what P2's page has of a run.
func sectionOf(t *testing.T, run string) string {
	t.Helper()
	_, section, there := strings.Cut(textOf(t, filepath.Join(resultsFolder, "p2.md")), "\n## "+run+" ")
	if !there {
		t.Fatalf("P2's page has no section of %s", run)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// numbers are what the groups of a pattern have.
func numbers(t *testing.T, text, pattern string) (out []float64) {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("nothing like %q in %q", pattern, text)
	}
	for _, group := range m[1:] {
		v, err := strconv.ParseFloat(group, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// ratios are ours ÷ paper in a table's rows that begin so.
func ratios(t *testing.T, page, table, row string) []float64 {
	t.Helper()
	return columnOf(t, page, table, row, 3)
}

// columnOf gives the numbers of a column, without their intervals, in a table's rows that begin so.
func columnOf(t *testing.T, page, table, row string, column int) (out []float64) {
	t.Helper()
	_, rows, _ := strings.Cut(page, table)
	rows, _, _ = strings.Cut(rows, "\n### ")
	for line := range strings.Lines(rows) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| "+row) && len(cells) == 5 {
			number, _, _ := strings.Cut(cells[column], " ")
			v, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no rows that begin with %q", table, row)
	}
	return out
}
