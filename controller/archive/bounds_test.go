package archive

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/room"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Whoever writes a run counts its files as who reads it.
func TestFilesAreCountedAsTheyAreWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	a, err := Create(dir, crashPlan())
	if err != nil {
		t.Fatal(err)
	}
	if err := story(a, &map[string]uint64{}); err != nil {
		t.Fatal(err)
	}
	counted := *a.disk.extent
	found, err := a.disk.survey()
	if err != nil {
		t.Fatal(err)
	}
	if counted.entries != found.own.entries || counted.names < found.own.names || found.own.entries < 20 {
		t.Errorf("counted %+v, and there are %+v", counted, found.own)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if *b.disk.extent != found.own {
		t.Errorf("a run that is opened again has %+v, and there are %+v", *b.disk.extent, found.own)
	}
}

// A run of as many files as can be read gets no more: neither records that no attempt has, which
// a node may send without an end, nor the files of a seal.
//
//attack:face whoever has taken it over sends the controller records of thousands of attempts that nobody drove, until
//attack:and the run cannot be read | whoever writes a run counts its files, and keeps to what is read
func TestNoFilesAreWrittenBeyondWhatIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	a, err := Create(dir, crashPlan())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Append("car", [][]byte{crashLine("car", 1, 1)}); err != nil {
		t.Fatal(err)
	}
	a.disk.extent.entries = room.FilesMost
	before := filesIn(t, dir)
	verdict := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: wire.Accepted, Final: true}
	for what, do := range map[string]func() error{
		"records of another attempt": func() error { return a.Append("car", [][]byte{crashLine("car", 2, 2)}) },
		"a capture": func() error {
			return a.AppendCapture(wire.TrialKey{Trial: 1, Attempt: 1}, "car", []byte("x"))
		},
		"a decision": func() error { return a.Decide(verdict) }, // the journal is not there yet
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "fieldmesh nodes restore") {
			t.Errorf("%s: %v, and it should say what to do", what, err)
		}
	}
	if after := filesIn(t, dir); after != before {
		t.Errorf("%d files and folders became %d", before, after)
	}
	if err := a.Append("car", [][]byte{crashLine("car", 3, 1)}); err != nil {
		t.Errorf("a file that is there is not written on: %v", err)
	}
}

func filesIn(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What is made of a run does not make the run itself too large.
func TestDerivedFilesAreCountedApart(t *testing.T) {
	d := disk{root: t.TempDir()}
	for _, rel := range []string{"export/captures/a", "export/captures/b", "figures/c", "trials/0001-a1/plan.json"} {
		if err := os.MkdirAll(filepath.Dir(d.path(rel)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.path(rel), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := d.survey()
	if err != nil {
		t.Fatal(err)
	}
	if found.own.entries != 3 || found.derived.entries != 6 {
		t.Errorf("of the run %d, made of it %d", found.own.entries, found.derived.entries)
	}
}
