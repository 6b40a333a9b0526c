package documents

import (
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
	short, page := p2InShort(t), textOf(t, filepath.Join(resultsFolder, "p2.md"))
	decided := map[string][]string{}
	claims := regexp.MustCompile(`(?m)^\| P2[ .]((?:chain\.)?\d+) [^|]*\| (supported|contradicted|cannot be decided) \|`)
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
		named := regexp.MustCompile(`(?:chain|P2)\.\d+`).FindAllString(sentence, -1)
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
	said = numbers(t, short, `Of the tables' (\d+) orders (\d+) are the other way round here, (\d+) of them beyond noise`)
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
	short, page := p2InShort(t), textOf(t, filepath.Join(resultsFolder, "p2.md"))
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

// p2InShort is the summary's entry, in one line.
func p2InShort(t *testing.T) string {
	t.Helper()
	_, entry, there := strings.Cut(textOf(t, filepath.Join(resultsFolder, "README.md")), "- **P2's chain.**")
	if !there {
		t.Fatal("the results' summary has no entry of P2's chain")
	}
	entry, _, _ = strings.Cut(entry, "\n- ")
	return strings.Join(strings.Fields(entry), " ") + " "
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
