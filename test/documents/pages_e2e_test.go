//go:build e2e

package documents

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// Every page of the site, the report of a run with mishaps, and the live page fit a
// laptop's window and a phone's, light and dark, and paper; their text can be read, and
// their pictures are there. With FIELDMESH_PICTURES each view is drawn into that folder.
func TestE2EEveryPageFitsTheScreen(t *testing.T) {
	site := builtSite(t)
	var pages []string
	for _, pattern := range []string{"*.html", "results/*.html"} {
		found, err := filepath.Glob(filepath.Join(site, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			if filepath.Base(page) == "404.html" { // a server's, which shows it at any address
				continue
			}
			name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(page, site+"/"), ".html"), "/", "-")
			pages = append(pages, "site-"+name+"=file://"+page)
		}
	}
	if len(pages) < 30 {
		t.Fatalf("the site has %d pages", len(pages))
	}
	run := crooked(t).Dir()
	if out, err := exec.Command(filepath.Join(programs, "fieldmesh"), "report", run).CombinedOutput(); err != nil {
		t.Fatalf("report: %v\n%s", err, out)
	}
	watched := synthetic.Run(t, synthetic.Options{Seed: 18, Speeds: []float64{2.8, 8.3}, Repetitions: 1}).Dir()
	_, address := testnet.Live(t, filepath.Join(programs, "fieldmesh"), watched)
	for name, args := range map[string][]string{"help": {"rehearse", "--help"},
		"plan-show":    {"plan", "show", "campaigns/velocity.yaml"},
		"plan-predict": {"plan", "predict", "campaigns/velocity.yaml"}} {
		pages = append(pages, "terminal-"+name+"=file://"+terminalPage(t, args))
	}
	pages = append(pages, "report=file://"+filepath.Join(run, "report.html"), "live="+address)

	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c := browser.Script(ctx, t, "pages_look.js", slices.Concat([]string{os.Getenv("FIELDMESH_PICTURES")}, pages)...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("look at the pages: %v\n%s", err, out)
	}
	for fault := range strings.Lines(string(out)) {
		t.Error(strings.TrimSpace(fault))
	}
	t.Logf("%d pages, five views of each", len(pages))
}

// terminalPage is a page with what fieldmesh writes to a terminal of 80 columns.
func terminalPage(t *testing.T, args []string) (path string) {
	t.Helper()
	text := testnet.OnTerminal(t, 80, func(out *os.File) error {
		c := exec.Command(filepath.Join(programs, "fieldmesh"), args...)
		c.Dir = "../.."
		c.Stdout = out
		return c.Run()
	})
	path = filepath.Join(t.TempDir(), "terminal.html")
	page := fmt.Sprintf(`<!doctype html><meta charset="utf-8"><title>fieldmesh</title>
<style>body { color: #14181c; background: #fff } pre { overflow-x: auto; line-height: 1.35 }
@media screen and (prefers-color-scheme: dark) { body { color: #eef2f5; background: #12161a } }</style>
<pre>$ fieldmesh %s
`, html.EscapeString(strings.Join(args, " ")))
	for line := range strings.Lines(text) {
		page += "<span>" + html.EscapeString(line) + "</span>"
	}
	if err := os.WriteFile(path, []byte(page+"</pre>"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
