package archive

import (
	"os"
	"path/filepath"
	"testing"
)

// appleDouble is what macOS puts beside each file on a stick.
var appleDouble = []byte("\x00\x05\x16\x07\n\x00")

// Files whose names begin with a dot have none of the run's records: it is read, continued, finished and copied as
// without them, and they stay.
func TestHiddenFilesAreNotOfTheRun(t *testing.T) {
	dir, second := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "second")
	a, err := Create(dir, crashPlan())
	must(t, err)
	must(t, a.Append("car", [][]byte{crashLine("car", 1, 0), crashLine("car", 2, 1)}))
	must(t, a.Close())
	hidden := []string{"between/._car.ndjson", "trials/0001-a1/records/._car.ndjson", "trials/0001-a1/.DS_Store",
		"late/0001-a1/._car.ndjson", ".Spotlight/store"}
	for _, rel := range hidden {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, rel)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, rel), appleDouble, 0o644))
	}
	a, err = Open(dir)
	must(t, err)
	if all, err := a.All(1, 1); err != nil || len(all) != 1 {
		t.Errorf("%d records, %v", len(all), err)
	}
	for _, err := range a.Between() {
		must(t, err)
	}
	durable := map[string]uint64{}
	must(t, story(a, &durable))
	must(t, a.Close())
	must(t, Copy(dir, second))
	for _, d := range []string{dir, second} {
		if findings, err := Verify(d); err != nil || len(findings) > 0 {
			t.Errorf("%s: %v %v", d, findings, err)
		}
		if _, findings, err := VerifyRecords(d); err != nil || len(findings) > 0 {
			t.Errorf("%s: %v %v", d, findings, err)
		}
	}
	for _, rel := range hidden {
		if raw, err := os.ReadFile(filepath.Join(dir, rel)); err != nil || string(raw) != string(appleDouble) {
			t.Errorf("%s: %q %v", rel, raw, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
