package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/archive/runkey"
	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// The same command begins a run, and continues it: whole, a shard, or in parts.
func TestACommandThatIsGivenAgainContinues(t *testing.T) {
	for name, change := range map[string]func(*rehearseFlags){
		"whole":    func(f *rehearseFlags) { f.virtual.jobs = 0 },
		"a shard":  func(f *rehearseFlags) { f.virtual.jobs, f.shard = 0, "2/3" },
		"in parts": func(*rehearseFlags) {},
	} {
		t.Run(name, func(t *testing.T) {
			f := jobsFlags(t.TempDir(), 2)
			f.orResume, f.place = true, archive.PlaceRehearsal
			change(&f)
			file, err := f.findBegun(shippedVelocity)
			if file != shippedVelocity || err != nil || f.resume != "" {
				t.Fatalf("at first: %q, --resume %q, %v", file, f.resume, err)
			}
			want := "wide"
			if f.virtual.jobs > 0 {
				_, err = f.parts(file)
			} else {
				var s *session
				if s, err = openSession(f.runFlags, file, archive.PlaceRehearsal); err == nil {
					want, err = filepath.Base(s.archive.Dir()), s.archive.Close()
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			again := f
			if file, err = again.findBegun(shippedVelocity); file != "" || err != nil ||
				again.resume != filepath.Join(f.runs, want) {
				t.Errorf("again: %q, --resume %q, %v", file, again.resume, err)
			}
			if virtually, err := again.virtually(); !virtually || err != nil {
				t.Errorf("its clock: %v, %v", virtually, err)
			}
			f.scale = "quick"
			if _, err := f.findBegun(shippedVelocity); err == nil || !strings.Contains(err.Error(), "at scale quick") {
				t.Errorf("at another scale: %v", err)
			}
		})
	}
}

func TestACommandThatIsGivenAgainIsTheSame(t *testing.T) {
	f := jobsFlags(t.TempDir(), 0)
	s, err := openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.archive.Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	text, err := os.ReadFile(shippedVelocity)
	if err == nil {
		err = os.WriteFile(other, append(text, "# another\n"...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.orResume = true
	if _, err := f.findBegun(other); err == nil || !strings.Contains(err.Error(), "begun with another campaign file") ||
		!strings.Contains(err.Error(), "--resume "+s.archive.Dir()) {
		t.Errorf("another file: %v", err)
	}
	f.name = ""
	if _, err := f.findBegun(shippedVelocity); err == nil || !strings.Contains(err.Error(), "--name") {
		t.Errorf("without a name: %v", err)
	}
}

// A run is continued where it was begun: a road's nodes drive no rehearsal, and a field no road's run.
func TestARunIsContinuedAtItsPlace(t *testing.T) {
	f := jobsFlags(t.TempDir(), 0)
	s, err := openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.archive.Close(); err != nil {
		t.Fatal(err)
	}
	f.orResume = true
	f.place = archive.PlaceRoad
	if _, err := f.findBegun(shippedVelocity); err == nil || !strings.Contains(err.Error(), "place road") {
		t.Errorf("begun again on the road: %v", err)
	}
	f.resume, f.retry = s.archive.Dir(), []int{99}
	s, err = openSession(f.runFlags, "", archive.PlaceRoad)
	if s != nil || err == nil || !strings.Contains(err.Error(), "its place is rehearsal; `fieldmesh rehearse ") {
		t.Errorf("continued on the road: %v", err)
	}
}

// A run is resumed on another disk with its folder and its key.
func TestACopiedRunIsResumedWithItsKey(t *testing.T) {
	f := jobsFlags(filepath.Join(t.TempDir(), "runs"), 0)
	s, err := openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal)
	if err != nil {
		t.Fatal(err)
	}
	from := s.archive.Dir()
	if err := s.archive.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(from))
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	_, err = resumeSession(runFlags{resume: to})
	if err == nil || !strings.Contains(err.Error(), "its key is not at "+runkey.File(to)+"; copy it there from") {
		t.Errorf("without its key: %v", err)
	}
	key := os.DirFS(filepath.Dir(runkey.File(from)))
	if err := os.CopyFS(filepath.Dir(runkey.File(to)), key); err != nil {
		t.Fatal(err)
	}
	if s, err = resumeSession(runFlags{resume: to}); err != nil {
		t.Fatal(err)
	}
	if err := s.archive.Close(); err != nil {
		t.Error(err)
	}
}

func TestARunIsAnnounced(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8, 16.7}, Repetitions: 1})
	c, err := plan.Load(filepath.Join("..", "..", "campaigns", "velocity.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s := &session{archive: a, plan: a.Info().Plan, campaign: c}
	s.announce(progress.New(&out, []string{""}), 1)
	want := "run " + s.plan.Run + " in " + a.Dir() + ": 4 trials\nwatch: fieldmesh live " + a.Dir() + "\n"
	if out.String() != want {
		t.Errorf("it says %q", out.String())
	}
}

func onlyRehearsed(t *testing.T, c *plan.Campaign, refusal error) {
	t.Helper()
	for place, want := range map[string]error{archive.PlaceRoad: refusal, archive.PlaceBench: refusal,
		archive.PlaceRehearsal: nil} {
		if _, err := (&runFlags{}).plan(c, "r", make([]byte, 32), place); !errors.Is(err, want) {
			t.Errorf("at the place %s: %v, want %v", place, err, want)
		}
	}
}

func TestFlowsAcrossOthersAreNotForTheRoad(t *testing.T) {
	c, err := scene.Read("../../campaigns/reference-tcp.yaml", "smoke")
	if err != nil {
		t.Fatal(err)
	}
	onlyRehearsed(t, c, preflight.ErrAcross)
}

func TestRatesOfTheEmulatedRadioAreNotForTheRoad(t *testing.T) {
	text, err := os.ReadFile(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	text = []byte(strings.NewReplacer("standard: 802.11g", "standard: 802.11n", "field:\n",
		"field:\n  radio: ht20\n").Replace(string(text)))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := scene.Read(file, "")
	if err != nil {
		t.Fatal(err)
	}
	onlyRehearsed(t, c, preflight.ErrEmulated)
}

// Two levels of such a factor would be one treatment on a road, and be compared as two.
func TestConditionsOfAnEmulatedFieldAreNotForTheRoad(t *testing.T) {
	text, err := os.ReadFile(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	for _, factor := range []string{"queue: {key: conditions.queue_frames, levels: [5, 50]}",
		"motion: {key: still, levels: [true, false]}"} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		changed := bytes.Replace(text, []byte("\nfactors:\n"), []byte("\nfactors:\n  "+factor+"\n"), 1)
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := scene.Read(file, "")
		if err != nil {
			t.Fatal(err)
		}
		onlyRehearsed(t, c, preflight.ErrConditions)
	}
}

// A rehearsal that was begun before each repetition drew its channel goes on as it was.
func TestAResumedRehearsalKeepsItsDraws(t *testing.T) {
	for draws, want := range map[string]string{"": environment.DrawsPerCampaign,
		environment.DrawsPerRepetition: environment.DrawsPerRepetition} {
		c, err := scene.Read(shippedVelocity, "")
		if err != nil {
			t.Fatal(err)
		}
		p, err := (&runFlags{}).plan(c, "r", make([]byte, 32), archive.PlaceRehearsal)
		if err != nil {
			t.Fatal(err)
		}
		runs := t.TempDir()
		dir := filepath.Join(runs, "r")
		a, err := archive.Create(dir, archive.RunInfo{Run: "r", Campaign: c.Name, Place: archive.PlaceRehearsal,
			ChannelDraws: draws, CampaignRaw: c.Raw, Plan: p})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(runkey.Keep(dir, p.Key), a.Close()); err != nil {
			t.Fatal(err)
		}
		s, err := resumeSession(runFlags{runs: runs, resume: "r"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := scene.Settings(s.campaign); err != nil || got.ChannelDraws != want {
			t.Errorf("with %q in run.json it is resumed with %q, want %q (%v)", draws, got.ChannelDraws, want, err)
		}
		if err := s.archive.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A run is of every version of the controller that drove it.
func TestAnotherVersionThatContinuesIsNamed(t *testing.T) {
	f := jobsFlags(t.TempDir(), 0)
	s, err := openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.archive.Close(); err != nil {
		t.Fatal(err)
	}
	dir := s.archive.Dir()
	sheet := filepath.Join(dir, "run.json")
	text, err := os.ReadFile(sheet)
	if err == nil {
		err = os.WriteFile(sheet, bytes.Replace(text, []byte(version.String()), []byte("0.0.9"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is the same as before
		s, err := resumeSession(runFlags{resume: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.archive.Close(); err != nil {
			t.Fatal(err)
		}
	}
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	notes, err := a.Journal()
	if err != nil || len(notes) != 1 || notes[0].Text != "continued by "+version.String() {
		t.Errorf("its journal has %+v, %v", notes, err)
	}
	if got := a.Info().Version; got != "0.0.9 and "+version.String() {
		t.Errorf("its version is %q", got)
	}
}

// A complete run stays so until the nodes can drive its trial again: what refuses that may last for ever.
func TestARetryThatIsRefusedLeavesTheRunComplete(t *testing.T) {
	f := jobsFlags(t.TempDir(), 0).runFlags
	f.locate = func(*wire.RunPlan) error { return nil }
	s, err := openSession(f, shippedVelocity, archive.PlaceRoad)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.archive.Close(); err != nil {
		t.Fatal(err)
	}
	finishPart(t, s.archive.Dir(), 7)
	for _, fleetFile := range []string{"/nowhere/fleet.yaml", refusingFleet(t, s.plan.Nodes)} {
		c := RunCommand()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs([]string{"--resume", s.archive.Dir(), "--retry", "7", "--fleet", fleetFile, "--patience", "0s"})
		if err := c.ExecuteContext(t.Context()); err == nil {
			t.Errorf("driven with %s", fleetFile)
		}
		findings, err := archive.Verify(s.archive.Dir())
		if err != nil || len(findings) > 0 {
			t.Errorf("after a refusal with %s: %v, %v", fleetFile, findings, err)
		}
	}
	f.resume, f.retry = s.archive.Dir(), []int{7}
	if s, err = openSession(f, "", archive.PlaceRoad); err != nil {
		t.Fatal(err)
	}
	if err := s.again(); err != nil {
		t.Fatal(err)
	}
	if _, givenUp, left := (&run.Runner{Archive: s.archive, Plan: s.plan}).Counts(); givenUp != 0 || left != 1 {
		t.Errorf("retried: %d given up, %d left", givenUp, left)
	}
	if err := s.archive.Close(); err != nil {
		t.Error(err)
	}
}

// refusingFleet is a fleet file of nodes where nobody listens.
func refusingFleet(t *testing.T, nodes []wire.PlanNode) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := fleet.Init(dir); err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		if _, err := fleet.Issue(dir, n.Name, fmt.Sprintf("127.0.0.%d:1", i+1), fleet.IssueOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, fleet.FileName)
}

// A run that was killed before it had its key is begun again by the same command, and
// who resumes it is told how.
func TestARunThatWasLeftWithoutAKey(t *testing.T) {
	f := jobsFlags(t.TempDir(), 0)
	s, err := openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.archive.Close(), runkey.Forget(s.archive.Dir())); err != nil {
		t.Fatal(err)
	}
	resumed := f.runFlags
	resumed.resume = s.archive.Dir()
	_, err = openSession(resumed, "", archive.PlaceRehearsal)
	if err == nil || !strings.Contains(err.Error(), "or remove "+s.archive.Dir()+", in which nothing is recorded") {
		t.Errorf("without a key: %v", err)
	}
	f.orResume, f.place = true, archive.PlaceRehearsal
	if file, err := f.findBegun(shippedVelocity); file != shippedVelocity || err != nil {
		t.Fatalf("begins with %q: %v", file, err)
	}
	if s, err = openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// A shard may have no trials. It is finished without, and stays for the merge.
func TestAShardWithoutTrialsStays(t *testing.T) {
	f := jobsFlags(t.TempDir(), 0)
	f.shard = "25/25" // of 24 trials
	s, err := openSession(f.runFlags, shippedVelocity, archive.PlaceRehearsal)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.archive.Finish(), s.close()); err != nil {
		t.Fatal(err)
	}
	if a, err := archive.Read(s.archive.Dir()); err != nil || !a.Finished() {
		t.Errorf("it is not there and finished: %v", err)
	}
}
