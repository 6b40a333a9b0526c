package cmd

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
)

func TestWithoutTheKernelThereIsAnOffer(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := (&virtualFlags{}).find()
	if !errors.Is(err, kernel.ErrNone) || !strings.Contains(err.Error(), "make kernel") ||
		!strings.Contains(err.Error(), "--clock real") {
		t.Errorf("the offer: %v", err)
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
		{"", "virtual", "tap", "", "it is emulated or mac80211"},
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

func TestTheEndIsTheOneInside(t *testing.T) {
	for line, want := range map[string]bool{
		`{"ended":{"error":"1 of 2 trials accepted","unmet":true}}`: true,
		`{"ended":{"error":"the disk is full"}}`:                    false,
	} {
		h := newHearer(progress.New(io.Discard, []string{""}), "", &tally{begun: time.Now()})
		if err := h.line([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := h.ended(); err == nil || errors.Is(err, errUnmet) != want || !strings.Contains(line, err.Error()) {
			t.Errorf("%s: %v", line, err)
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

func TestWhatIsToldInsideIsShownOutside(t *testing.T) {
	shown, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	h := newHearer(progress.New(shown, []string{""}), "", &tally{begun: time.Now().Add(-10 * time.Second)})
	if err := h.ended(); err == nil {
		t.Error("an end that nobody told is none")
	}
	trial := &wire.Trial{Number: 4}
	for _, l := range []told{
		{UptimeS: 1, Step: &run.Progress{Trial: trial, Attempt: 1, Phase: "running", Decided: 3, Total: 6}},
		{UptimeS: 40, Step: &run.Progress{Trial: trial, Attempt: 1, Phase: "judged", Decided: 4, Total: 6,
			Verdict: &wire.Verdict{Outcome: wire.Accepted}}},
		{UptimeS: 41, Ended: &ended{Error: "one trial was given up"}},
	} {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.line(append(text, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.ended(); err == nil || err.Error() != "one trial was given up" {
		t.Errorf("the end: %v", err)
	}
	text, err := os.ReadFile(shown.Name())
	want := "[3/6] trial 4: running\n[4/6] trial 4: accepted\n        40 s of virtual time in 10 s, about 20s left\n"
	if err != nil || string(text) != want {
		t.Errorf("shown:\n%s\nwant:\n%s", text, want)
	}
	if err := h.line([]byte("not JSON\n")); err == nil {
		t.Error("a line that cannot be read is passed over")
	}
}

// What several kernels tell is added up to the whole run's: trials that are decided,
// those of parts that were finished before too, and how virtual time goes.
func TestPartsAreToldTogether(t *testing.T) {
	all := &tally{begun: time.Now().Add(-10 * time.Second), decided: 3, total: 10}
	one, other := newHearer(nil, "job 1", all), newHearer(nil, "job 2", all)
	for i, c := range []struct {
		of      *hearer
		decided int
		uptimeS float64
		want    int
		pace    string
	}{
		{one, 1, 5, 4, "        5 s of virtual time in 10 s"}, // one trial was decided when it began
		{other, 0, 7, 4, "        12 s of virtual time in 10 s"},
		{one, 2, 15, 5, "        22 s of virtual time in 10 s, about 50s left"},
		{other, 1, 20, 6, "        35 s of virtual time in 10 s, about 20s left"},
	} {
		l := &told{UptimeS: c.uptimeS, Step: &run.Progress{Decided: c.decided, Total: 3}}
		if pace := all.take(c.of, l); pace != c.pace || l.Step.Decided != c.want || l.Step.Total != 10 {
			t.Errorf("line %d: [%d/%d]%s, want [%d/10]%s", i, l.Step.Decided, l.Step.Total, pace, c.want, c.pace)
		}
	}
}
