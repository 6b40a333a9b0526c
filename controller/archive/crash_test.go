package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

var errCrash = errors.New("the process ended here")

// crashAt ends the process at the nth durable step: a write leaves the given
// share of its bytes, and nothing happens afterwards.
func crashAt(n int, share float64) (fault func(string, string, int) (int, error), steps *int) {
	steps = new(int)
	return func(step, _ string, size int) (int, error) {
		*steps++
		switch {
		case *steps < n:
			return size, nil
		case *steps == n:
			return int(share * float64(size)), errCrash
		}
		return 0, errCrash
	}, steps
}

func crashPlan() RunInfo {
	trials := []wire.Trial{{Number: 1}, {Number: 2}}
	return RunInfo{Run: "crash", Campaign: "c", CreatedWall: time.Unix(0, 0).UTC(), Place: PlaceBench,
		Plan: wire.RunPlan{Run: "crash", Trials: trials}}
}

func crashLine(node string, seq uint64, trial int) []byte {
	h := wire.Header{Node: node, Epoch: "e", Seq: seq, Run: "crash", Trial: trial, Attempt: min(trial, 1)}
	b, err := json.Marshal(wire.Record{Header: h, Body: &wire.Event{Text: fmt.Sprint(seq)}})
	if err != nil {
		panic(err)
	}
	return b
}

// story is what a controller does; it is repeated after a crash from where the
// archive says that it stands.
func story(a *Archive, durable *map[string]uint64) error {
	for _, node := range []string{"car", "roadside"} {
		// Batches that jump between files: a crash amid one must not let a later
		// record hide an earlier one.
		for _, batch := range [][2]uint64{{1, 4}, {5, 9}, {10, 12}} {
			var lines [][]byte
			for seq := batch[0]; seq <= batch[1]; seq++ {
				if seq > a.Cursor(node).Seq {
					lines = append(lines, crashLine(node, seq, int(seq%3)))
				}
			}
			if err := a.Append(node, lines); err != nil {
				return err
			}
			(*durable)[node] = batch[1]
		}
	}
	for trial := 1; trial <= 2; trial++ {
		if err := a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Outcome: "accepted",
			Final: true}); err != nil {
			return err
		}
		(*durable)[fmt.Sprint("verdict ", trial)] = 1
		if err := a.Seal(trial, 1); err != nil {
			return err
		}
	}
	return a.Finish()
}

// The process ends at every step in turn, with nothing, half or all of the
// write done; what had been reported durable is there, once, and the story can
// be told to its end.
func TestCrashAtEveryStep(t *testing.T) {
	for _, share := range []float64{0, 0.5, 1} {
		for n := 1; ; n++ {
			ended := crashOnce(t, filepath.Join(t.TempDir(), "run"), n, share)
			if ended {
				if n < 40 {
					t.Fatalf("the story has only %d steps: the test has lost its hold", n)
				}
				break
			}
		}
	}
}

