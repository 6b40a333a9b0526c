package imports

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "fieldmesh.dev/fieldmesh"

// rule says which of our packages those below From may import. A pattern ends
// in "/" for everything below a folder, else it names one package; both are
// relative to the module. Deny goes before Allow; an empty Allow allows all.
type rule struct {
	From  string
	Allow []string
	Deny  []string
	But   []string // packages that the rule does not hold for
	Tests []string // allowed besides, in files of tests
	Why   string
}

var rules = []rule{
	{
		From:  "protocols/",
		Allow: []string{"protocols/", "internal/keys"},
		Tests: []string{"test/fuzz", "test/contract"},
		Why:   "what crosses a link must be readable by any program without the machinery of ours",
	},
	{
		From:  "protocols/manet/",
		Allow: []string{"protocols/manet/"},
		Tests: []string{"protocols/wire", "test/fuzz"},
		Why:   "the routing protocols are of use without the rest",
	},
	{
		From:  "internal/",
		Allow: []string{"internal/", "protocols/"},
		Tests: []string{"test/testnet/", "test/fuzz"},
		Why:   "what controller, agent and rehearsal share knows none of them",
	},
	{
		From: "controller/",
		Deny: []string{"node-agent/"},
		Why:  "controller and agent are installed apart and in different versions; they meet in protocols/wire only",
	},
	{
		From: "controller/",
		Deny: []string{"rehearsal/"},
		But:  []string{"controller/cmd", "controller/cmd/"},
		Why:  "a road has no emulated field; only the command line, which starts one, knows it",
	},
	{
		From: "node-agent/",
		Deny: []string{"controller/", "rehearsal/"},
		Why:  "an agent runs on a phone and must work with no controller at all",
	},
	{
		From: "node-agent/",
		Deny: []string{"node-agent/host/netstack", "node-agent/host/process", "node-agent/host/wireless"},
		But:  []string{"node-agent/host/"},
		Why:  "the root process alone changes the machine, and has the undo on disk first",
	},
	{
		From:  "rehearsal/",
		Allow: []string{"rehearsal/", "protocols/", "internal/"},
		Tests: []string{"test/testnet/", "test/schemas", "test/fuzz"},
		Why:   "the emulated field starts real agents; one that reached into them would rehearse something else",
	},
	{
		From: "",
		Deny: []string{"test/testnet/", "test/synthetic", "test/schemas", "test/model", "test/fuzz", "test/contract",
			"protocols/manet/simulation/simtest", "protocols/manet/packettest"},
		// A test may use what its package's other rules let through.
		Tests: []string{"test/testnet/", "test/synthetic", "test/schemas", "test/model", "test/fuzz", "test/contract",
			"protocols/manet/simulation/simtest", "protocols/manet/packettest"},
		Why: "what makes up networks and data for tests has no place in a program",
	},
}

// linked says what may not get into a package by whatever way.
var linked = []struct {
	From string
	Deny []string
	But  []string
	Why  string
}{
	{
		From: "node-agent/host",
		Deny: []string{"protocols/manet/", "node-agent/routing/manetd"},
		But:  []string{"protocols/manet/signalling"},
		Why:  "the root process starts routing protocols as processes of their own; none of their code is in its reach",
	},
}

// outside restricts imports of packages that are not ours.
var outside = []struct {
	Import string
	Only   []string // packages (patterns) that may import it
	Why    string
}{
	{
		Import: "github.com/spf13/cobra",
		Only: []string{"cmd/", "controller/cmd", "controller/cmd/", "node-agent/cmd", "internal/flags",
			"packaging/man"},
		Why: "a package that knows of command lines cannot be used without one",
	},
	{
		Import: "testing",
		Only: []string{"test/testnet/", "test/synthetic", "test/fuzz", "test/contract",
			"protocols/manet/simulation/simtest", "protocols/manet/packettest"},
		Why: "what is linked into a program must not carry the test framework",
	},
}

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// name is the package's path relative to the module; ok is false for a
// package that is not ours.
func name(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func matches(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if p == "" || pkg == p || strings.HasSuffix(p, "/") && strings.HasPrefix(pkg+"/", p) {
			return true
		}
	}
	return false
}

// breaks reports whether a package may not import another by this rule.
func (r rule) breaks(from, to string, test bool) bool {
	if !matches([]string{r.From}, from) || matches(r.But, from) {
		return false
	}
	if test && matches(r.Tests, to) || from == to {
		return false
	}
	if matches(r.Deny, to) {
		return !strings.HasPrefix(from, "test/") // the test packages themselves build on one another
	}
	return len(r.Allow) > 0 && !matches(r.Allow, to)
}

