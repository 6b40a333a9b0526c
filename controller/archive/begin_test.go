package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// A spool may hold a run of the same name that was deleted: its records come
// before this run's beginning, and stay out of it, also after a crash.
func TestWhatCameBeforeTheRunsBeginningStaysOut(t *testing.T) {
	a := create(t)
	must(t, a.Begin("car", wire.SpoolPosition{Epoch: "e", Seq: 7}))
	if got, want := a.Cursor("car"), (wire.SpoolPosition{Epoch: "e", Seq: 7}); got != want {
		t.Errorf("cursor %v, want %v", got, want)
	}
	must(t, a.Append("car", [][]byte{line("car", "e", 7, 1, 1), line("car", "e", 8, 1, 1)}))
	must(t, a.Begin("car", wire.SpoolPosition{Epoch: "e", Seq: 99})) // no beginning any more
	must(t, a.Append("car", [][]byte{line("car", "e", 9, 1, 1)}))
	if got := seqs(t, a, 1, 1); !slices.Equal(got, []uint64{8, 9}) {
		t.Errorf("records %v, want 8 and 9", got)
	}
	must(t, a.Close())
	b, err := archive.Open(a.Dir())
	must(t, err)
	defer func() { must(t, b.Close()) }()
	must(t, b.Append("car", [][]byte{line("car", "e", 6, 1, 1), line("car", "e", 10, 1, 1)}))
	if got := seqs(t, b, 1, 1); !slices.Equal(got, []uint64{8, 9, 10}) {
		t.Errorf("records %v after a restart, want 8, 9 and 10", got)
	}
}

// A controller was killed before it had collected anything of a node whose spool was new: what the
// node has recorded since is the run's.
func TestARunBeginsWithANewSpoolOnce(t *testing.T) {
	a := create(t)
	must(t, a.Begin("car", wire.SpoolPosition{Epoch: "e"}))
	must(t, a.Close())
	b, err := archive.Open(a.Dir())
	must(t, err)
	defer func() { must(t, b.Close()) }()
	must(t, b.Begin("car", wire.SpoolPosition{Epoch: "e", Seq: 3}))
	must(t, b.Append("car", [][]byte{line("car", "e", 2, 1, 1)}))
	if got := seqs(t, b, 1, 1); !slices.Equal(got, []uint64{2}) {
		t.Errorf("records %v, want 2", got)
	}
}

func TestOnlyAnEmptyRunIsDiscarded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	moving := synthetic.Info(options())
	moving.Movement = map[string][]byte{"there.ns_movements": []byte("nobody moves\n")}
	a, err := archive.Create(dir, moving)
	must(t, err)
	must(t, a.Begin("car", wire.SpoolPosition{Epoch: "e", Seq: 7}))
	if !a.Empty() {
		t.Error("a run without a record is not empty")
	}
	must(t, a.Discard())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a discarded run: %v", err)
	}

	must(t, os.Mkdir(dir, 0o755))
	note := filepath.Join(dir, "my notes")
	must(t, os.WriteFile(note, nil, 0o644))
	a, err = archive.Create(dir, synthetic.Info(options()))
	must(t, err)
	must(t, a.Discard())
	if _, err := os.Stat(note); err != nil {
		t.Errorf("a file that is not the run's: %v", err)
	}
	if _, err := archive.Read(dir); !errors.Is(err, archive.ErrNoRun) {
		t.Errorf("a discarded run: %v", err)
	}

	for name, fill := range map[string]func(*archive.Archive) error{
		"a trial's record": func(a *archive.Archive) error {
			return a.Append("car", [][]byte{line("car", "e", 1, 1, 1)})
		},
		"another record": func(a *archive.Archive) error {
			return a.Append("car", [][]byte{line("car", "e", 1, 0, 0)})
		},
		"a decision": func(a *archive.Archive) error {
			return a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "failed", Final: true})
		},
		"an end": (*archive.Archive).Finish, // as a shard's without trials
	} {
		a, err := archive.Create(filepath.Join(t.TempDir(), "run"), synthetic.Info(options()))
		must(t, err)
		must(t, fill(a))
		must(t, a.Discard())
		if _, err := archive.Read(a.Dir()); err != nil {
			t.Errorf("a run with %s: %v", name, err)
		}
	}
}

func TestAFolderWithoutARunIsLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	if _, err := archive.Open(dir); !errors.Is(err, archive.ErrNoRun) {
		t.Errorf("open: %v", err)
	}
	if _, err := archive.Open(filepath.Join(dir, "none")); !errors.Is(err, archive.ErrNoRun) {
		t.Errorf("open no folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("it holds %v, %v", entries, err)
	}
}

// A run whose schedule could not be read again is not begun, and leaves nothing behind.
func TestAScheduleThatCouldNotBeReadIsNotBegun(t *testing.T) {
	info := synthetic.Info(options())
	dir := filepath.Join(t.TempDir(), "run")
	flow := info.Plan.Trials[0].Traffic[0]
	info.Plan.Trials = slices.Repeat(info.Plan.Trials[:1], 5000)
	for i := range info.Plan.Trials {
		info.Plan.Trials[i].Traffic = slices.Repeat([]wire.Flow{flow}, 60)
	}
	a, err := archive.Create(dir, info)
	if err == nil {
		must(t, a.Close())
		if _, err = archive.Read(dir); err != nil {
			t.Fatalf("it was begun, and cannot be read: %v", err)
		}
		t.Fatal("the schedule is too small for this test")
	}
	if !strings.Contains(err.Error(), "drive fewer trials at once") {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is left behind")
	}
}
