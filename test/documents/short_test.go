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
	short, page := p2InShort(t), textOf(t, filepath.Join(resultsFolder, "p2.md"))
	decided := map[string][]string{}
	claims := regexp.MustCompile(`(?m)^\| P2 (chain\.\d+) [^|]*\| (supported|contradicted|cannot be decided) \|`)
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
		named := regexp.MustCompile(`chain\.\d+`).FindAllString(sentence, -1)
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
			if !slices.Contains(decided[v.verdict], claim) {
				t.Errorf("the summary has %s among %q, and the page does not have it %s", claim, v.begin, v.verdict)
			}
		}
	}
	for _, routing := range []string{"AODV", "DSR", "DSDV"} {
		said := numbers(t, short, `over `+routing+` ([\d.]+) to ([\d.]+)`)
		if is := ratios(t, page, "### Table 3", strings.ToLower(routing)+", static"); said[0] != slices.Min(is) ||
			said[1] != slices.Max(is) {
			t.Errorf("over %s the summary has %v of the paper's throughput, and the page %v", routing, said, is)
		}
	}
}

// Nothing comes after the cut of P2's moving chain, so the summary says: then it carries what
// the standing one does in the 67 s before, of 360. What began late, and what was under way at the
// cut, is less than a fiftieth of that.
func TestNothingComesAfterTheCutOfP2sChain(t *testing.T) {
	if short := p2InShort(t); !strings.Contains(short, "after the cut nothing comes any more") {
		t.Fatalf("the summary does not say it: %s", short)
	}
	page := textOf(t, filepath.Join(resultsFolder, "p2.md"))
	for _, routing := range []string{"aodv", "dsr", "dsdv"} {
		stands, moves := columnOf(t, page, "### Table 3", routing+", static", 1), columnOf(t, page, "### Table 3",
			routing+", mobile", 1)
		for i := range stands {
			if before := stands[i] * 67 / 360; math.Abs(moves[i]-before) > 0.02*before {
				t.Errorf("over %s, variant %d: the moving chain carries %g kbit/s, the standing one in 67 s of 360 %g",
					routing, i, moves[i], before)
			}
		}
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
