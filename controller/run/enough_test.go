package run

import (
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/run/engine"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// halfDriven is a run whose first blocks are driven, of 2 speeds in 2 sections
// and at most six blocks, and which has enough when the sections' difference is
// known to ± 1 Mbit/s.
func halfDriven(t *testing.T, blocks int, mb func(wire.Trial, *rand.Rand) float64) *Runner {
	t.Helper()
	return halfDrivenBut(t, blocks, 0, mb)
}

// halfDrivenBut leaves one trial out.
func halfDrivenBut(t *testing.T, blocks, but int, mb func(wire.Trial, *rand.Rand) float64) *Runner {
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
	r := &Runner{Archive: a, Plan: info.Plan, Log: slog.New(slog.DiscardHandler)}
	seqs := map[string]*uint64{}
	for _, x := range info.Plan.Trials {
		if x.Block <= blocks && x.Number != but {
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
	v := wire.Verdict{TrialKey: wire.TrialKey{Trial: x.Number, Attempt: 1}, Outcome: "accepted", Final: true}
	if err := r.Archive.Decide(v); err != nil {
		t.Fatal(err)
	}
}

func noisy(sd float64) func(wire.Trial, *rand.Rand) float64 {
	return func(_ wire.Trial, noise *rand.Rand) float64 { return 20 + sd*noise.NormFloat64() }
}

// chooser is a run's engine whose workers find their nodes as the archive is.
type chooser struct {
	*shell
	t      *testing.T
	placed []engine.Place // what the workers are given, in order
	held   []engine.Action
	ended  int // nodes for which nothing is left
}

func choosing(t *testing.T, r *Runner, workers int) *chooser {
	t.Helper()
	cfg := r.config(false)
	for range workers {
		cfg.Workers = append(cfg.Workers, engine.Worker{Nodes: r.Plan.Trials[0].Nodes()})
	}
	c := &chooser{shell: &shell{Runner: r, engine: engine.New(cfg)}, t: t}
	c.take(engine.Begin{})
	return c
}

// take gives the engine an event and answers what it then asks for.
func (c *chooser) take(ev engine.Event) {
	c.t.Helper()
	for _, a := range c.engine.Step(time.Unix(0, 0), ev) {
		answer := engine.Answer{}
		switch op := a.Op.(type) {
		case engine.Fail:
			c.t.Fatal(op.Doing, op.Err)
		case engine.Place:
			c.placed, c.held = append(c.placed, op), append(c.held, a)
			continue
		case engine.End:
			c.ended++
			continue
		case engine.Measure, engine.Stop, engine.Decide:
			answer = c.answer(nil, a)
		case engine.Judge:
			answer.Verdict, answer.Vouched = wire.Verdict{TrialKey: op.Key, Outcome: wire.Accepted}, true
		}
		answer.ID = a.ID
		c.take(answer)
	}
}

func TestARunStopsAfterTheBlockThatWasEnough(t *testing.T) {
	r := halfDriven(t, 3, noisy(0.01))
	if c := choosing(t, r, 1); len(c.placed) != 0 || c.ended != 2 {
		t.Fatalf("driven %+v: want nothing left", c.placed)
	}
	s := r.Archive.Stopped()
	if s == nil || s.Blocks != 3 ||
		!strings.HasPrefix(s.Reason, "precise enough: after 3 blocks (3 whole): B − A is known to ± ") {
		t.Fatalf("stopped: %+v", s)
	}
	if accepted, givenUp, left := r.Counts(); accepted != 12 || givenUp != 0 || left != 0 {
		t.Errorf("%d accepted, %d given up, %d left: want 12, 0, 0", accepted, givenUp, left)
	}
	// What was decided is on disk: whoever resumes the run keeps to it.
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

// A run that is resumed looks at all that is driven: it does not stop behind it.
func TestAResumedRunLooksAtTheNewestBlock(t *testing.T) {
	r := halfDriven(t, 5, noisy(0.01))
	if c := choosing(t, r, 1); len(c.placed) != 0 {
		t.Fatalf("driven %+v: want nothing left", c.placed)
	}
	if s := r.Archive.Stopped(); s == nil || s.Blocks != 5 {
		t.Errorf("stopped: %+v, want after 5 blocks", s)
	}
}

func TestARunGoesOnUntilItIsPrecise(t *testing.T) {
	r := halfDriven(t, 3, noisy(8))
	c := choosing(t, r, 1)
	if len(c.placed) != 1 || c.placed[0].Attempt != 1 || c.placed[0].Trial.Block != 4 || r.Archive.Stopped() != nil {
		t.Fatalf("driven %+v, stopped %+v: want one of block 4", c.placed, r.Archive.Stopped())
	}
}

func TestTheLastBlockSaysWhatWasNotReached(t *testing.T) {
	r := halfDriven(t, 6, noisy(8))
	if c := choosing(t, r, 1); len(c.placed) != 0 {
		t.Fatalf("driven %+v", c.placed)
	}
	if s := r.Archive.Stopped(); s == nil || s.Blocks != 6 ||
		!strings.Contains(s.Reason, "the precision was not reached: after 6 blocks") {
		t.Errorf("stopped: %+v", s)
	}
}

// A worker that is done does not begin the next block while another is still at
// a trial of one after which the run may stop.
func TestAWorkerWaitsForTheBlockThatMayBeTheLast(t *testing.T) {
	r := halfDrivenBut(t, 3, 6, noisy(0.01)) // of block 2
	c := choosing(t, r, 2)
	if len(c.placed) != 1 || c.placed[0].Trial.Number != 6 || c.ended != 0 || r.Archive.Stopped() != nil {
		t.Fatalf("driven %+v, %d ended, stopped %+v: want trial 6, and to wait for it", c.placed, c.ended,
			r.Archive.Stopped())
	}
	at := c.held[0]
	k := wire.TrialKey{Trial: 6, Attempt: 1}
	seqs := map[string]*uint64{} // after those of the other trials
	for _, n := range r.Plan.Nodes {
		seqs[n.Name] = new(uint64(1e6))
	}
	for node, records := range synthetic.Attempt(r.Plan, c.placed[0].Trial, 1, synthetic.Conditions{MB: 20}, seqs) {
		if err := synthetic.Store(r.Archive, node, records); err != nil {
			t.Fatal(err)
		}
	}
	c.take(engine.Answer{ID: at.ID})
	for _, n := range c.placed[0].Trial.Nodes() {
		c.take(engine.Kept{Worker: at.Worker, Node: n, Key: k,
			State: wire.TrialState{State: wire.StateKept, Outcome: wire.Accepted}})
	}
	if len(c.placed) != 1 || c.ended != 4 || r.Archive.Stopped() == nil {
		t.Errorf("%d driven, %d ended, stopped %+v: want nothing more", len(c.placed), c.ended, r.Archive.Stopped())
	}
}
