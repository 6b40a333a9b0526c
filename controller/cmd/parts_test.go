package cmd

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/parts"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

const shippedVelocity = "../../campaigns/velocity.yaml"

// jobsFlags are those of a run that is driven in parts.
func jobsFlags(runs string, jobs int) rehearseFlags {
	return rehearseFlags{runFlags: runFlags{runs: runs, name: "wide", scale: "full",
		clock: &archive.Clock{Kind: archive.ClockVirtual, Kernel: "7"}}, virtual: virtualFlags{jobs: jobs}}
}

// finishPart decides the trials of a part, all but one of them accepted, as its
// kernel would.
func finishPart(t *testing.T, shard string, rejected int) {
	t.Helper()
	s, err := resumeSession(runFlags{resume: shard})
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range s.plan.Trials {
		if !s.archive.Drives(trial) {
			continue
		}
		v := wire.Verdict{TrialKey: wire.TrialKey{Trial: trial.Number, Attempt: 1}, Outcome: wire.Accepted, Final: true}
		if trial.Number == rejected {
			v.TrialKey.Attempt, v.Outcome = s.plan.AttemptsMax, wire.Rejected
		}
		if err := s.archive.Decide(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.archive.Finish(), s.archive.Close()); err != nil {
		t.Fatal(err)
	}
}

// release lets other processes have the parts, as the end of this one would.
func release(t *testing.T, p *parts.Parts) {
	t.Helper()
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
}

// Two processes never drive the parts of one run, nor put them together; one that is
// refused takes nothing away, and neither does one that cannot resume what
// another began.
func TestPartsAreOneProcesss(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 2)
	f.agent = shippedVelocity // there is such a file
	p, err := f.parts(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	f.name, f.resume = "", "wide"
	again := func(want error) {
		t.Helper()
		other, err := f.parts("")
		if err != nil {
			t.Fatal(err)
		}
		absent := kernel.Kernel{Path: "/absent", Version: "7"}
		err = inParts{other}.rehearse(t.Context(), f, absent, io.Discard, io.Discard)
		if err == nil || !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		for _, shard := range p.Shards {
			if _, err := archive.Read(shard); err != nil {
				t.Errorf("a part is gone: %v", err)
			}
		}
	}
	again(archive.ErrLocked)
	for _, shard := range p.Shards {
		finishPart(t, shard, 0)
	}
	again(archive.ErrLocked)
	if isDir(p.Whole) {
		t.Error("it was put together by another")
	}
}

func TestPartsThatAnotherBeganStay(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 2)
	f.agent = shippedVelocity // there is such a file
	p, err := f.parts(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	release(t, p)
	f.name, f.resume = "", "wide"
	if p, err = f.parts(""); err != nil {
		t.Fatal(err)
	}
	err = inParts{p}.rehearse(t.Context(), f, kernel.Kernel{Path: "/absent", Version: "7"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "/absent") || !isDir(p.Shards[0]) {
		t.Errorf("resumed without a kernel, and the parts are there: %v; %v", isDir(p.Shards[0]), err)
	}
}

// A part that is missing is told before the others are driven.
func TestAPartThatIsMissing(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 2)
	p, err := f.parts(shippedVelocity)
	if err == nil {
		err = errors.Join(p.Release(), os.RemoveAll(p.Shards[2]))
	}
	if err != nil {
		t.Fatal(err)
	}
	f.name, f.resume = "", "wide"
	if p, err = f.parts(""); err != nil {
		t.Fatal(err)
	}
	err = inParts{p}.rehearse(t.Context(), f, kernel.Kernel{Path: "/absent", Version: "7"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "24 parts, and of those 3 is missing") || !isDir(p.Dir) {
		t.Errorf("without part 3: %v", err)
	}
}

// begunToJoin leaves what a process leaves that is killed while it puts parts together.
func begunToJoin(t *testing.T, p *parts.Parts) {
	t.Helper()
	part, err := archive.Read(p.Shards[0])
	if err != nil {
		t.Fatal(err)
	}
	info := part.Info()
	info.Merged, info.Shard = info.Shard.Of, nil
	whole, err := archive.Create(filepath.Join(p.Dir, ".merged.new"), info)
	if err == nil {
		err = whole.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run in parts becomes one run, wherever it is ended meanwhile; what is finished
// is not driven again.
func TestPartsBecomeOneRun(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	f := jobsFlags(runs, 2)
	p, err := f.parts(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Shards) != 24 { // each trial is one
		t.Fatalf("%d parts", len(p.Shards))
	}
	if again, err := f.parts(shippedVelocity); !errors.Is(err, archive.ErrExists) ||
		!strings.Contains(err.Error(), "--resume wide") {
		t.Errorf("begun twice: %+v, %v", again, err)
	}
	for _, shard := range p.Shards[:5] {
		finishPart(t, shard, 3)
	}
	if _, err := openRun(runs, "wide"); err == nil || !strings.Contains(err.Error(), "rehearse --resume wide") {
		t.Errorf("read before it is whole: %v", err)
	}
	begunToJoin(t, p)
	release(t, p)
	f = jobsFlags(runs, 1)
	f.name, f.resume = "", "wide"
	if virtually, err := f.virtually(); err != nil || !virtually {
		t.Errorf("resumed in virtual time: %v, %v", virtually, err)
	}
	if p, err = f.parts(""); err != nil {
		t.Fatal(err)
	}
	left, all, err := p.Unfinished()
	if err != nil || len(left) != 19 || all.Decided != 5 || all.Trials != 24 {
		t.Errorf("%d parts left, %d of %d trials decided, %v", len(left), all.Decided, all.Trials, err)
	}
	for _, shard := range left {
		finishPart(t, shard, 3)
	}
	if err := os.MkdirAll(filepath.Join(p.Dir, "merged", "trials"), 0o755); err != nil { // half put together
		t.Fatal(err)
	}
	var said bytes.Buffer
	err = inParts{p}.rehearse(t.Context(), f, kernel.Kernel{}, &said, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "run wide: 23 of 24 trials accepted") ||
		!strings.Contains(err.Error(), "--resume "+p.Whole) {
		t.Errorf("a trial was given up: %v", err)
	}
	if !strings.Contains(said.String(), "23 of 24 trials accepted\nreport: "+p.Whole) {
		t.Errorf("it says:\n%s", said.String())
	}
	if findings, err := archive.Verify(p.Whole); err != nil || len(findings) > 0 {
		t.Errorf("the whole: %v, %v", findings, err)
	}
	if _, err := os.Stat(p.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the parts are there: %v", err)
	}
	if p, err := f.begunParts(); p != nil || err != nil {
		t.Errorf("parts of what is whole: %+v, %v", p, err)
	}
	f.retry = []int{3}
	s, err := resumeSession(f.runFlags)
	if err != nil {
		t.Fatalf("the trial cannot be driven again: %v", err)
	}
	if err := s.archive.Close(); err != nil {
		t.Error(err)
	}
}

// What kills a part's kernel each time is told with the way to resume the whole.
func TestAPartWhoseKernelIsKilledAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "linux")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nkill -KILL $$\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 2)
	f.agent = shippedVelocity // there is such a file
	p, err := f.parts(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	f.name, f.resume = "", "wide"
	said := ""
	for range 3 { // of the two that begin, either may be the one that is killed first
		release(t, p)
		if p, err = f.parts(""); err != nil {
			t.Fatal(err)
		}
		err = inParts{p}.rehearse(t.Context(), f, kernel.Kernel{Path: path, Version: "7"}, io.Discard, io.Discard)
		if said = err.Error(); !errors.Is(err, virtual.ErrCut) {
			break
		}
	}
	resume := "`fieldmesh rehearse --resume " + p.Whole + " --jobs 2`"
	if !strings.Contains(said, "killed twice") || !strings.Contains(said, resume) ||
		!strings.Contains(said, "fewer --jobs") || strings.Count(said, "--resume") != 1 {
		t.Errorf("killed twice, it says %s", said)
	}
}

// One --start repeats a run in parts, so all of them begin at the same, whenever each is driven.
func TestAllPartsBeginAtTheSame(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 2)
	f.agent = shippedVelocity // there is such a file
	p, err := f.parts(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	release(t, p)
	for _, shard := range p.Shards[:2] {
		absent := kernel.Kernel{Path: "/absent", Version: "7"}
		if err := drivePart(t.Context(), f, absent, shard, nil); err == nil {
			t.Fatal("there was a kernel")
		}
		a, err := archive.Read(shard)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := a.Journal()
		if err != nil || len(entries) != 1 {
			t.Fatalf("%+v, %v", entries, err)
		}
		_, noted, _ := strings.Cut(entries[0].Text, " --start ")
		if at, err := time.Parse(time.RFC3339, noted); err != nil || !at.Equal(a.Info().CreatedWall) {
			t.Errorf("%s: it begins at %q, created %v", shard, noted, a.Info().CreatedWall)
		}
	}
}

// What a process that was killed left of parts that it took away, goes when the run is resumed.
func TestPartsThatWereNotAllTakenAway(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 0)
	left := filepath.Join(f.runs, ".wide-parts.old", "wide-1")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	f.name, f.resume = "", "wide"
	if p, err := f.parts(""); p != nil || err != nil || isDir(filepath.Dir(left)) {
		t.Errorf("%+v, %v; it is there: %v", p, err, isDir(filepath.Dir(left)))
	}
}

// A run of which no kernel has recorded anything leaves nothing behind.
func TestPartsThatCannotBeDriven(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 2)
	f.agent = shippedVelocity // there is such a file
	p, err := f.parts(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	err = inParts{p}.rehearse(t.Context(), f, kernel.Kernel{Path: "/absent", Version: "7"}, &bytes.Buffer{}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "/absent") {
		t.Errorf("without a kernel: %v", err)
	}
	if isDir(p.Dir) || isDir(p.Whole) {
		t.Error("its folders are there")
	}
}

// A run that was put together and lost its power while its parts were taken away
// is whole.
func TestPartsThatAreHalfGone(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 1)
	p, err := f.parts(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range p.Shards {
		finishPart(t, shard, 0)
	}
	if err := os.CopyFS(p.Dir+".copy", os.DirFS(p.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := p.Join(); err != nil {
		t.Fatal(err)
	}
	release(t, p)
	if err := os.Rename(p.Dir+".copy", p.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(p.Shards[0]); err != nil {
		t.Fatal(err)
	}
	f.name, f.resume = "", p.Whole
	if p, err = f.parts(""); err != nil || len(p.Shards) != 23 {
		t.Fatalf("resumed: %+v, %v", p, err)
	}
	var said bytes.Buffer
	if err := (inParts{p}).rehearse(t.Context(), f, kernel.Kernel{}, &said, io.Discard); err != nil ||
		!strings.Contains(said.String(), "24 of 24 trials accepted") {
		t.Errorf("%v\n%s", err, said.String())
	}
}

// A run of the same name is no reason to take parts away that are not in it.
func TestPartsBesideAnotherRunStay(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 1)
	p, err := f.parts(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	whole := f.runFlags
	if _, err := openSession(whole, shippedVelocity, archive.PlaceRehearsal); !errors.Is(err, archive.ErrExists) {
		t.Errorf("a run is begun in the place of one in parts: %v", err)
	}
	release(t, p)
	if err := os.Rename(p.Dir, p.Dir+".aside"); err != nil {
		t.Fatal(err)
	}
	s, err := openSession(whole, shippedVelocity, archive.PlaceRehearsal)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.archive.Close(); err != nil {
		t.Fatal(err)
	}
	finishPart(t, p.Whole, 0)
	if err := os.Rename(p.Dir+".aside", p.Dir); err != nil {
		t.Fatal(err)
	}
	f.name, f.resume = "", p.Whole
	if p, err = f.parts(""); err != nil {
		t.Fatal(err)
	}
	err = inParts{p}.rehearse(t.Context(), f, kernel.Kernel{}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "give either folder another name") || !isDir(p.Shards[23]) {
		t.Errorf("beside another run: %v", err)
	}
}

func TestJobsAreRefusedWhereTheyCannotBe(t *testing.T) {
	stops := filepath.Join(t.TempDir(), "stops.yaml")
	text, err := os.ReadFile(shippedVelocity)
	if err == nil {
		err = os.WriteFile(stops, bytes.Replace(text, []byte("  repetitions: 2"),
			[]byte("  stop_when: {of: section, half_width_mbps: 1, min_blocks: 3}\n  repetitions: 5"), 1), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file   string
		change func(*rehearseFlags)
		want   string
	}{
		"fewer than none":        {shippedVelocity, func(f *rehearseFlags) { f.virtual.jobs = -1 }, "--jobs -1"},
		"a shard":                {shippedVelocity, func(f *rehearseFlags) { f.shard = "1/2" }, "--shard 1/2"},
		"stops when it is known": {stops, func(*rehearseFlags) {}, "design.stop_when"},
		"resumed, not in parts":  {"", func(f *rehearseFlags) { f.resume = "other" }, "was not begun in parts"},
	} {
		t.Run(name, func(t *testing.T) {
			f := jobsFlags(t.TempDir(), 2)
			c.change(&f)
			if _, err := f.parts(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if left, _ := os.ReadDir(f.runs); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
