package run

import (
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// halfDriven is a run whose first blocks are driven, of 2 speeds in 2 sections
// and at most six blocks, and which has enough when the sections' difference is
// known to ± 1 Mbit/s.
func halfDriven(t *testing.T, blocks int, mb func(wire.Trial, *rand.Rand) float64) *Runner {
	t.Helper()
	o := synthetic.Options{Seed: 4, Speeds: []float64{2.8, 5.6}, Repetitions: 6, MB: mb}
	info := synthetic.Info(o)
	info.Enough = &plan.StopWhen{Of: "section", HalfWidthMbps: new(1.0), MinBlocks: 3, EveryBlocks: 1, Confidence: 0.95}
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), info)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &Runner{Archive: a, Plan: info.Plan, Log: slog.New(slog.DiscardHandler), taken: map[int]bool{}, freed: make(chan struct{})}
	seqs := map[string]*uint64{}
	for _, x := range info.Plan.Trials {
		if x.Block <= blocks {
			r.driveSynthetic(t, o, x, seqs)
		}
	}
	return r
}

func (r *Runner) driveSynthetic(t *testing.T, o synthetic.Options, x wire.Trial, seqs map[string]*uint64) {
	t.Helper()
	c := synthetic.Conditions{MB: o.MB(x, synthetic.Noise(o.Seed, x.Number))}
	for node, records := range synthetic.Attempt(r.Plan, x, 1, c, seqs) {
		if err := synthetic.Store(r.Archive, node, records); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Archive.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: x.Number, Attempt: 1}, Outcome: "accepted", Final: true}); err != nil {
		t.Fatal(err)
	}
}

func noisy(sd float64) func(wire.Trial, *rand.Rand) float64 {
	return func(_ wire.Trial, noise *rand.Rand) float64 { return 20 + sd*noise.NormFloat64() }
}

func TestARunStopsAfterTheBlockThatWasEnough(t *testing.T) {
	r := halfDriven(t, 3, noisy(0.01))
	_, attempt, wait, err := r.take()
	if err != nil || attempt != 0 || wait != nil {
		t.Fatalf("attempt %d, waiting %v, %v: want nothing left", attempt, wait != nil, err)
	}
	s := r.Archive.Stopped()
	if s == nil || s.Blocks != 3 || !strings.HasPrefix(s.Reason, "precise enough: after 3 blocks (3 whole): B − A is known to ± ") {
		t.Fatalf("stopped: %+v", s)
	}
	if accepted, givenUp, left := r.Counts(); accepted != 12 || givenUp != 0 || left != 0 {
		t.Errorf("%d accepted, %d given up, %d left: want 12, 0, 0", accepted, givenUp, left)
	}
	// What was decided is on disk: whoever goes on with the run keeps to it.
	again, err := archive.Read(r.Archive.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if s := again.Stopped(); s == nil || s.Blocks != 3 {
		t.Errorf("read again, it stopped: %+v", s)
	}
	if err := r.Archive.StopAfter(archive.Stop{Blocks: 4}); err == nil {
		t.Error("a second stop was taken")
	}
}

func TestARunGoesOnUntilItIsPrecise(t *testing.T) {
	r := halfDriven(t, 3, noisy(8))
	x, attempt, wait, err := r.take()
	if err != nil || attempt != 1 || wait != nil || x.Block != 4 || r.Archive.Stopped() != nil {
		t.Fatalf("trial %d of block %d, attempt %d, waiting %v, stopped %+v, %v: want one of block 4", x.Number, x.Block, attempt, wait != nil, r.Archive.Stopped(), err)
	}
}

func TestTheLastBlockSaysWhatWasNotReached(t *testing.T) {
	r := halfDriven(t, 6, noisy(8))
	if _, attempt, _, err := r.take(); err != nil || attempt != 0 {
		t.Fatalf("attempt %d, %v", attempt, err)
	}
	if s := r.Archive.Stopped(); s == nil || s.Blocks != 6 || !strings.Contains(s.Reason, "the precision was not reached: after 6 blocks") {
		t.Errorf("stopped: %+v", s)
	}
}

// A lane that is done does not begin the next block while another is still at a
// trial of one after which may be stopped.
func TestALaneWaitsForTheBlockThatMayBeTheLast(t *testing.T) {
	r := halfDriven(t, 3, noisy(0.01))
	r.taken[r.Plan.Trials[5].Number] = true // another lane is at a trial of block 2 again
	_, _, wait, err := r.take()
	if err != nil || wait == nil || r.Archive.Stopped() != nil {
		t.Fatalf("waiting %v, stopped %+v, %v: want to wait", wait != nil, r.Archive.Stopped(), err)
	}
	r.release(r.Plan.Trials[5].Number)
	select {
	case <-wait:
	default:
		t.Fatal("the other lane is done, and nobody was told")
	}
	if _, attempt, _, err := r.take(); err != nil || attempt != 0 || r.Archive.Stopped() == nil {
		t.Errorf("attempt %d, stopped %+v, %v", attempt, r.Archive.Stopped(), err)
	}
}
