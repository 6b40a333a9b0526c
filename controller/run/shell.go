package run

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/run/engine"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// leavePatience is how long a run that is ended from outside takes to keep what
// people have decided.
const leavePatience = 10 * time.Second

// shell does the actions of an engine, each in a goroutine of its own, and
// tells it what came of them. Only loop calls the engine.
type shell struct {
	*Runner
	engine *engine.Engine
	lanes  []*openLane
	events chan engine.Event
	own    *ownRecords
	ctx    context.Context // ends with the run
	end    context.CancelFunc
	leave  context.Context // ends actions: with the run, or when it is ended from outside
	work   sync.WaitGroup
	over   bool
	err    error
	// complete is whether the nodes have ended the run, with no trial left. It is set before ctx ends.
	complete bool
	sealing  sync.WaitGroup
	sealed   chan error
	broken   chan error // what no waiting mends
	results  results
}

// work has an engine drive the run, or only make nodes and archive agree.
func (r *Runner) work(ctx context.Context, pullOnly bool) error {
	s := &shell{Runner: r, engine: engine.New(r.config(pullOnly)),
		events: make(chan engine.Event), sealed: make(chan error), broken: make(chan error)}
	var end, leave context.CancelFunc
	s.ctx, end = context.WithCancel(context.WithoutCancel(ctx))
	s.leave, leave = context.WithCancel(ctx)
	s.end = func() { end(); leave() }
	fresh := r.Archive.Empty()
	for i, lane := range r.Lanes {
		s.lanes = append(s.lanes, newOpenLane(s, i, lane, fresh))
	}
	s.own = newOwnRecords(r)
	sealErr := make(chan error)
	go func() {
		var all error
		for err := range s.sealed {
			all = errors.Join(all, err)
		}
		sealErr <- all
	}()
	s.loop(ctx)
	_, _, left := r.Counts()
	s.complete = s.err == nil && left == 0
	s.end()
	s.work.Wait()
	s.own.close()
	s.sealing.Wait()
	close(s.sealed)
	return errors.Join(s.err, <-sealErr)
}

// isOver reports whether the run is complete, once it has ended; it may be called by any goroutine.
func (s *shell) isOver() bool { return s.ctx.Err() != nil && s.complete }

