package export

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
)

// What a former export wrote, and this one does not, is gone: it may not be redacted. A file of
// somebody else's is neither removed nor published as redacted.
func TestAnExportReplacesTheFormerOne(t *testing.T) {
	a, dir := exported(t)
	capture := filepath.Join(dir, "captures", "0001-a1-car.pcapng")
	if _, err := Run(a, dir, Options{Redact: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(capture); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a capture of the former export is there still: %v", err)
	}
	own := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(own, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(a, dir, Options{Redact: true}); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("a redacted export beside a file of somebody else's: %v", err)
	}
	if _, err := Run(a, dir, Options{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
}

// Somebody adds a file of their own to an export, and names it in the crate, as RO-Crate wants it; or has files of
// another program in the folder.
func TestAnExportLeavesTheFilesOfOthersAlone(t *testing.T) {
	a, dir := exported(t)
	crate := filepath.Join(dir, crateFile)
	text, err := os.ReadFile(crate)
	if err != nil {
		t.Fatal(err)
	}
	const listed = `"@graph": [`
	named := strings.Replace(string(text), listed, listed+`{"@id": "own.md", "@type": "File"},`, 1)
	own := filepath.Join(dir, "own.md")
	if err := errors.Join(os.WriteFile(own, []byte("mine"), 0o644), os.WriteFile(crate, []byte(named), 0o644)); err !=
		nil || named == string(text) {
		t.Fatal(err)
	}
	paths, err := Run(a, dir, Options{MCAP: true, Perfetto: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(own); err != nil || string(got) != "mine" {
		t.Errorf("a file of somebody else's: %q, %v", got, err)
	}
	for _, path := range append(paths, filepath.Join(dir, "captures", "0001-a1-car.pcapng")) {
		name, err := filepath.Rel(dir, path)
		if err != nil || name != crateFile && !exportable.MatchString(filepath.ToSlash(name)) {
			t.Errorf("%s is written, and would never be removed: %v", name, err)
		}
	}
	for _, name := range []string{"tracks.gpx", crateFile} {
		other := t.TempDir()
		path := filepath.Join(other, name)
		if err := os.WriteFile(path, []byte(`{"@graph": []}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(a, other, Options{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s of somebody else's: %v", name, err)
		}
		left, err := os.ReadDir(other)
		if got, rerr := os.ReadFile(path); rerr != nil || string(got) != `{"@graph": []}` || err != nil || len(left) != 1 {
			t.Errorf("%s of somebody else's is %.60q beside %v: %v, %v", name, got, left, rerr, err)
		}
	}
}

// An export was cut off while its files were put in place. The next one replaces or removes what it had put there, also
// when the run was judged again since. A file of ours may be described as more than a file.
func TestAnExportThatWasCutOffIsMadeAgain(t *testing.T) {
	a, dir := exported(t)
	aside := filepath.Join(dir, Aside+"1")
	err := errors.Join(os.Mkdir(aside, 0o755),
		os.Rename(filepath.Join(dir, crateFile), filepath.Join(aside, crateFile)),
		os.Rename(filepath.Join(dir, "tracks.gpx"), filepath.Join(aside, "tracks.gpx")),
		os.WriteFile(filepath.Join(dir, "metrics.csv"), []byte("of another version"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(a, dir, Options{Redact: true}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "metrics.csv"))
	if left, gerr := filepath.Glob(filepath.Join(dir, Aside+"*")); err != nil || gerr != nil || len(left) > 0 ||
		string(text) == "of another version" {
		t.Errorf("left behind: %v, %v, %v; metrics.csv: %.60q", left, err, gerr, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "captures", "0001-a1-car.pcapng")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a capture of the export that was cut off is there still: %v", err)
	}
	crate := filepath.Join(dir, crateFile)
	text, err = os.ReadFile(crate)
	described := strings.ReplaceAll(string(text), `"@type": "File"`, `"@type": ["File", "Dataset"]`)
	if err = errors.Join(err, os.WriteFile(crate, []byte(described), 0o644), os.WriteFile(filepath.Join(dir,
		"metrics.csv"), nil, 0o644)); err != nil || described == string(text) {
		t.Fatal(err)
	}
	if _, err := Run(a, dir, Options{}); err != nil {
		t.Error(err)
	}
}

func TestAFailedExportLeavesTheFolderAsItWas(t *testing.T) {
	a, dir := exported(t)
	before, err := os.ReadFile(filepath.Join(dir, crateFile))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(a.Dir(), "trials/0001-a1/records/car.ndjson")
	if err := os.WriteFile(path, []byte("{\"kind\":\"gps\",\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := archive.Read(a.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(again, dir, Options{}); err == nil || !strings.Contains(err.Error(), "car.ndjson") {
		t.Errorf("a damaged record: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, crateFile))
	if err != nil || string(after) != string(before) {
		t.Errorf("the export was touched: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
