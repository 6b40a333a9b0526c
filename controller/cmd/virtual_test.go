package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/relay"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

func TestWithoutTheKernelThereIsAnOffer(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := (&virtualFlags{}).find()
	if !errors.Is(err, kernel.ErrNone) || !strings.Contains(err.Error(), "make kernel") ||
		!strings.Contains(err.Error(), "--clock real") {
		t.Errorf("the offer: %v", err)
	}
}

// A run that was begun with another kernel is resumed as the refusal says.
func TestARunOfAFormerKernelIsResumedWithIt(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	begun := archive.Clock{Kind: archive.ClockVirtual, Kernel: "7.0", Configuration: "0123456789abcdef", CallNs: 200}
	this := begun
	this.Configuration = "fedcba9876543210"
	if err := anotherKernel("r", begun, this); !strings.Contains(err.Error(), "with --kernel, or build it") {
		t.Errorf("without the former: %v", err)
	}
	path := filepath.Join(cache, "fieldmesh/kernel", begun.Configuration, "linux")
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte("#!/bin/sh\necho 7.0\n"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	said := anotherKernel("r", begun, this).Error()
	_, name, found := strings.Cut(said, "--kernel ")
	if k, err := (&virtualFlags{kernel: name}).find(); !found || err != nil || k.Configuration != begun.Configuration ||
		k.Version != begun.Kernel {
		t.Errorf("%s: that is %+v, %v", said, k, err)
	}
	this.CallNs = 400
	if err := anotherKernel("r", begun, this); !strings.Contains(err.Error(), "the version of fieldmesh that began") {
		t.Errorf("another charge: %v", err)
	}
}

// A run that knows its kernel by the file's hash is resumed with that file, wherever it lies.
func TestARunThatKnowsItsKernelByTheFileIsResumedWithIt(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	path := filepath.Join(cache, "fieldmesh/kernel/0123456789abcdef/linux")
	aside := filepath.Join(t.TempDir(), "linux")
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	for _, file := range []string{path, aside} {
		if err == nil {
			err = os.WriteFile(file, []byte("#!/bin/sh\necho 7.0\n"), 0o755)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	byFile, err := kernel.At(aside)
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.At(path)
	if err != nil || k.Configuration == byFile.Configuration {
		t.Fatalf("%+v, %v", k, err)
	}
	for _, c := range []struct {
		begun string
		same  bool
	}{{k.Configuration, true}, {byFile.Configuration, true}, {"fedcba9876543210", false}} {
		begun := archive.Clock{Kind: archive.ClockVirtual, Kernel: "7.0", Configuration: c.begun, CallNs: callNs}
		if err := sameKernel("r", begun, virtualClock(k), k.Path); (err == nil) != c.same {
			t.Errorf("begun with %s: %v", c.begun, err)
		}
	}
}

// A batch system ends processes in any order: then the rehearsal asks to be run again.
func TestAKernelThatIsEndedBeforeItBootsAsksToBeRunAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "linux")
	for script, cut := range map[string]bool{"kill -KILL $$": true, "kill -TERM $$": true, "kill -SEGV $$": false,
		"exit 1": false} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := (&virtualFlags{kernel: path}).find(); err == nil || errors.Is(err, virtual.ErrCut) != cut {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// The disk in virtual time is half of the memory, and 256 MB of it are left to others.
func TestALongTrialHasRoomInVirtualTime(t *testing.T) {
	long := wire.Trial{DurationS: 3600, Gate: wire.Gate{TimeoutS: 60}}
	p := wire.RunPlan{Nodes: make([]wire.PlanNode, 2), Trials: []wire.Trial{{}, long, {}}}
	if got := int64((&virtualFlags{}).memory(p)-memoryKernelMB) << 20 / 2; got-256<<20 < long.SpoolBytes() {
		t.Errorf("a disk of %d MB for %d MB", got>>20, long.SpoolBytes()>>20)
	}
	short := wire.RunPlan{Nodes: p.Nodes, Trials: make([]wire.Trial, 1)}
	if got, want := (&virtualFlags{}).memory(short), memoryBaseMB+2*memoryNodeMB; got != want {
		t.Errorf("%d MB for a short trial, want %d", got, want)
	}
}

func TestAResumedRehearsalGoesOnByItsOwnClock(t *testing.T) {
	dir := t.TempDir()
	for name, clock := range map[string]*archive.Clock{"old": nil, "real": {Kind: archive.ClockReal},
		"virtual": {Kind: archive.ClockVirtual, Kernel: "7"}} {
		a, err := archive.Create(filepath.Join(dir, name),
			archive.RunInfo{Run: name, Clock: clock, CampaignRaw: []byte("x\n"), Plan: wire.RunPlan{Run: name}})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		resume, clock string
		virtual, fail bool
	}{
		{"", "", false, false},
		{"", "real", false, false},
		{"", "virtual", true, false},
		{"", "stopped", false, true},
		{"old", "", false, false},
		{"real", "virtual", false, true},
		{"virtual", "", true, false},
		{"virtual", "virtual", true, false},
		{"virtual", "real", false, true},
		{"none", "", false, true},
	} {
		f := rehearseFlags{runFlags: runFlags{runs: dir, resume: c.resume}, virtual: virtualFlags{clock: c.clock}}
		got, err := f.virtually()
		if got != c.virtual || (err != nil) != c.fail {
			t.Errorf("--resume %q --clock %q: %v, %v", c.resume, c.clock, got, err)
		}
	}
}

// A run that is over and is not all accepted is told from one that could not be driven.
// A run keeps the radio that it was begun with, and the kernel's own are in the kernel
// of virtual time only.
func TestARehearsalHasOneRadio(t *testing.T) {
	dir := t.TempDir()
	for name, radio := range map[string]string{"ethernet": "", "kernel": archive.RadioMAC80211} {
		a, err := archive.Create(filepath.Join(dir, name), archive.RunInfo{Run: name, Radio: radio,
			Clock:       &archive.Clock{Kind: archive.ClockVirtual, Kernel: "7"},
			CampaignRaw: []byte("x\n"), Plan: wire.RunPlan{Run: name}})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		resume, clock, radio string
		want                 string
		says                 string // the refusal; "": none
	}{
		{"", "virtual", "", "", ""},
		{"", "virtual", "emulated", "", ""},
		{"", "virtual", "mac80211", "mac80211", ""},
		{"", "", "mac80211", "", "add --clock virtual"},
		{"", "real", "mac80211", "", "add --clock virtual"},
		{"", "virtual", "tap", "", "expected emulated or mac80211"},
		{"kernel", "", "", "mac80211", ""},
		{"kernel", "", "mac80211", "mac80211", ""},
		{"kernel", "", "emulated", "", "begun with radio mac80211"},
		{"ethernet", "", "", "", ""},
		{"ethernet", "", "mac80211", "", "begun with radio emulated"},
	} {
		f := rehearseFlags{runFlags: runFlags{runs: dir, resume: c.resume},
			virtual: virtualFlags{clock: c.clock, radio: c.radio}}
		_, err := f.virtually()
		switch {
		case (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says):
			t.Errorf("%+v: %v", c, err)
		case err == nil && f.radio != c.want:
			t.Errorf("%+v: the radio is %q", c, f.radio)
		}
	}
}

// What decides a run to the byte is in it: the seed, and what its clock started at, as
// --start takes it.
func TestARunInVirtualTimeNotesItsStart(t *testing.T) {
	for name, asked := range map[string]string{"by-itself": "", "as-asked": "2026-11-30T12:00:00.000000007Z"} {
		f := rehearseFlags{runFlags: runFlags{runs: t.TempDir(), name: name, scale: "full",
			clock: &archive.Clock{Kind: archive.ClockVirtual}}, agent: shippedVelocity}
		if asked != "" {
			var err error
			if f.start, err = time.Parse(time.RFC3339, asked); err != nil {
				t.Fatal(err)
			}
		}
		s, err := openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.launch(t.Context(), f, kernel.Kernel{Path: "/absent", Version: "7"}, nil, io.Discard); err == nil {
			t.Error("there was a kernel")
		}
		entries, err := s.archive.Journal()
		if err != nil || len(entries) != 1 {
			t.Fatalf("%+v, %v", entries, err)
		}
		_, noted, _ := strings.Cut(entries[0].Text, " --start ")
		started, err := time.Parse(time.RFC3339, noted)
		if err != nil || !started.Equal(s.archive.Info().CreatedWall) || asked != "" && noted != asked {
			t.Errorf("%s: it notes %q: %v; it was created %v", name, entries[0].Text, err, s.archive.Info().CreatedWall)
		}
		journal := filepath.Join(s.archive.Dir(), "journal.ndjson")
		line := `{"t_wall":"2030-01-01T00:00:00Z","type":"verdict","verdict":{"trial":1,"attempt":1,"outcome":"accepted"}}`
		file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = fmt.Fprintln(file, line)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.start(); err != nil || again.Format(time.RFC3339) != "2030-01-01T02:00:00Z" {
			t.Errorf("a second boot begins at %v: %v", again, err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

// No two boots of a run may draw the same: what they draw names their records.
func TestEachBootHasASeedOfItsOwn(t *testing.T) {
	ofShards := map[uint64]bool{}
	for n := range 3 {
		a, err := archive.Create(filepath.Join(t.TempDir(), "r"), archive.RunInfo{Run: "r", Seed: 7,
			Shard: &archive.Shard{Number: n + 1, Of: 3}, CampaignRaw: []byte("x\n"),
			Plan: wire.RunPlan{Run: "r", Seed: 7}})
		if err != nil {
			t.Fatal(err)
		}
		seed, err := (&session{archive: a, plan: a.Info().Plan}).bootSeed()
		if err := errors.Join(err, a.Close()); err != nil {
			t.Fatal(err)
		}
		ofShards[seed] = true
	}
	if len(ofShards) != 3 {
		t.Errorf("three shards have %d seeds", len(ofShards))
	}
	a, err := archive.Create(filepath.Join(t.TempDir(), "r"),
		archive.RunInfo{Run: "r", Seed: 7, CampaignRaw: []byte("x\n"), Plan: wire.RunPlan{Run: "r", Seed: 7}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	seen := map[uint64]bool{}
	for range 20 {
		for _, runSeed := range []uint64{7, 8} {
			seed, err := (&session{archive: a, plan: wire.RunPlan{Seed: runSeed}}).bootSeed()
			if err != nil {
				t.Fatal(err)
			}
			if seen[seed] {
				t.Fatalf("seed %d is drawn twice", seed)
			}
			seen[seed] = true
		}
		if err := a.Note("a boot"); err != nil {
			t.Fatal(err)
		}
	}
}

// What kills a kernel each time, as a bound on memory does, is no reason to be run again for ever;
// one that decides an attempt between gets on.
func TestAKernelThatIsKilledAgainAsksForMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "linux")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nkill -KILL $$\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := rehearseFlags{runFlags: runFlags{runs: t.TempDir(), name: "r", scale: "full",
		clock: &archive.Clock{Kind: archive.ClockVirtual}}, agent: shippedVelocity}
	boot := func(decide int) error {
		t.Helper()
		s, err := openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal)
		if err != nil {
			t.Fatal(err)
		}
		f.resume, f.name = s.archive.Dir(), ""
		if decide > 0 {
			v := wire.Verdict{TrialKey: wire.TrialKey{Trial: decide, Attempt: 1}, Outcome: wire.Accepted, Final: true}
			if err := s.archive.Decide(v); err != nil {
				t.Fatal(err)
			}
		}
		killed := s.launch(t.Context(), f, kernel.Kernel{Path: path, Version: "7"}, &relay.Hearer{}, io.Discard)
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		return killed
	}
	for i, c := range []struct {
		decide int // a trial, before the boot
		again  bool
	}{{0, true}, {1, true}, {2, true}, {0, false}, {0, false}, {3, true}} {
		err := boot(c.decide)
		if err == nil || errors.Is(err, virtual.ErrCut) != c.again ||
			!c.again && !strings.Contains(err.Error(), "--memory-mb") {
			t.Errorf("boot %d: %v, to be run again: %v expected", i+1, err, c.again)
		}
	}
}
