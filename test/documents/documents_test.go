package documents

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	controller "fieldmesh.dev/fieldmesh/controller/cmd"
	agent "fieldmesh.dev/fieldmesh/node-agent/cmd"
)

// typed finds commands in pages: in lines of code, and between back-quotes.
var typed = regexp.MustCompile("(?m)(?:^    (?:sudo )?|`(?:sudo )?)((fieldmesh|fieldmesh-agent) [a-z][^`\\n#|]*)")

// pages are those whose commands, links and names of tests have to be true.
func pages(t *testing.T) iter.Seq2[string, string] {
	t.Helper()
	var paths []string
	for _, pattern := range []string{
		"../../*.md", "../../docs/decisions/*.md", "../../field-guides/*.md", "../../field-guides/results/*.md",
		"../../dashboards/*.md", "../../android-app/*.md", "../../android-app/pictures/*.md", "../../packaging/*.md",
		"../../protocols/pairing/*.md",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no page is %s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	return func(yield func(path, text string) bool) {
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(path, string(text)) {
				return
			}
		}
	}
}

func TestPagesNameCommandsThatExist(t *testing.T) {
	found := map[string]int{}
	for page, text := range pages(t) {
		for _, m := range typed.FindAllStringSubmatch(text, -1) {
			root := controller.Root()
			if m[2] == "fieldmesh-agent" {
				root = agent.Root()
			}
			found[m[2]]++
			if problem := check(root, m[1]); problem != "" {
				t.Errorf("%s: %q: %s", page, m[1], problem)
			}
		}
	}
	if found["fieldmesh"] < 30 || found["fieldmesh-agent"] < 8 {
		t.Errorf("found %v: the pages were not read", found)
	}
}

// filledIn are errors about what a reader has yet to fill in: T for a number.
var filledIn = regexp.MustCompile(`needs an argument|invalid argument "[A-Z]+"`)

// check resolves a command as its program would, short of running it. "…"
// stands for what a reader fills in; a comma stands between two things to type.
func check(root *cobra.Command, line string) string {
	line, _, _ = strings.Cut(line, ",")
	words := strings.Fields(strings.ReplaceAll(line, "…", ""))[1:]
	c, rest, err := root.Find(words)
	switch {
	case err != nil:
		return err.Error()
	case c == root:
		return "there is no such command"
	}
	for i, w := range rest {
		if strings.HasPrefix(w, "-") {
			if err := c.ParseFlags(rest[i:]); err != nil && !filledIn.MatchString(err.Error()) {
				return err.Error()
			}
			break
		}
	}
	return ""
}

func TestCheckBites(t *testing.T) {
	for line, fine := range map[string]bool{
		"fieldmesh rehearse FILE": true, "fieldmesh rehearse --resume RUN": true, "fieldmesh keys issue NODE " +
			"--dir fleet": true,
		"fieldmesh rehearse --resum RUN": false, "fieldmesh dance": false, "fieldmesh nodes --flet x": false,
	} {
		if problem := check(controller.Root(), line); (problem == "") != fine {
			t.Errorf("%s: %q", line, problem)
		}
	}
}

// A page that another one links to is there.
func TestLinksBetweenPages(t *testing.T) {
	link := regexp.MustCompile(`(?m)(?:\]\(|^\[[^\]]+\]: )([^)#:\s]+)(?:#[^)\s]*)?(?:\)|$)`)
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}

// declaredTests are the names of all tests of the tree.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".tools" || e.Name() == ".git" || e.Name() == "node_modules" ||
			e.Name() == "target") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// A test that a page names is there.
func TestPagesNameTestsThatExist(t *testing.T) {
	there := declaredTests(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	found := 0
	for page, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if found++; !there[m[1]] {
				t.Errorf("%s names %s, which is nowhere", page, m[1])
			}
		}
	}
	if found < 60 {
		t.Errorf("%d tests are named: the pages were not read", found)
	}
}

// What a page gives to Kubernetes is YAML, and its pods have the runs mounted.
func TestManifestsInPagesHold(t *testing.T) {
	found := 0
	for page, text := range pages(t) {
		for _, block := range indented.FindAllString(text, -1) {
			block = strings.ReplaceAll("\n"+block, "\n    ", "\n")
			if !strings.HasPrefix(block, "\napiVersion:") {
				continue
			}
			found++
			var job struct {
				Spec struct {
					Template struct {
						Spec struct {
							Containers []struct {
								Args         []string
								VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
							}
							Volumes []struct{ Name string }
						}
					}
				}
			}
			if err := yaml.Unmarshal([]byte(block), &job); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			pod := job.Spec.Template.Spec
			if len(pod.Containers) != 1 || len(pod.Volumes) != 1 || len(pod.Containers[0].VolumeMounts) != 1 ||
				pod.Containers[0].VolumeMounts[0].Name != pod.Volumes[0].Name || len(pod.Containers[0].Args) != 1 {
				t.Errorf("%s: the pod is %+v", page, pod)
			}
		}
	}
	if found == 0 {
		t.Error("no manifest was found")
	}
}