// list loads every package of the module, those of the tags e2e and guest included.
func list(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", "e2e,guest", "-e", "-json=ImportPath,Imports,TestImports,XTestImports",
		"./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list the module's packages: %v", err)
	}
	var pkgs []goPackage
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatalf("read the module's packages: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestImportRules(t *testing.T) {
	pkgs := list(t)
	if len(pkgs) < 2 {
		t.Fatalf("found %d packages; the rules were not applied to anything", len(pkgs))
	}
	for _, p := range pkgs {
		from, ok := name(p.ImportPath)
		if !ok {
			t.Fatalf("package %q is not in module %q", p.ImportPath, module)
		}
		for _, problem := range check(from, p.Imports, false) {
			t.Error(problem)
		}
		for _, problem := range check(from, append(p.TestImports, p.XTestImports...), true) {
			t.Error(problem)
		}
	}
}

// TestLinkRules follows the imports from each package that linked is about.
func TestLinkRules(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range list(t) {
		from, _ := name(p.ImportPath)
		for _, path := range p.Imports {
			if to, ours := name(path); ours {
				imports[from] = append(imports[from], to)
			}
		}
	}
	for _, l := range linked {
		if len(imports[l.From]) == 0 {
			t.Errorf("%s imports nothing: the rule is about no package", l.From)
		}
		way := map[string]string{l.From: l.From}
		for next := []string{l.From}; len(next) > 0; next = next[1:] {
			if matches(l.Deny, next[0]) && !matches(l.But, next[0]) {
				t.Errorf("%s: %s", way[next[0]], l.Why)
			}
			for _, to := range imports[next[0]] {
				if way[to] == "" {
					way[to] = way[next[0]] + " imports " + to
					next = append(next, to)
				}
			}
		}
	}
}

// check applies every rule to the imports of one package.
func check(from string, imports []string, test bool) []string {
	var out []string
	where := from
	if test {
		where += " (tests)"
	}
	for _, path := range imports {
		to, ours := name(path)
		for _, r := range rules {
			if ours && r.breaks(from, to, test) {
				out = append(out, fmt.Sprintf("%s imports %s: %s", where, to, r.Why))
			}
		}
		for _, o := range outside {
			if !test && path == o.Import && !matches(o.Only, from) {
				out = append(out, fmt.Sprintf("%s imports %s: %s", where, path, o.Why))
			}
		}
	}
	return out
}

// The rules bite: each of these imports must be refused or let through.
func TestRulesBite(t *testing.T) {
	for _, c := range []struct {
		from, to string
		test     bool
		refused  bool
	}{
		{"protocols/wire", "internal/version", false, true},
		{"protocols/pairing", "internal/keys", false, false},
		{"protocols/manet/aodv", "protocols/manet", false, false},
		{"protocols/manet/aodv", "protocols/wire", false, true},
		{"internal/influx", "protocols/wire", false, false},
		{"internal/influx", "controller/archive", true, true},
		{"controller/fleet", "node-agent/spool", false, true},
		{"controller/fleet", "node-agent/spool", true, true},
		{"controller/cmd", "protocols/wire", false, false},
		{"node-agent/api", "controller/plan", false, true},
		{"node-agent/api", "internal/version", false, false},
		{"node-agent/trial", "node-agent/host/netstack", false, true},
		{"node-agent/host/change", "node-agent/host/netstack", false, false},
		{"rehearsal/field", "node-agent/host", false, true},
		{"rehearsal/field", "test/testnet", false, true},
		{"rehearsal/field", "test/testnet", true, false},
		{"controller/report", "test/synthetic", false, true},
		{"controller/report", "test/synthetic", true, false},
		{"test/synthetic", "test/testnet", false, false},
	} {
		got := check(c.from, []string{module + "/" + c.to}, c.test)
		if (len(got) > 0) != c.refused {
			t.Errorf("%s imports %s (test %v): refused %v, want %v: %v", c.from, c.to, c.test, len(got) > 0, c.refused,
				got)
		}
	}
	for from, refused := range map[string]bool{"controller/plan": true, "controller/cmd": false} {
		if got := check(from, []string{"github.com/spf13/cobra"}, false); (len(got) > 0) != refused {
			t.Errorf("%s imports cobra: %v, want refused %v", from, got, refused)
		}
	}
}
