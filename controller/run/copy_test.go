package run

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/run/engine"
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
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"),
		synthetic.Info(synthetic.Options{Seed: 4, Speeds: []float64{5.6}, Repetitions: 1}))
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{Runner: &Runner{Archive: a, Log: slog.New(slog.DiscardHandler), Plan: a.Info().Plan}}
	l := newOpenLane(s, 0, &Lane{}, false)
	if err := errors.Join(l.copyAll(t.Context(), "car", f), a.Close()); err != nil {
		t.Fatal(err)
	}
	if want := (wire.Confirmation{Run: "synthetic-4", Epoch: "e", Seq: 1}); f.confirmed != want {
		t.Errorf("confirmed: %v, want %v", f.confirmed, want)
	}
}

// collecting runs the collector of a source until the test ends, and gives what
// it tells.
func collecting(t *testing.T, f *fakeSource) (*openLane, <-chan engine.Event) {
	t.Helper()
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"),
		synthetic.Info(synthetic.Options{Seed: 4, Speeds: []float64{5.6}, Repetitions: 1}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &shell{Runner: &Runner{Archive: a, Log: slog.New(slog.DiscardHandler), Plan: a.Info().Plan}, ctx: ctx,
		events: make(chan engine.Event, 100)}
	l := newOpenLane(s, 0, &Lane{}, false)
	f.asked = make(chan wire.SpoolPosition)
	var working sync.WaitGroup
	working.Go(func() { l.collect(ctx, "car", f) })
	t.Cleanup(func() {
		cancel()
		working.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, s.events
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
