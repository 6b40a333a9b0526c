package archive

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// finishedRun is a run with one attempt, sealed and closed.
func finishedRun(t *testing.T, dir string) *Archive {
	t.Helper()
	a, err := Create(dir, RunInfo{Run: "today", CreatedWall: time.Unix(1, 0).UTC(), CampaignRaw: []byte("x\n"),
		Plan: wire.RunPlan{Run: "today", Trials: []wire.Trial{{Number: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: 1, Run: "today", Trial: 1, Attempt: 1},
		Body: &wire.Event{Level: "info", Text: "x"}}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Append("car", [][]byte{line}),
		a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "accepted", Final: true}),
		a.Seal(1, 1), a.Finish(), a.Close()); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestASecondCopyIsAsGoodAsTheFirst(t *testing.T) {
	dir, second := filepath.Join(t.TempDir(), "today"), filepath.Join(t.TempDir(), "usb", "today")
	finishedRun(t, dir)
	if err := Copy(dir, second); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, second} {
		if findings, err := Verify(d); err != nil || len(findings) != 0 {
			t.Errorf("%s: %v, %v", d, findings, err)
		}
	}
	// What was lost or spoilt there is mended, what the run has no more is taken away, and
	// what is the same is not written again.
	records := filepath.Join(second, "trials", "0001-a1", "records", "car.ndjson")
	campaign := filepath.Join(second, campaignFile)
	old := time.Unix(1_000_000, 0)
	for _, err := range []error{os.WriteFile(records, []byte("{}\n"), 0o644), os.Remove(filepath.Join(second, runFile)),
		os.Chtimes(campaign, old, old),
		os.WriteFile(filepath.Join(second, "trials", "0001-a1", "car.pcapng.part"), nil, 0o644),
		os.WriteFile(filepath.Join(second, "report.html"), nil, 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := Copy(dir, second); err != nil {
		t.Fatal(err)
	}
	if findings, err := Verify(second); err != nil || len(findings) != 0 {
		t.Errorf("mended: %v, %v", findings, err)
	}
	if info, err := os.Stat(campaign); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("a file that was the same was written again: %v, %v", info.ModTime(), err)
	}
	if _, err := os.Stat(filepath.Join(second, "report.html")); err == nil {
		t.Error("a report that the run does not have is still there")
	}
}

// Files that somebody put into the copy stay there; the manifest of a run that goes on does not.
func TestWhatSomebodyPutIntoACopyStaysThere(t *testing.T) {
	dir, second := filepath.Join(t.TempDir(), "today"), filepath.Join(t.TempDir(), "usb", "today")
	finishedRun(t, dir)
	if err := Copy(dir, second); err != nil {
		t.Fatal(err)
	}
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	own := []string{".folder/x", MapFile, "notes.txt", "photos/antenna.jpg", "trials/0001-a1/sketch.pdf"}
	if err := errors.Join(a.Note("once more"), a.Close()); err != nil {
		t.Fatal(err)
	}
	for _, rel := range own {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(second, rel)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(second, rel), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Copy(dir, second); err != nil {
		t.Fatal(err)
	}
	for _, rel := range own {
		if text, err := os.ReadFile(filepath.Join(second, rel)); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q, %v", rel, text, err)
		}
	}
	findings, err := Verify(second)
	named := 0
	for _, f := range findings {
		if slices.Contains(own[2:], f.Path) && f.Problem == Unexpected {
			named++
		}
	}
	// The map may be there, and the manifest, which would say that the run has ended, may not.
	if err != nil || named != 3 || len(findings) != 4 || findings[3].Problem != Unfinished {
		t.Errorf("%v, %v", findings, err)
	}
}

// A copy that was cut off after any of its files is continued, in a run with a photo, too.
func TestACopyIsContinuedWhereverItWasCutOff(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "today")
	finishedRun(t, dir)
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	const photo = "attachments/photo.jpg"
	const sha = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
	err = errors.Join(a.AppendFile(photo, []byte("x")), a.CloseFile(photo, sha), a.Finish(), a.Close())
	if err != nil {
		t.Fatal(err)
	}
	files, err := disk{root: dir}.walk(".")
	if err != nil {
		t.Fatal(err)
	}
	for n := range files {
		second := t.TempDir()
		for _, rel := range files[:n+1] {
			if err := copyFile(disk{root: dir}, disk{root: second}, rel); err != nil {
				t.Fatal(err)
			}
		}
		if err := Copy(dir, second); err != nil {
			t.Errorf("cut off after %s: %v", files[n], err)
		} else if findings, err := Verify(second); err != nil || len(findings) != 0 {
			t.Errorf("cut off after %s: %v, %v", files[n], findings, err)
		}
	}
}

