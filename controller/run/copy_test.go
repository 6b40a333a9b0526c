package run

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// A node that rejected what it measured to the end must not have the others
// aborted, which would make a failed trial of a rejected one.
func TestWhoGivesUpEndsTheOthersAndWhoRejectsDoesNot(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, c := range []struct {
		name     string
		outcome  wire.Outcome
		measured bool
		gaveUp   bool
	}{
		{"accepted", "accepted", true, false},
		{"rejected after its window", "rejected", true, false},
		{"rejected for the gate", "rejected", false, true},
		{"failed before its window", "failed", false, true},
		{"failed in its window", "failed", true, true},
	} {
		s := newSightings("today", func(wire.Record) {})
		if c.measured {
			s.take(wire.Record{Header: wire.Header{Node: "car", Trial: 1, Attempt: 1}, Body: &wire.Window{OpenBootNs: 1, CloseBootNs: 2}})
		}
		s.take(wire.Record{Header: wire.Header{Node: "car", Trial: 1, Attempt: 1}, Body: &wire.TrialState{State: "kept", Outcome: c.outcome, Reason: wire.ParseReason("why")}})
		missing, gaveUp, _, _ := s.lacking(k, []string{"car", "roadside"})
		if !slices.Equal(missing, []string{"roadside"}) || (gaveUp == "car: why") != c.gaveUp {
			t.Errorf("%s: missing %v, given up %q", c.name, missing, gaveUp)
		}
	}
}

// fakeSource has lines, numbered from 1, and then nothing more.
type fakeSource struct {
	lines [][]byte
	away  error
	asked chan wire.SpoolPosition
}

func (f *fakeSource) Records(ctx context.Context, epoch string, after uint64, _ int, _ time.Duration) ([][]byte, string, uint64, error) {
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

func (f *fakeSource) Confirm(context.Context, wire.SpoolPosition) (wire.SpoolStatus, error) {
	return wire.SpoolStatus{}, nil
}

// collecting runs the collector of a source until the test ends.
func collecting(t *testing.T, f *fakeSource) *openLane {
	t.Helper()
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), synthetic.Info(synthetic.Options{Seed: 4, Speeds: []float64{5.6}, Repetitions: 1}))
	if err != nil {
		t.Fatal(err)
	}
	l := &openLane{Lane: &Lane{}, r: &Runner{Archive: a, Log: slog.New(slog.DiscardHandler)}, seen: newSightings(a.Info().Run, func(wire.Record) {})}
	f.asked = make(chan wire.SpoolPosition)
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { l.collect(ctx, "car", f) })
	t.Cleanup(func() {
		cancel()
		working.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// A line that is no record blocks nothing, also as the last one of a node.
func TestALineThatIsNoRecordDoesNotStopTheCollector(t *testing.T) {
	kept, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: 1, Run: "synthetic-4", Trial: 1, Attempt: 1},
		Body: &wire.TrialState{State: "kept", Outcome: "accepted"}}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeSource{lines: [][]byte{kept, []byte(`{"kind":"trial","seq":"2"}`)}}
	l := collecting(t, f)
	<-f.asked
	if next := <-f.asked; next != (wire.SpoolPosition{Epoch: "e", Seq: 2}) {
		t.Errorf("asks next for what follows %v", next)
	}
	if !l.r.Archive.Holds("car", wire.SpoolPosition{Epoch: "e", Seq: 2}) {
		t.Error("the end of the run would wait for a line that was set aside")
	}
	if missing, _, trouble, _ := l.seen.lacking(wire.TrialKey{Trial: 1, Attempt: 1}, []string{"car"}); len(missing) != 0 || trouble != "" {
		t.Errorf("missing %v, trouble %q", missing, trouble)
	}
}

// A disk of our own that is full is not a node out of reach.
func TestTroubleIsToldAsWhatItIs(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	f := &fakeSource{away: errors.New("no route")}
	l := collecting(t, f)
	<-f.asked
	<-f.asked
	if _, _, trouble, _ := l.seen.lacking(k, []string{"car"}); trouble != "car is out of reach: no route" {
		t.Errorf("trouble %q", trouble)
	}
	g := &fakeSource{lines: [][]byte{[]byte("{}")}}
	m := collecting(t, g)
	if err := m.r.Archive.Close(); err != nil { // as good as a disk that takes nothing
		t.Fatal(err)
	}
	<-g.asked
	<-g.asked
	if _, _, trouble, _ := m.seen.lacking(k, []string{"car"}); !strings.HasPrefix(trouble, "append records of") {
		t.Errorf("trouble %q", trouble)
	}
}
