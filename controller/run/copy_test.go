package run

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/run/engine"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// fakeSource has lines, numbered from 1, and then nothing more.
type fakeSource struct {
	lines     [][]byte
	away      error
	asked     chan wire.SpoolPosition
	confirmed wire.Confirmation
}

func (f *fakeSource) Records(ctx context.Context, epoch string, after uint64, _ int,
	_ time.Duration) ([][]byte, string, uint64, error) {
	select {
	case f.asked <- wire.SpoolPosition{Epoch: epoch, Seq: after}:
	case <-ctx.Done():
		return nil, "", 0, ctx.Err()
	}
	if f.away != nil {
		return nil, "", 0, f.away
	}
	return f.lines[min(after, uint64(len(f.lines))):], "e", uint64(len(f.lines)), nil
}

func (f *fakeSource) Confirm(_ context.Context, p wire.Confirmation) (wire.SpoolStatus, error) {
	f.confirmed = p
	return wire.SpoolStatus{}, nil
}

// What was collected in a run's last seconds makes room on the node too.
func TestTheLastRecordsAreConfirmedAtTheEnd(t *testing.T) {
	f := &fakeSource{lines: [][]byte{[]byte("{}")}}
	t.Run("a run", func(t *testing.T) {
		collecting(t, f)
		for range 2 { // it asks again when it has what there was
			<-f.asked
		}
	})
	if want := (wire.Confirmation{Run: "synthetic-4", Epoch: "e", Seq: 1}); f.confirmed != want {
		t.Errorf("confirmed: %v, want %v", f.confirmed, want)
	}
}

// Nodes that hold another run by now are only copied from. What the archive has then, they need not keep.
func TestWhatIsCopiedIsConfirmed(t *testing.T) {
	f := &fakeSource{lines: [][]byte{[]byte("{}")}, asked: make(chan wire.SpoolPosition, 10)}
	if err := notCollecting(t).copyAll(t.Context(), "car", f); err != nil {
		t.Fatal(err)
	}
	if want := (wire.Confirmation{Run: "synthetic-4", Epoch: "e", Seq: 1}); f.confirmed != want {
		t.Errorf("confirmed: %v, want %v", f.confirmed, want)
	}
}

// weak is a node behind a link that carries so many records of an answer before it breaks.
type weak struct {
	fakeSource
	carries int
	nothing bool // comes of an answer that breaks
	limits  []int
}

func (w *weak) Records(ctx context.Context, _ string, after uint64, limit int,
	wait time.Duration) ([][]byte, string, uint64, error) {
	left := w.lines[min(after, uint64(len(w.lines))):]
	if len(left) == 0 {
		return nil, "e", after, pause.For(ctx, wait)
	}
	w.limits = append(w.limits, limit)
	left = left[:min(limit, len(left))]
	switch {
	case len(left) <= w.carries:
		return left, "e", after + uint64(len(left)), nil
	case w.nothing:
		return nil, "", 0, context.DeadlineExceeded
	}
	return left[:w.carries], "e", after + uint64(w.carries), io.ErrUnexpectedEOF
}

// A link that carries no large answer brings the records home: in smaller answers, and by what comes of those that
// break.
func TestABacklogComesHomeOverAWeakLink(t *testing.T) {
	const records = 2500
	lines := make([][]byte, records)
	for i := range lines {
		var err error
		lines[i], err = wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: uint64(i + 1),
			Run: "synthetic-4"}, Body: &wire.Event{Level: "info", Text: "x"}}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, nothing := range map[string]bool{"of which some comes": false, "whole or not at all": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &weak{fakeSource: fakeSource{lines: lines}, carries: 300, nothing: nothing}
				l, _ := collectingFrom(t, w)
				time.Sleep(time.Minute)
				if got := l.s.Archive.Cursor("car"); got != (wire.SpoolPosition{Epoch: "e", Seq: records}) {
					t.Errorf("after a minute the archive is at %v", got)
				}
				want := []int{5000, 2500, 1250, 625, 312, 156, 312, 156, 312, 156}
				if !nothing && !slices.Equal(w.limits, want) {
					t.Errorf("asked for %v records, want %v", w.limits, want)
				}
			})
		})
	}
	w := &weak{fakeSource: fakeSource{lines: lines}, carries: 300}
	l := notCollecting(t)
	if err := l.copyAll(t.Context(), "car", w); err != nil || l.s.Archive.Cursor("car").Seq != records {
		t.Errorf("a pull came to %v: %v", l.s.Archive.Cursor("car"), err)
	}
}

// collecting runs the collector of a source until the test ends, and gives what
// it tells.
func collecting(t *testing.T, f *fakeSource) (*openLane, <-chan engine.Event) {
	t.Helper()
	f.asked = make(chan wire.SpoolPosition)
	return collectingFrom(t, f)
}

func collectingFrom(t *testing.T, c source) (*openLane, <-chan engine.Event) {
	t.Helper()
	l := notCollecting(t)
	ctx, cancel := context.WithCancel(context.Background())
	l.s.ctx = ctx
	var working sync.WaitGroup
	working.Go(func() { l.collect(ctx, "car", c) })
	t.Cleanup(func() {
		cancel()
		working.Wait()
	})
	return l, l.s.events
}

// notCollecting is the lane of a run that begins, without nodes.
func notCollecting(t *testing.T) *openLane {
	t.Helper()
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"),
		synthetic.Info(synthetic.Options{Seed: 4, Speeds: []float64{5.6}, Repetitions: 1}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &shell{Runner: &Runner{Archive: a, Log: slog.New(slog.DiscardHandler), Plan: a.Info().Plan},
		events: make(chan engine.Event, 100)}
	return newOpenLane(s, 0, &Lane{}, false)
}

// A line that is not a record blocks nothing, also as the last one of a node.
func TestALineThatIsNotARecordDoesNotStopTheCollector(t *testing.T) {
	state := wire.TrialState{State: wire.StateKept, Outcome: wire.Accepted}
	kept, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: 1, Run: "synthetic-4", Trial: 1,
		Attempt: 1}, Body: &state}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeSource{lines: [][]byte{kept, []byte(`{"kind":"trial","seq":"2"}`)}}
	l, events := collecting(t, f)
	<-f.asked
	if next := <-f.asked; next != (wire.SpoolPosition{Epoch: "e", Seq: 2}) {
		t.Errorf("asks next for what follows %v", next)
	}
	if !l.s.Archive.Holds("car", wire.SpoolPosition{Epoch: "e", Seq: 2}) {
		t.Error("the end of the run would wait for a line that was set aside")
	}
	want := engine.Kept{Node: "car", Key: wire.TrialKey{Trial: 1, Attempt: 1}, State: state}
	if got := <-events; got != want {
		t.Errorf("told %+v, want %+v", got, want)
	}
}

// A disk of our own that is full is not a node out of reach.
func TestTroubleIsReportedAsWhatItIs(t *testing.T) {
	f := &fakeSource{away: errors.New("no route")}
	_, events := collecting(t, f)
	<-f.asked
	if b, is := (<-events).(engine.Behind); !is || b.Node != "car" || b.Err.Error() != "car is out of reach: no route" {
		t.Errorf("told %+v", b)
	}
	g := &fakeSource{lines: [][]byte{[]byte("{}")}}
	m, events := collecting(t, g)
	if err := m.s.Archive.Close(); err != nil { // as good as a disk that takes nothing
		t.Fatal(err)
	}
	<-g.asked
	if b, is := (<-events).(engine.Behind); !is || !strings.HasPrefix(b.Err.Error(), "append records of") {
		t.Errorf("told %+v", b)
	}
}