// A run that was damaged since does not take its whole copy with it.
func TestADamagedRunDoesNotReplaceItsCopy(t *testing.T) {
	dir, second := filepath.Join(t.TempDir(), "today"), filepath.Join(t.TempDir(), "usb", "today")
	finishedRun(t, dir)
	if err := Copy(dir, second); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(dir, "trials", "0001-a1", "records", "car.ndjson")
	if err := os.WriteFile(records, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Copy(dir, second); err == nil || !strings.Contains(err.Error(), "car.ndjson") {
		t.Errorf("a damaged run was copied: %v", err)
	}
	if findings, err := Verify(second); err != nil || len(findings) != 0 {
		t.Errorf("the copy: %v, %v", findings, err)
	}
}

// A run that was continued in its copy, on another disk, is not replaced by what it was before.
func TestACopyThatHasMoreThanTheRunIsLeftAlone(t *testing.T) {
	line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: 2, Run: "today", Trial: 1, Attempt: 2},
		Body: &wire.Event{Level: "info", Text: "x"}}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const photo = "attachments/photo.jpg"
	const sha = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
	for name, goOn := range map[string]func(a *Archive) error{
		"records": func(a *Archive) error { return a.Append("car", [][]byte{line}) },
		"a verdict": func(a *Archive) error {
			return a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 2}, Outcome: "failed", Final: true})
		},
		"a photo": func(a *Archive) error {
			return errors.Join(a.AppendFile(photo, []byte("x")), a.CloseFile(photo, sha))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, second := filepath.Join(t.TempDir(), "today"), filepath.Join(t.TempDir(), "usb", "today")
			finishedRun(t, dir)
			if err := Copy(dir, second); err != nil {
				t.Fatal(err)
			}
			a, err := Open(second)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(goOn(a), a.Close()); err != nil {
				t.Fatal(err)
			}
			files, err := disk{root: second}.walk(".")
			if err != nil {
				t.Fatal(err)
			}
			if err := Copy(dir, second); err == nil || !strings.Contains(err.Error(), "has more than the run") {
				t.Errorf("an older run replaced its copy: %v", err)
			}
			if left, err := (disk{root: second}).walk("."); err != nil || !slices.Equal(left, files) {
				t.Errorf("the copy had %v, and has %v: %v", files, left, err)
			}
			if err := Copy(second, dir); err != nil {
				t.Errorf("the copy does not replace the older run: %v", err)
			}
		})
	}
}

// What is damaged in a copy is nothing that the run lacks.
func TestADamagedCopyIsMended(t *testing.T) {
	dir, second := filepath.Join(t.TempDir(), "today"), filepath.Join(t.TempDir(), "usb", "today")
	finishedRun(t, dir)
	if err := Copy(dir, second); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{JournalFile, cursorFile} {
		path := filepath.Join(second, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copy(text[len(text)/2:], make([]byte, 9))
		if err := os.WriteFile(path, append(text, `{"node":"ca`...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Copy(dir, second); err != nil {
		t.Fatal(err)
	}
	if findings, err := Verify(second); err != nil || len(findings) != 0 {
		t.Errorf("%v, %v", findings, err)
	}
}

// What nodes have of another run leaves a finished run finished.
func TestRecordsOfAnotherRunLeaveAFinishedRunAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "today")
	finishedRun(t, dir)
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e2", Seq: 9, Run: "tomorrow", Trial: 1,
		Attempt: 1}, Body: &wire.Event{Level: "info", Text: "x"}}.MarshalJSON()
	if err := errors.Join(err, a.Append("car", [][]byte{line}), a.Close()); err != nil {
		t.Fatal(err)
	}
	if findings, err := Verify(dir); err != nil || len(findings) != 0 || !a.Finished() {
		t.Errorf("finished: %v; %v, %v", a.Finished(), findings, err)
	}
}

// An attempt that the run's manifest does not name is none of the run's, whatever its own
// manifest says.
func TestAnAttemptThatWasAddedIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "today")
	finishedRun(t, dir)
	added := filepath.Join(dir, "trials", "0001-a2")
	if err := os.CopyFS(added, os.DirFS(filepath.Join(dir, "trials", "0001-a1"))); err != nil {
		t.Fatal(err)
	}
	findings, err := Verify(dir)
	if err != nil || !slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Path == "trials/0001-a2/"+manifestFile && f.Problem == Unexpected
	}) {
		t.Errorf("%v, %v", findings, err)
	}
}

func TestACopyIsNotMadeOverSomethingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "today")
	finishedRun(t, dir)
	other := filepath.Join(t.TempDir(), "today")
	a, err := Create(other, RunInfo{Run: "today", CreatedWall: time.Unix(2, 0).UTC(), Plan: wire.RunPlan{Run: "today"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Copy(dir, other); !errors.Is(err, ErrOtherRun) {
		t.Errorf("over another run of the same name: %v", err)
	}
	if err := Copy(dir, dir); err == nil {
		t.Error("a run was copied onto itself")
	}
	photos := t.TempDir()
	if err := os.WriteFile(filepath.Join(photos, "photo.jpg"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Copy(dir, photos); err == nil {
		t.Error("a run was copied into a folder of something else")
	}
	if err := Copy(t.TempDir(), filepath.Join(t.TempDir(), "x")); !errors.Is(err, ErrNoRun) {
		t.Errorf("of no run: %v", err)
	}
}
