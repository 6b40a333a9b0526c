package journal

import (
	"errors"
	"os"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// fullDisk takes a few bytes of a line and then no more.
type fullDisk struct {
	*os.File
	full bool
}

func (d *fullDisk) WriteAt(b []byte, at int64) (int, error) {
	if !d.full {
		return d.File.WriteAt(b, at)
	}
	n, err := d.File.WriteAt(b[:len(b)/2], at)
	return n, errors.Join(err, errors.New("no space left"))
}

// A line that a full disk tore must not take those with it that come later.
func TestAFullDiskSpoilsOneLineOfTheJournal(t *testing.T) {
	dir := t.TempDir()
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Load(wire.RunPlan{Run: "r1"}, ""); err != nil {
		t.Fatal(err)
	}
	disk := &fullDisk{File: j.file.(*os.File)}
	j.file = disk
	verdict := func(trial int) wire.Verdict {
		return wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Outcome: "accepted"}
	}
	for trial := 1; trial <= 3; trial++ {
		disk.full = trial == 2
		if err := j.Kept(verdict(trial), Heard{}); (err != nil) != disk.full {
			t.Fatalf("trial %d: %v", trial, err)
		}
	}
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	_, st, err := Open(dir)
	if err != nil || len(st.Verdicts[1]) != 1 || len(st.Verdicts[2]) != 0 || len(st.Verdicts[3]) != 1 {
		t.Errorf("after a restart: %v, %v", st.Verdicts, err)
	}
}

// When the run was last heard of, and which restore by hand was the newest, outlive the agent.
func TestWhatIsKnownOfTheRunOutlivesTheAgent(t *testing.T) {
	dir := t.TempDir()
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	reopened := func(steps ...error) State {
		t.Helper()
		_, st, err := Open(dir)
		if err := errors.Join(append(steps, err)...); err != nil {
			t.Fatal(err)
		}
		return st
	}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if st := reopened(j.Load(wire.RunPlan{Run: "r1"}, "first")); st.ByHand != "first" || st.Heard != (Heard{}) {
		t.Errorf("loaded: %+v", st)
	}
	armed, kept := Heard{BootID: "b", BootNs: 5, UnixS: 7}, Heard{BootID: "b", BootNs: 6}
	st := reopened(j.Begun("second"), j.Armed(Attempt{TrialKey: k}, armed))
	if st.ByHand != "second" || st.Heard != armed || st.Unfinished.TrialKey != k {
		t.Errorf("begun: %+v", st)
	}
	if st := reopened(j.Kept(wire.Verdict{TrialKey: k}, kept)); st.Heard != kept || st.Unfinished != nil {
		t.Errorf("kept: %+v", st)
	}
}
