//go:build e2e

package documents

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// The site is built strictly: a page that is in no menu, or a link that leads
// nowhere, is an error. It must open offline, so it fetches nothing.
func TestE2ETheSiteIsWholeAndOpensOffline(t *testing.T) {
	site := builtSite(t)
	t.Run("search", func(t *testing.T) { searchFromAFolder(t, site) })
	found, err := filepath.Glob(filepath.Join(site, "*.html"))
	if err != nil || len(found) < 16 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	results, err := filepath.Glob(filepath.Join(site, "results", "*.html"))
	if err != nil || len(results) < 6 {
		t.Fatalf("%d pages of results, %v", len(results), err)
	}
	links := 0
	for _, page := range append(found, results...) {
		links += checkPage(t, site, page)
	}
	t.Logf("%d pages, %d links", len(found), links)
	if links < 500 {
		t.Error("the pages were not read")
	}
}

// builtSite is the folder of the site.
func builtSite(t *testing.T) string {
	t.Helper()
	testnet.Need(t, "../../.tools/site/bin/zensical")
	site := filepath.Join(t.TempDir(), "site")
	if out, err := exec.Command("../../scripts/site", site).CombinedOutput(); err != nil {
		t.Fatalf("build the site: %v\n%s", err, out)
	}
	return site
}

// searchFromAFolder finds a term in the glossary from another page, without a server.
func searchFromAFolder(t *testing.T, site string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := browser.Script(ctx, t, "site_search.js", "file://"+filepath.Join(site, "results/p1.html"),
		"stopping rule", site+"/glossary.html").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("search for \"stopping rule\": %v\n%s\nwant the glossary found, and nothing asked of a network",
			err, out)
	}
}

var (
	fetched = regexp.MustCompile(`<(?:script|img|iframe|source)[^>]*\ssrc="?([^"\s>]+)|<link[^>]*rel="?(?:stylesheet|icon|preconnect|preload)[^>]*>`)
	linked  = regexp.MustCompile(`\shref="([^"]*)"`)
	anchor  = regexp.MustCompile(`\sid="([^"]+)"`)
	address = regexp.MustCompile(`^(?:https?:)?//`)
)

// checkPage follows every link of a page that stays in the site.
func checkPage(t *testing.T, site, page string) (links int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fetched.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[0], "://") {
			t.Errorf("%s fetches something: %s", filepath.Base(page), m[0])
		} else if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); m[1] != "" && err != nil {
			t.Errorf("%s shows %s: %v", filepath.Base(page), m[1], err)
		}
	}
	for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
		u, err := url.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
		if err != nil {
			t.Errorf("%s: %q: %v", filepath.Base(page), m[1], err)
			continue
		}
		if address.MatchString(m[1]) || u.Scheme != "" {
			continue
		}
		links++
		to := page
		if u.Path != "" {
			to = filepath.Join(filepath.Dir(page), u.Path)
		}
		target, err := os.ReadFile(to)
		if err != nil {
			if info, statErr := os.Stat(to); statErr != nil || !info.IsDir() {
				t.Errorf("%s links to %s: %v", filepath.Base(page), m[1], err)
			}
			continue
		}
		if u.Fragment != "" && strings.HasSuffix(to, ".html") && !hasAnchor(string(target), u.Fragment) {
			t.Errorf("%s links to %s, and there is no such place", filepath.Base(page), m[1])
		}
	}
	return links
}

func hasAnchor(page, id string) bool {
	for _, m := range anchor.FindAllStringSubmatch(page, -1) {
		if m[1] == id {
			return true
		}
	}
	return false
}
