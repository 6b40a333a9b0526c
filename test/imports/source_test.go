package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a program of ours may not contain, and where it may all the same. The
// rules are about the source, not its imports: a string or a call.
var sourceRules = []struct {
	What   string
	Except []string // folders (or files) that may
	Found  func(n ast.Node) bool
	Why    string
}{
	{
		What: "a path below /proc/sys",
		// namespaces, and a device, that vanish whole
		Except: []string{"node-agent/host/", "test/testnet/", "rehearsal/field/", "node-agent/routing/manetd/"},
		Found:  func(n ast.Node) bool { return stringHas(n, "/proc/sys/net") && written(n) },
		Why:    "only the host process changes a node, with the undo on disk first",
	},
	{
		What: "a shell",
		Found: func(n ast.Node) bool {
			return calls(n, "exec", "Command", "CommandContext") && argumentIs(n, "sh", "bash", "/bin/sh", "/bin/bash")
		},
		Why: "the agent is root on somebody's phone; no text becomes a command line",
	},
	{
		What: "func init",
		Found: func(n ast.Node) bool {
			f, ok := n.(*ast.FuncDecl)
			return ok && f.Recv == nil && f.Name.Name == "init"
		},
		Why: "wiring is explicit; two nodes must be able to share a process",
	},
	{
		What:  "a comparison by the difference as an int",
		Found: comparesByDifference,
		Why:   "an int of 32 bits has no room for 2.2 s in nanoseconds; take cmp.Compare",
	},
	{
		What:  "a comment on a function that begins with another name",
		Found: saysAnotherName,
		Why:   "it is of a former name",
	},
}

// looksLikeAName is a word in which a capital follows a small letter.
var looksLikeAName = regexp.MustCompile(`^\w*[a-z][A-Z]\w*$`)

// saysAnotherName: the node is a function whose comment's first word looks like a name, and is not its own.
func saysAnotherName(n ast.Node) bool {
	f, ok := n.(*ast.FuncDecl)
	if !ok {
		return false
	}
	word, _, _ := strings.Cut(strings.TrimSpace(f.Doc.Text()), " ")
	return looksLikeAName.MatchString(word) && word != f.Name.Name
}

// comparesByDifference: the node is `return int(a.x - b.x)`.
func comparesByDifference(n ast.Node) bool {
	r, ok := n.(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return false
	}
	call, ok := r.Results[0].(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	to, _ := call.Fun.(*ast.Ident)
	minus, _ := call.Args[0].(*ast.BinaryExpr)
	if to == nil || to.Name != "int" || minus == nil || minus.Op != token.SUB {
		return false
	}
	a, _ := minus.X.(*ast.SelectorExpr)
	b, _ := minus.Y.(*ast.SelectorExpr)
	return a != nil && b != nil && a.Sel.Name == b.Sel.Name
}

// written: the node is a call that writes a file of that name.
func written(n ast.Node) bool {
	return calls(n, "os", "WriteFile", "Create", "OpenFile")
}

// calls: the node is a call of one of a package's functions.
func calls(n ast.Node, pkg string, funcs ...string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok || x.Name != pkg {
		return false
	}
	for _, f := range funcs {
		if sel.Sel.Name == f {
			return true
		}
	}
	return false
}

// stringHas: a string literal below the node contains the text.
func stringHas(n ast.Node, text string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		found = found || ok && lit.Kind == token.STRING && strings.Contains(lit.Value, text)
		return !found
	})
	return found
}

// argumentIs: a direct argument of the call is one of these literals.
func argumentIs(n ast.Node, words ...string) bool {
	for _, arg := range n.(*ast.CallExpr).Args {
		lit, ok := arg.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		for _, w := range words {
			if strings.Trim(lit.Value, "`\"") == w {
				return true
			}
		}
	}
	return false
}

func TestSourceRules(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		files++
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, problem := range inspect(t, rel, src) {
			t.Error(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the source: %v", err)
	}
	if files < 5 {
		t.Fatalf("found %d files of source; the rules were not applied to anything", files)
	}
}

func inspect(t *testing.T, rel string, src []byte) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, rel, src, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		t.Fatalf("parse %s: %v", rel, err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		for _, r := range sourceRules {
			if n != nil && !matches(r.Except, filepath.Dir(rel)) && r.Found(n) {
				out = append(out, fset.Position(n.Pos()).String()+": "+r.What+": "+r.Why)
			}
		}
		return true
	})
	return out
}

// The rules find what they are for.
func TestSourceRulesBite(t *testing.T) {
	for src, want := range map[string]int{
		`package a; func f() { os.WriteFile("/proc/sys/net/ipv4/ip_forward", nil, 0) }`: 1,
		`package a; func f() { os.ReadFile("/proc/sys/net/ipv4/ip_forward") }`:          0,
		`package a; func f() { exec.Command("sh", "-c", "true") }`:                      1,
		`package a; func f() { exec.CommandContext(c, "/usr/bin/iperf3", "-s") }`:       0,
		`package a; func init() {}`:                                       1,
		`package a; func f(a, b c) int { return int(a.at - b.at) }`:       1,
		`package a; func f(a, b c) int { return int(a.until - b.since) }`: 0,
		"package a\n\n// aheadNs is ahead.\nfunc aheadAt() {}":            1,
		"package a\n\n// aheadAt is ahead.\nfunc aheadAt() {}":            0,
		"package a\n\n// TCP is a transport.\nfunc aheadAt() {}":          0,
	} {
		if got := inspect(t, "node-agent/trial/a.go", []byte(src)); len(got) != want {
			t.Errorf("%s: found %v, want %d", src, got, want)
		}
	}
	src := []byte(`package a; func f() { os.WriteFile("/proc/sys/net/ipv4/ip_forward", nil, 0) }`)
	if got := inspect(t, "node-agent/host/a.go", src); len(got) != 0 {
		t.Errorf("the host process may write sysctls: %v", got)
	}
}