func crashOnce(t *testing.T, dir string, n int, share float64) (ended bool) {
	t.Helper()
	a, err := Create(dir, crashPlan())
	if err != nil {
		t.Fatal(err)
	}
	fault, _ := crashAt(n, share)
	a.disk.fault = fault
	durable := map[string]uint64{}
	err = story(a, &durable)
	if err != nil && !errors.Is(err, errCrash) {
		t.Fatalf("step %d: %v", n, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b, err2 := Open(dir)
	if err2 != nil {
		t.Fatalf("step %d, share %g: reopen: %v", n, share, err2)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, node := range []string{"car", "roadside"} {
		if got := b.Cursor(node).Seq; got < durable[node] {
			t.Fatalf("step %d, share %g: %s's cursor is %d, %d was durable", n, share, node, got, durable[node])
		}
	}
	for trial := range 2 {
		if durable[fmt.Sprint("verdict ", trial+1)] > 0 && b.verdictOf(wire.TrialKey{Trial: trial + 1, Attempt: 1}) ==
			nil {
			t.Fatalf("step %d, share %g: the verdict on trial %d is lost", n, share, trial+1)
		}
	}
	if err := story(b, &durable); err != nil {
		t.Fatalf("step %d, share %g: going on: %v", n, share, err)
	}
	checkWhole(t, b, fmt.Sprintf("step %d, share %g", n, share))
	return err == nil
}

// checkWhole looks for every record exactly once, every verdict exactly once,
// and nothing for Verify to find.
func checkWhole(t *testing.T, a *Archive, when string) {
	t.Helper()
	got := map[string]int{}
	count := func(r wire.Record, err error) {
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		got[fmt.Sprintf("%s/%d in %d", r.Node, r.Seq, r.Trial)]++
	}
	for r, err := range a.Between() {
		count(r, err)
	}
	for trial := 1; trial <= 2; trial++ {
		for r, err := range a.Records(trial, 1) {
			count(r, err)
		}
	}
	for _, node := range []string{"car", "roadside"} {
		for seq := 1; seq <= 12; seq++ {
			if k := fmt.Sprintf("%s/%d in %d", node, seq, seq%3); got[k] != 1 {
				t.Fatalf("%s: record %s is there %d times", when, k, got[k])
			}
		}
	}
	if len(got) != 24 || len(a.Decisions()) != 2 {
		t.Fatalf("%s: %d records and %d decisions, want 24 and 2", when, len(got), len(a.Decisions()))
	}
	findings, err := Verify(a.Dir())
	if err != nil || len(findings) > 0 {
		t.Fatalf("%s: verify: %v %v", when, findings, err)
	}
}

// A file of records cut at any byte is mended to its whole lines.
func TestTornTailAtEveryByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	a, err := Create(dir, crashPlan())
	if err != nil {
		t.Fatal(err)
	}
	lines := [][]byte{crashLine("car", 1, 1), crashLine("car", 2, 1), crashLine("car", 3, 1)}
	if err := a.Append("car", lines); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "trials/0001-a1/records/car.ndjson")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// As before the records were durable: the cursors do not vouch for them.
	if err := os.Remove(filepath.Join(dir, cursorFile)); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		b, err := Open(dir)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		if err := b.Append("car", lines); err != nil {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || !slices.Equal(got, whole) {
			t.Fatalf("cut at byte %d: the file is not whole again: %v\n%s", n, err, got)
		}
		if err := os.Remove(filepath.Join(dir, cursorFile)); err != nil {
			t.Fatal(err)
		}
	}
}

// A loss of power left zeros for a page of what was not synced yet, and the page after it: the run goes on, what is
// missing is taken from the node again, and the journal says what was taken out.
func TestAHoleInATailIsMended(t *testing.T) {
	lines := [][]byte{crashLine("car", 1, 1), crashLine("car", 2, 1), crashLine("car", 3, 1)}
	for _, rel := range []string{"trials/0001-a1/records/car.ndjson", cursorFile, "journal.ndjson"} {
		dir := filepath.Join(t.TempDir(), "run")
		a, err := Create(dir, crashPlan())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Append("car", lines[:2]), a.Note("hello"), a.Close()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, rel)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		torn := slices.Concat(text, make([]byte, 4096), []byte("s\"}\n"))
		if err := os.WriteFile(path, torn, 0o644); err != nil {
			t.Fatal(err)
		}
		if a, err = Open(dir); err != nil {
			t.Fatalf("%s: %v", rel, err)
		}
		if err := a.Append("car", lines); err != nil {
			t.Fatal(err)
		}
		records, err := a.All(1, 1)
		if err != nil || len(records) != len(lines) {
			t.Errorf("%s: %d records of %d, %v", rel, len(records), len(lines), err)
		}
		journal, err := os.ReadFile(filepath.Join(dir, "journal.ndjson"))
		if want := "4100 bytes of " + rel; err != nil || !strings.Contains(string(journal), want) ||
			!strings.Contains(string(journal), "hello") {
			t.Errorf("%s: the journal lacks %q or its former note: %v\n%s", rel, want, err, journal)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A full disk refuses an append; nothing half written stays, and the append can
// be made again.
func TestAFailedWriteLeavesNoTrace(t *testing.T) {
	a, err := Create(filepath.Join(t.TempDir(), "run"), crashPlan())
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, a)
	full := errors.New("no space left")
	a.disk.fault = func(step, rel string, size int) (int, error) {
		if step == "write" && rel == filepath.Join(trialDir(wire.TrialKey{Trial: 2, Attempt: 1}), "records",
			"car.ndjson") {
			return size / 2, full
		}
		return size, nil
	}
	lines := [][]byte{crashLine("car", 1, 1), crashLine("car", 2, 2)}
	if err := a.Append("car", lines); !errors.Is(err, full) {
		t.Fatalf("got %v, want the disk's error", err)
	}
	if got := a.Cursor("car"); got.Seq != 0 {
		t.Errorf("cursor is %+v after a failed append", got)
	}
	a.disk.fault = nil
	if err := a.Append("car", lines); err != nil {
		t.Fatal(err)
	}
	for trial := 1; trial <= 2; trial++ {
		if all, err := a.All(trial, 1); err != nil || len(all) != 1 {
			t.Errorf("trial %d holds %d records, %v", trial, len(all), err)
		}
	}
}

// A process that is short of files for a moment cannot sync the folder of a new file. What it then tries again is
// stored once, and the folder is synced.
func TestAnAppendThatFailsAtItsFolderIsStoredOnce(t *testing.T) {
	a, err := Create(filepath.Join(t.TempDir(), "crash"), crashPlan())
	if err != nil {
		t.Fatal(err)
	}
	failed, synced := 0, 0
	a.disk.fault = func(step, rel string, size int) (int, error) {
		if step == "folder" && strings.HasSuffix(rel, "car.ndjson") {
			if failed++; failed == 1 {
				return 0, errors.New("too many open files")
			}
			synced++
		}
		return size, nil
	}
	lines := [][]byte{crashLine("car", 1, 1), crashLine("car", 2, 1)}
	if err := a.Append("car", lines); err == nil {
		t.Error("it did not fail")
	}
	if err := a.Append("car", lines); err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for r, err := range a.Records(1, 1) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, r.Seq)
	}
	if !slices.Equal(seqs, []uint64{1, 2}) || synced != 1 {
		t.Errorf("stored are %v, and the folder was synced %d times", seqs, synced)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
