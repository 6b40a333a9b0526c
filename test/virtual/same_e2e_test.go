//go:build e2e

package virtual

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// named are the fields in which two runs of one seed may differ, and why.
func named() map[string]string {
	return map[string]string{
		"note.t_wall":                    "what is noted outside bears this machine's time",
		"MANIFEST.sha256 journal.ndjson": "for this reason",

		"MANIFEST.signature.json.signature": "of that manifest",
	}
}

// TestE2EOneSeedOneArchive drives the same campaign twice in the same folder,
// alone and beside busy processors, and names every field that differs.
func TestE2EOneSeedOneArchive(t *testing.T) {
	d := newDesk(t, "[16.7]")
	var runs []string
	for i, busy := range []int{0, 4} {
		burners(t, busy)
		args := []string{"velocity.yaml", "--clock", "virtual", "--name", "same", "--start", "2027-01-01T12:00:00Z"}
		if out, err := d.rehearse(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		runs = append(runs, d.path(fmt.Sprintf("runs/was-%d", i)))
		if err := os.Rename(d.path("runs/same"), runs[i]); err != nil {
			t.Fatal(err)
		}
	}
	differ := differences(t, runs[0], runs[1])
	for _, field := range slices.Sorted(maps.Keys(differ)) {
		if why, ok := named()[field]; ok {
			t.Logf("%s differs: %s", field, why)
			continue
		}
		t.Errorf("%s differs: %s", field, differ[field])
	}
}

// differences are the fields that differ between two archives, each with an
// example. A field is named by the kind of its file or record, and its path.
func differences(t *testing.T, a, b string) map[string]string {
	t.Helper()
	out := map[string]string{}
	one, other := files(t, a), files(t, b)
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if _, ok := other[name]; !ok {
			out["file "+name] = "is in the first only"
		}
	}
	for name := range other {
		if _, ok := one[name]; !ok {
			out["file "+name] = "is in the second only"
		}
	}
	for name, x := range one {
		y, ok := other[name]
		if !ok || bytes.Equal(x, y) {
			continue
		}
		compareLines(out, name, x, y)
	}
	return out
}

// files are the archive's, by their path in it, without what was derived from it.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") ||
			slices.Contains([]string{"report.html", "metrics.csv"}, rel) {
			return err
		}
		out[rel], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func compareLines(out map[string]string, name string, x, y []byte) {
	kind := filepath.Base(name)
	if kind == "MANIFEST.sha256" {
		compareSums(out, kind, x, y)
		return
	}
	if strings.HasSuffix(name, ".json") { // one value
		compareJSON(out, kind, x, y)
		return
	}
	xs, ys := bytes.Split(x, []byte("\n")), bytes.Split(y, []byte("\n"))
	if len(xs) != len(ys) {
		out[kind+" lines"] = fmt.Sprintf("%s has %d and %d", name, len(xs), len(ys))
	}
	for i := range min(len(xs), len(ys)) {
		if !bytes.Equal(xs[i], ys[i]) {
			compareJSON(out, kind, xs[i], ys[i])
		}
	}
}

// compareSums names the files whose checksums differ.
func compareSums(out map[string]string, kind string, x, y []byte) {
	sums := map[string]string{}
	for line := range strings.Lines(string(x)) {
		if sum, file, ok := strings.Cut(strings.TrimSpace(line), "  "); ok { // the others are sizes, for people
			sums[file] = sum
		}
	}
	for line := range strings.Lines(string(y)) {
		sum, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if ok && sums[file] != sum {
			out[kind+" "+file] = fmt.Sprintf("%.12s and %.12s", sums[file], sum)
		}
		delete(sums, file)
	}
	for file := range sums {
		out[kind+" "+file] = "is in the first only"
	}
}

func compareJSON(out map[string]string, kind string, x, y []byte) {
	var a, b any
	if json.Unmarshal(x, &a) != nil || json.Unmarshal(y, &b) != nil {
		out[kind] = fmt.Sprintf("%.80q and %.80q", x, y)
		return
	}
	if m, ok := a.(map[string]any); ok {
		for _, name := range []string{"kind", "type"} { // of a record, of an entry in the journal
			if k, ok := m[name].(string); ok {
				kind = k
			}
		}
	}
	compareValues(out, kind, a, b)
}

func compareValues(out map[string]string, path string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for k := range x {
			compareValues(out, path+"."+k, x[k], y[k])
		}
		for k := range y {
			if _, ok := x[k]; !ok {
				out[path+"."+k] = "is in the second only"
			}
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			compareValues(out, path+"[]", x[i], y[i])
		}
		return
	}
	if fmt.Sprint(a) != fmt.Sprint(b) {
		out[path] = fmt.Sprintf("%.60v and %.60v", a, b)
	}
}
