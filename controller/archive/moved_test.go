package archive

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A run whose folder is moved, or whose disk goes, while it is written: nothing is kept elsewhere, no node is told that
// it is, and the run is continued where its folder is.
func TestAFolderThatIsMovedIsNotWrittenElsewhere(t *testing.T) {
	for _, mountPoint := range []bool{false, true} { // that is left where the folder was
		root := t.TempDir()
		dir, moved := filepath.Join(root, "run"), filepath.Join(root, "moved")
		a, err := Create(dir, crashPlan())
		must(t, err)
		must(t, a.Append("car", [][]byte{crashLine("car", 1, 1)}))
		must(t, os.Rename(dir, moved))
		if mountPoint {
			must(t, os.Mkdir(dir, 0o755))
		}
		verdict := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "accepted", Final: true}
		for doing, err := range map[string]error{
			"append": a.Append("car", [][]byte{crashLine("car", 2, 1)}), "note": a.Note("x"), "finish": a.Finish(),
			"decide": a.Decide(verdict), "append a capture": a.AppendCapture(verdict.TrialKey, "car", []byte("x")),
		} {
			if !errors.Is(err, errMoved) {
				t.Errorf("mount point %t: %s: %v", mountPoint, doing, err)
			}
		}
		if a.Cursor("car").Seq != 1 || len(a.Decisions()) > 0 {
			t.Errorf("it is taken for kept: %v %v", a.Cursor("car"), a.Decisions())
		}
		left, err := disk{root: root}.walk("run")
		if err != nil || len(left) > 0 {
			t.Errorf("mount point %t: written elsewhere: %v %v", mountPoint, left, err)
		}
		must(t, errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(moved)))) // another run
		must(t, a.Discard())
		if _, err := Read(dir); err != nil {
			t.Errorf("mount point %t: another run was discarded: %v", mountPoint, err)
		}
		a, err = Open(moved)
		must(t, err)
		durable := map[string]uint64{}
		must(t, story(a, &durable))
		checkWhole(t, a, "where it was moved to")
		must(t, a.Close())
	}
}

// The folder goes in the midst of a write.
func TestAFolderIsNotMadeAnew(t *testing.T) {
	d := disk{root: filepath.Join(t.TempDir(), "run")}
	for _, rel := range []string{JournalFile, "between/car.ndjson"} {
		if _, err := d.append(rel, []byte("x\n")); !errors.Is(err, errMoved) {
			t.Errorf("append to %s: %v", rel, err)
		}
		if err := d.replace(rel, []byte("x\n")); !errors.Is(err, errMoved) {
			t.Errorf("replace %s: %v", rel, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(d.root)); err != nil || len(left) > 0 {
		t.Errorf("made %v, %v", left, err)
	}
}
