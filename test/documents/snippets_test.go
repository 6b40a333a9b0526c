package documents

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snippet is a block of code in a page that a reader would put to a run's data.
type snippet struct {
	page     string // its file's name
	language string // pandas | duckdb | influxql
	text     string
}

// snippets are those of the pages, in order. A new one is executed as soon as it
// stands here: see TestSnippetsGiveTheReportsNumbers.
var snippets = []struct{ page, language string }{
	{"desk.md", "pandas"},
	{"desk.md", "duckdb"},
	{"duckdb.md", "duckdb"}, // these, over several runs: TestQuestionsOverAllRunsAreAnswered
	{"duckdb.md", "duckdb"},
	{"duckdb.md", "duckdb"},
	{"duckdb.md", "duckdb"},
	{"duckdb.md", "duckdb"},
	{"duckdb.md", "duckdb"},
	{"duckdb.md", "duckdb"},
	{"README.md", "influxql"}, // of the dashboards
}

var (
	indented = regexp.MustCompile(`(?m)^    .+(?:\n+    .+)*`)
	fenced   = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")
	query    = regexp.MustCompile(`(?i)^(SELECT|WITH|FROM|CREATE)\b`)
	python   = regexp.MustCompile(`^(import|from) \w`)
	inline   = regexp.MustCompile("(?i)`(SELECT [^`]*|import [^`]*|pandas\\.[^`]*)`")
)

// languageOf is that of a block; "" for commands, configuration and the like.
func languageOf(text string) string {
	switch {
	case python.MatchString(text):
		return "pandas"
	case query.MatchString(text) && strings.Contains(text, `"fm_`):
		return "influxql"
	case query.MatchString(text):
		return "duckdb"
	}
	return ""
}

// snippetsOf finds the snippets of a page.
func snippetsOf(page, text string) []snippet {
	var out []snippet
	add := func(block string) {
		block = strings.TrimSpace(strings.ReplaceAll("\n"+block, "\n    ", "\n"))
		if language := languageOf(block); language != "" {
			out = append(out, snippet{filepath.Base(page), language, block})
		}
	}
	for _, m := range indented.FindAllStringSubmatch(text, -1) {
		add(m[0])
	}
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		add(m[1])
	}
	return out
}

// allSnippets are those of all pages.
func allSnippets(t *testing.T) []snippet {
	t.Helper()
	var out []snippet
	for page, text := range pages(t) {
		out = append(out, snippetsOf(page, text)...)
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			t.Errorf("%s has %q in a line: put it into a block of its own, where a test executes it", page, m[1])
		}
	}
	return out
}

func TestEverySnippetIsExecuted(t *testing.T) {
	found := allSnippets(t)
	for i, s := range found {
		if i >= len(snippets) || s.page != snippets[i].page || s.language != snippets[i].language {
			t.Errorf("no test executes the %s of %s:\n%s", s.language, s.page, s.text)
		}
	}
	if len(found) != len(snippets) {
		t.Errorf("the pages have %d snippets, %d are executed", len(found), len(snippets))
	}
}

func TestSnippetsAreFound(t *testing.T) {
	const page = "Text\n\n    import pandas\n    x = 1\n\n    y = 2\n\nText\n\n    fieldmesh report " +
		"RUN\n\n```sql\nSELECT 1\n```\n\n    SELECT mean(\"mb\")\n    FROM \"fm_result\"\n"
	got := snippetsOf("a/b.md", page)
	want := []snippet{{"b.md", "pandas", "import pandas\nx = 1\n\ny = 2"},
		{"b.md", "influxql", "SELECT mean(\"mb\")\nFROM \"fm_result\""}, {"b.md", "duckdb", "SELECT 1"}}
	if len(got) != len(want) {
		t.Fatalf("found %q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("found %q, want %q", got[i], want[i])
		}
	}
}