// loop takes events until nothing is left to do.
func (s *shell) loop(ctx context.Context) {
	if err := s.recall(); err != nil {
		s.err = err
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	leaving := ctx.Done()
	var patience <-chan time.Time
	s.step(engine.Begin{})
	for !s.over {
		timer.Stop()
		if next, wanted := s.engine.Next(); wanted {
			timer.Reset(time.Until(next))
		}
		select {
		case ev := <-s.events:
			s.step(ev)
		case <-timer.C:
			s.step(engine.Tick{})
		case err := <-s.broken:
			s.fail(nil, engine.Fail{Err: err})
		case <-leaving:
			leaving, patience, s.err = nil, time.After(leavePatience), context.Cause(ctx)
			s.step(engine.Leave{})
		case <-patience:
			return
		}
	}
}

// recall tells the engine what the archive holds already of attempts that are
// not decided, and what people decided that the journal has no answer to: a
// controller that was killed may have collected it and done nothing about it.
func (s *shell) recall() error {
	attempts, err := s.Archive.Trials()
	if err != nil {
		return err
	}
	journal, err := s.Archive.Journal()
	if err != nil {
		return err
	}
	answered, all := answeredNotes(journal)
	for _, at := range append(attempts, archive.Attempt{}) { // the last: what belongs to no attempt
		decided := at.Verdict != nil || at.Trial == 0
		if decided && !all {
			continue
		}
		err := s.Archive.EachLine(at.TrialKey, func(line []byte) error {
			if uninteresting(line) {
				return nil
			}
			var rec wire.Record
			if err := json.Unmarshal(line, &rec); err != nil || rec.Run != s.Plan.Run {
				return err
			}
			if note, is := rec.Body.(*wire.Noted); is {
				if !answered[note.ID] {
					s.step(sighting(0, rec))
				}
				return nil
			}
			for i := range s.lanes { // which lane made it is not in it; the one at the attempt asks for it
				if ev := sighting(i, rec); ev != nil && !decided {
					s.step(ev)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("recall trial %d attempt %d: %w", at.Trial, at.Attempt, err)
		}
	}
	return nil
}

// answeredNotes returns the IDs of the notes that the journal has an answer to, and
// reports whether all its answers name theirs. Those of earlier versions do not, and
// what they decided is not to be decided again.
func answeredNotes(journal []archive.JournalEntry) (ids map[string]bool, all bool) {
	ids, all = map[string]bool{}, true
	for _, e := range journal {
		ids[e.NoteID] = true
		if e.Verdict == nil || e.Verdict.Word == nil {
			continue
		}
		w := e.Verdict.Word
		ids[w.NoteID] = true
		all = all && (w.NoteID != "" || w.Decision == verdict.Retry)
	}
	return ids, all
}

func (s *shell) step(ev engine.Event) {
	for _, a := range s.engine.Step(time.Now(), ev) {
		s.do(a)
	}
}

// tell gives the engine an event, unless the run is over.
func (s *shell) tell(ev engine.Event) {
	select {
	case s.events <- ev:
	case <-s.ctx.Done():
	}
}

// do does an action, or has it done.
func (s *shell) do(a engine.Action) {
	var lane *openLane
	if a.Worker >= 0 {
		lane = s.lanes[a.Worker]
	}
	switch op := a.Op.(type) {
	case engine.Show:
		s.show(progress(lane, op))
	case engine.Log:
		if s.leave.Err() == nil {
			s.Log.Warn(op.Doing, "trial", op.Key.Trial, "attempt", op.Key.Attempt, "error", op.Err)
		}
	case engine.Fail:
		s.fail(lane, op)
	case engine.Finished:
		s.over = true
	case engine.Seal:
		s.seal(op.Key)
	case engine.Collect:
		lane.collectAll()
	case engine.Quiet:
		s.work.Go(func() {
			lane.silent(s.leave, op.For)
			s.tell(engine.Answer{ID: a.ID})
		})
	default:
		s.work.Go(func() {
			answer := s.answer(lane, a)
			answer.ID = a.ID
			s.tell(answer)
		})
	}
}

// show shows a step, if anybody looks. That of an accepted attempt says what it
// measured, which is read while the run goes on.
func (s *shell) show(p Progress) {
	if s.Watch == nil {
		return
	}
	p = s.counted(p)
	if p.Verdict == nil || p.Verdict.Outcome != wire.Accepted {
		s.Watch(p)
		return
	}
	s.work.Go(func() {
		if bps := s.results.of(s.Archive, *p.Trial, p.Attempt); bps != nil {
			p.Mbps = new(*bps / 1e6)
		}
		s.Watch(p)
	})
}

// withResults adds to accepted attempts what they measured, for people who look at
// a node. What the archive cannot tell is left out.
func (s *shell) withResults(vs []wire.Verdict) []wire.Verdict {
	vs = slices.Clone(vs)
	for i, v := range vs {
		at := slices.IndexFunc(s.Plan.Trials, func(t wire.Trial) bool { return t.Number == v.Trial })
		if v.Outcome != wire.Accepted || at < 0 {
			continue
		}
		vs[i].ThroughputBps = s.results.of(s.Archive, s.Plan.Trials[at], v.Attempt)
	}
	return vs
}

// results are what accepted attempts measured: each is read once, though every node
// and whoever watches is told.
type results struct {
	mu    sync.Mutex
	known map[wire.TrialKey]*float64
}

// of returns an attempt's throughput, nil when the archive cannot tell it.
func (r *results) of(a *archive.Archive, t wire.Trial, attempt int) *float64 {
	k := wire.TrialKey{Trial: t.Number, Attempt: attempt}
	r.mu.Lock()
	defer r.mu.Unlock()
	if bps, known := r.known[k]; known {
		return bps
	}
	_, mbps, err := metrics.Result(a, k)
	if err != nil {
		return nil // it may be told the next time
	}
	if r.known == nil {
		r.known = map[wire.TrialKey]*float64{}
	}
	if mbps != nil {
		r.known[k] = new(*mbps * 1e6)
	} else {
		r.known[k] = nil
	}
	return r.known[k]
}

func progress(lane *openLane, s engine.Show) Progress {
	p := Progress{Trial: s.Trial, Attempt: s.Attempt, Phase: s.Phase, Detail: s.Detail, Live: s.Live,
		Verdict: s.Verdict}
	if lane != nil {
		p.Lane = lane.Name
	}
	return p
}

// fail ends the run with an error; one that comes of its being ended from
// outside is not the reason.
func (s *shell) fail(lane *openLane, f engine.Fail) {
	if s.leave.Err() != nil {
		return
	}
	err := f.Err
	if f.Doing != "" {
		err = fmt.Errorf("%s: %w", f.Doing, err)
	}
	if lane != nil {
		err = lane.named(err)
	}
	if s.err == nil {
		s.err = err
	}
	s.over = true
}

// answer does what is the run's, and leaves to lanes what is theirs.
func (s *shell) answer(lane *openLane, a engine.Action) engine.Answer {
	switch op := a.Op.(type) {
	case engine.Decide:
		return failed(s.Archive.Decide(op.Verdict))
	case engine.Note:
		return failed(s.Archive.Answer(op.NoteID, op.Text))
	case engine.Stop:
		why := "precise enough: "
		if op.Last {
			why = "the most blocks that the campaign has are driven, and the precision was not reached: "
		}
		reason := why + op.Look.String()
		err := s.Archive.StopAfter(archive.Stop{Blocks: op.Blocks, Reason: reason})
		if err == nil {
			s.show(Progress{Phase: "looked", Detail: reason})
		}
		return failed(err)
	case engine.Measure:
		return s.measure(op)
	case engine.ReadAttempts:
		attempts, err := s.Archive.Trials()
		answer := failed(err)
		for _, at := range attempts {
			answer.Attempts = append(answer.Attempts, engine.Attempt{TrialKey: at.TrialKey, Sealed: at.Sealed})
		}
		return answer
	case engine.WriteOff:
		return failed(s.own.append(op.Key, &op.State))
	case engine.Judge:
		return s.judge(op)
	}
	if a.Node != "" {
		return lane.call(s.leave, a.Node, a.Op)
	}
	return lane.act(s.leave, a.Op)
}

func failed(err error) engine.Answer { return engine.Answer{Fault: faultOf(err)} }

// faultOf is an error as the engine takes it.
func faultOf(err error) *engine.Fault {
	if err == nil {
		return nil
	}
	f := &engine.Fault{Err: err, Timeout: errors.Is(err, context.DeadlineExceeded)}
	var refused *wire.Error
	if errors.As(err, &refused) {
		f.Code = refused.Code
	}
	return f
}

// measure reads what an accepted attempt measured.
func (s *shell) measure(op engine.Measure) engine.Answer {
	_, mbps, err := metrics.Result(s.Archive, op.Key)
	if err != nil {
		return failed(err)
	}
	return engine.Answer{Mbps: mbps}
}

// judge judges an attempt by what the archive has of it.
func (s *shell) judge(op engine.Judge) engine.Answer {
	var records []wire.Record
	evidence := verdict.NewEvidence(op.Trial)
	for rec, err := range s.Archive.Records(op.Key.Trial, op.Key.Attempt) {
		if err != nil {
			return failed(fmt.Errorf("judge trial %d attempt %d: %w", op.Key.Trial, op.Key.Attempt, err))
		}
		if evidence.Needs(rec) {
			records = append(records, rec)
		}
	}
	records = append(records, evidence.Rest()...)
	v := verdict.Judge(op.Trial, op.Key.Attempt, records, verdict.Scope{Final: true})
	return engine.Answer{Verdict: v, Vouched: vouchedFor(records)}
}

// vouchedFor reports whether the records say how late an emulated radio was.
func vouchedFor(records []wire.Record) bool {
	for _, r := range records {
		if late, ok := r.Body.(*wire.Lateness); ok && late.Source == wire.LateMedium {
			return true
		}
	}
	return false
}

// seal closes an attempt in the archive beside the next trial.
func (s *shell) seal(k wire.TrialKey) {
	s.sealing.Go(func() {
		if err := s.Archive.Seal(k.Trial, k.Attempt); err != nil {
			s.sealed <- fmt.Errorf("seal trial %d attempt %d: %w", k.Trial, k.Attempt, err)
		}
	})
}

// ownRecords appends records of the controller's own, a clock estimate for
// instance, one after the other: the archive wants them in their order.
type ownRecords struct {
	in   chan ownRecord
	done chan struct{}
}

type ownRecord struct {
	key  wire.TrialKey
	body wire.Body
	err  chan error
}

func newOwnRecords(r *Runner) *ownRecords {
	o := &ownRecords{in: make(chan ownRecord), done: make(chan struct{})}
	epoch := newEpoch()
	go func() {
		defer close(o.done)
		seq := uint64(0)
		for rec := range o.in {
			seq++
			line, err := wire.Record{Header: wire.Header{Node: "controller", Epoch: epoch, Seq: seq, TBootNs: bootNs(),
				Run: r.Plan.Run, Trial: rec.key.Trial, Attempt: rec.key.Attempt}, Body: rec.body}.MarshalJSON()
			if err == nil {
				err = r.Archive.Append("controller", [][]byte{line})
			}
			rec.err <- err
		}
	}()
	return o
}

func (o *ownRecords) append(k wire.TrialKey, b wire.Body) error {
	rec := ownRecord{k, b, make(chan error, 1)}
	o.in <- rec
	return <-rec.err
}

func (o *ownRecords) close() {
	close(o.in)
	<-o.done
}

func newEpoch() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}
