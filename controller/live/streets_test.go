package live

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A map is drawn where a viewer looks, and is kept by the browser; what cannot be drawn is said, and is not kept.
func TestStreetsAreServed(t *testing.T) {
	town, err := os.ReadFile("../streets/testdata/town.pmtiles")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "runs", "run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, server := served(t, dir)
	get := func(target string) (int, http.Header, string) {
		t.Helper()
		resp, err := http.Get(server.URL + target)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(text)
	}
	const here = "/streets?west=13.39&south=52.49&east=13.41&north=52.51"
	if status, _, text := get(here); status != 204 || text != "" {
		t.Errorf("without a map: %d %q", status, text)
	}
	for _, bad := range []string{"", "?west=13.39", "?west=13.39&south=52.49&east=13.3&north=52.51",
		"?west=NaN&south=52.49&east=13.41&north=52.51", "?west=13.39&south=52.49&east=Inf&north=52.51"} {
		if status, _, text := get("/streets" + bad); status != 400 || !strings.Contains(text, "degrees of a box") {
			t.Errorf("%s: %d %q", bad, status, text)
		}
	}
	path := filepath.Join(dir, "../map.pmtiles")
	for _, raw := range [][]byte{town, town[:200]} {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		status, header, text := get(here)
		var s Streets
		if err := json.Unmarshal([]byte(text), &s); err != nil || status != 200 {
			t.Fatalf("%d, %v: %.100s", status, err, text)
		}
		whole := len(raw) == len(town)
		if whole != (s.Failure == "" && len(s.Paths) > 5) || (header.Get("Cache-Control") == streetsKept) != whole {
			t.Errorf("%d bytes: %q, %+v", len(raw), s.Failure, header)
		}
		if !whole && (!strings.HasPrefix(s.Failure, "../map.pmtiles cannot be read: ") ||
			strings.Contains(s.Failure, dir)) {
			t.Errorf("%q", s.Failure)
		}
		if had, err := os.ReadFile(path); err != nil || !bytes.Equal(had, raw) {
			t.Errorf("the map is another: %v", err)
		}
	}
	for target, want := range map[string]int{"/picture?zoom=15&x=17603&y=10747": 500, "/picture?zoom=x": 400} {
		if status, _, text := get(target); status != want {
			t.Errorf("%s: %d %q", target, status, text)
		}
	}
	if err := os.WriteFile(path, town, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, text := get("/picture?zoom=15&x=17603&y=10747"); status != 404 { // it has no pictures
		t.Errorf("%d %q", status, text)
	}
}
