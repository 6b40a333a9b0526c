package attacks

//go:generate go test . -run ^TestTable$ -update

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into SECURITY.md")

// classes say who attacks, in the order of the table.
var classes = []struct{ word, title string }{
	{"air", "A stranger on the air"},
	{"network", "A stranger on the control network"},
	{"phone", "A paired phone"},
	{"face", "The network face, taken over"},
	{"local", "Another user of the machine"},
	{"archive", "An archive from elsewhere"},
	{"file", "A campaign, a track, a log or a configuration from elsewhere"},
	{"controller", "A controller that is not the node's, or not the experimenter's"},
}

const (
	root  = "../.."
	begin = "<!-- attacks: written by go generate ./test/attacks -->\n"
	end   = "<!-- /attacks -->\n"
)

// attack is a row: a test says it in a comment
//
//	//attack:air a GO that was heard | it names its receiver
//	//attack:and and its exchange
//
// above itself or above one of its cases. Another test of the same attack says
// it without what refuses it.
type attack struct {
	class, what, refusal string
	tests                []tried
}

// tried is a test, and how many cases it has in tables.
type tried struct {
	name  string
	cases int
}

func (t tried) String() string {
	if t.cases == 0 {
		return "`" + t.name + "`"
	}
	return fmt.Sprintf("`%s` (%d)", t.name, t.cases)
}

var directive = regexp.MustCompile(`^//attack:(\S+) (.*)$`)

// TestTable holds the table of SECURITY.md against the tests' own words.
func TestTable(t *testing.T) {
	path := filepath.Join(root, "SECURITY.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("SECURITY.md has no %q and %q", begin, end)
	}
	want := before + begin + table(t, collect(t)) + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Error("the table of SECURITY.md is not that of the tests; run: go generate ./test/attacks")
	}
}

func table(t *testing.T, attacks []attack) string {
	t.Helper()
	var out strings.Builder
	all := map[string]int{} // a test without a table is one case
	for _, a := range attacks {
		for _, one := range a.tests {
			all[one.name] = max(one.cases, 1)
		}
	}
	cases := 0
	for _, n := range all {
		cases += n
	}
	fmt.Fprintf(&out, "%d attacks, in %d cases; how many a test tries of a table stands behind it.\n\n"+
		"| attack | what refuses it | test |\n|---|---|---|\n", len(attacks), cases)
	for _, c := range classes {
		fmt.Fprintf(&out, "| **%s** | | |\n", c.title)
		for _, a := range attacks {
			if a.class == c.word {
				var tests []string
				for _, one := range a.tests {
					tests = append(tests, one.String())
				}
				fmt.Fprintf(&out, "| %s | %s | %s |\n", a.what, a.refusal, strings.Join(tests, ", "))
			}
		}
	}
	return out.String()
}

// collect reads every test's directives, in the order of their files.
func collect(t *testing.T) (out []attack) {
	t.Helper()
	at := map[string]int{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() && (e.Name() == ".tools" || e.Name() == ".git" || e.Name() == "testdata") {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		return eachAttack(t, path, func(a attack) {
			key := a.class + " " + a.what
			i, known := at[key]
			if !known {
				i = len(out)
				at[key], out = i, append(out, attack{class: a.class, what: a.what})
			}
			if a.refusal != "" && out[i].refusal != "" && a.refusal != out[i].refusal {
				t.Errorf("%s: %q is refused by %q, and by %q", path, a.what, a.refusal, out[i].refusal)
			}
			out[i].refusal = max(out[i].refusal, a.refusal)
			if !slices.Contains(out[i].tests, a.tests[0]) {
				out[i].tests = append(out[i].tests, a.tests[0])
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range out {
		if a.refusal == "" || !slices.ContainsFunc(classes, func(c struct{ word, title string }) bool {
			return c.word == a.class
		}) {
			t.Errorf("%s: attack %q of class %q lacks what refuses it, or has no class of %v", a.tests, a.what, a.class,
				classes)
		}
	}
	return out
}

// eachAttack gives the attacks of a file.
func eachAttack(t *testing.T, path string, do func(attack)) error {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "//attack:") || strings.HasSuffix(path, "attacks/table_test.go") {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		var said []string
		for _, c := range group.List {
			m := directive.FindStringSubmatch(c.Text)
			switch {
			case m == nil:
			case m[1] == "and" && len(said) > 0:
				said[len(said)-1] += " " + m[2]
			default:
				said = append(said, m[1]+" "+m[2])
			}
		}
		for _, one := range said {
			class, what, _ := strings.Cut(one, " ")
			what, refusal, _ := strings.Cut(what, " | ")
			test := testOf(file, group)
			if test == nil {
				t.Errorf("%s: %q is said outside of a test", set.Position(group.Pos()), what)
				continue
			}
			do(attack{class: class, what: what, refusal: refusal, tests: []tried{{test.Name.Name, casesOf(test)}}})
		}
	}
	return nil
}

// testOf is the test that a comment stands above or in.
func testOf(file *ast.File, group *ast.CommentGroup) *ast.FuncDecl {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
			continue
		}
		if f.Doc == group || f.Pos() <= group.Pos() && group.End() <= f.End() {
			return f
		}
	}
	return nil
}

// casesOf counts the elements of the tables through which a test goes with
// something to say about each.
func casesOf(test *ast.FuncDecl) (n int) {
	tables := map[string]*ast.CompositeLit{}
	ast.Inspect(test, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.AssignStmt:
			name, named := x.Lhs[0].(*ast.Ident)
			if table, ok := x.Rhs[0].(*ast.CompositeLit); ok && named {
				tables[name.Name] = table
			}
		case *ast.RangeStmt:
			table, _ := x.X.(*ast.CompositeLit)
			if name, ok := x.X.(*ast.Ident); ok {
				table = tables[name.Name]
			}
			if table != nil && says(x.Body) {
				n += len(table.Elts)
			}
		}
		return true
	})
	return n
}

// says reports whether a loop fails the test for one of its cases, and goes on.
func says(body *ast.BlockStmt) (said bool) {
	ast.Inspect(body, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok {
			of, _ := f.X.(*ast.Ident)
			told := slices.Contains([]string{"Error", "Errorf", "Run"}, f.Sel.Name)
			said = said || of != nil && of.Name == "t" && told
		}
		return true
	})
	return said
}
