package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive/runkey"
	"fieldmesh.dev/fieldmesh/controller/run/engine"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A node's spool still holds the run before, whose trials have the same numbers.
//
//attack:face whoever has taken it over tells records of another run as today's | each record names its run
func TestRecordsOfAnotherRunAreNotSeen(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	seen := func(run string, b wire.Body) engine.Event {
		text, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: 1, Run: run, Trial: k.Trial,
			Attempt: k.Attempt}, Body: b}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return sightingIn(0, "today", text)
	}
	window := &wire.Window{OpenBootNs: 5, CloseBootNs: 6}
	kept := &wire.TrialState{State: wire.StateKept, Outcome: wire.Failed}
	for _, b := range []wire.Body{window, kept} {
		if yesterday, none := seen("yesterday", b), seen("", b); yesterday != nil || none != nil {
			t.Errorf("another run's record was taken for today's: %+v, %+v", yesterday, none)
		}
	}
	if got := seen("today", window); got != (engine.Opened{Node: "car", Key: k, Window: *window}) {
		t.Errorf("today's window: %+v", got)
	}
	if got := seen("today", kept); got != (engine.Kept{Node: "car", Key: k, State: *kept}) {
		t.Errorf("today's end: %+v", got)
	}
	if got := seen("today", &wire.TrialState{State: wire.StateArmed}); got != nil {
		t.Errorf("a state that ends nothing: %+v", got)
	}
}

// A controller was killed after it had collected an attempt and before it
// judged it: the next one must not wait for records that are long there.
func TestWhatTheArchiveHoldsIsRecalled(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newRunner(t, 2, 1, lane)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for name, n := range field.nodes {
		n.record(k, &wire.Window{OpenBootNs: 5, CloseBootNs: 6})
		n.record(k, &wire.TrialState{State: wire.StateKept, Outcome: wire.Accepted})
		n.keep(wire.Verdict{TrialKey: k, Outcome: wire.Accepted})
		if err := r.Archive.Append(name, n.lines); err != nil {
			t.Fatal(err)
		}
		if err := r.Archive.Reached(name, wire.SpoolPosition{Epoch: n.epoch, Seq: uint64(len(n.lines))}); err != nil {
			t.Fatal(err)
		}
	}
	var driven []wire.TrialKey
	field.armed = func() { driven = append(driven, *field.nodes["car"].current) }
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	if accepted, _, _ := r.Counts(); accepted != 2 || len(driven) != 1 || driven[0].Trial != 2 {
		t.Errorf("%d accepted, driven %v", accepted, driven)
	}
}

func TestWhichRefusalsPass(t *testing.T) {
	for code, want := range map[string]bool{wire.CodeLeaseNeeded: true, wire.CodeHost: true, wire.CodeStopping: true,
		wire.CodeLeaseHeld: false, wire.CodeConflict: false, wire.CodeBusy: false} {
		if got := faultOf(fmt.Errorf("load: %w", wire.Errorf(code, "no"))).Passes(); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
	if !faultOf(errors.New("connection refused")).Passes() {
		t.Error("a node out of reach is not waited for")
	}
}

func TestOnlyTheMediumVouchesForAnEmulatedWindow(t *testing.T) {
	late := func(source string) []wire.Record {
		return []wire.Record{{Body: &wire.TrialState{}}, {Body: &wire.Lateness{Source: source}}}
	}
	if vouchedFor(late(wire.LateSampler)) || !vouchedFor(late(wire.LateMedium)) {
		t.Error("the sampler's lateness was taken for the medium's, or the medium's was not seen")
	}
}

func restsAgainAfterTheEnd(t *testing.T, rested func() time.Duration, want time.Duration) {
	t.Helper()
	if d := rested(); d != 0 {
		t.Errorf("while attempts end it rests %v", d)
	}
	time.Sleep(endingFor)
	if d := rested(); d != want {
		t.Errorf("after the end it rests %v, want %v", d, want)
	}
}

// While a window is open nobody waits for records; at its end all do.
func TestNodesAreLeftAloneUntilAnAttemptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		rested := func() time.Duration { return rested(t, &p, 4*time.Second) }
		if d := rested(); d != 4*time.Second {
			t.Errorf("in the quiet it rests %v", d)
		}
		time.AfterFunc(2*time.Second, p.ends)
		if d := rested(); d != 2*time.Second {
			t.Errorf("the window of another closes after 2 s: it rests %v", d)
		}
		restsAgainAfterTheEnd(t, rested, 4*time.Second)
	})
}

// While a gate waits for a time, records are asked for once a second.
func TestNodesAreAskedSeldomWhileAGateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		rested := func() time.Duration { return rested(t, &p, 40*time.Millisecond) }
		p.waits(2500 * time.Millisecond)
		for _, want := range []time.Duration{time.Second, time.Second, 500 * time.Millisecond, 40 * time.Millisecond} {
			if d := rested(); d != want {
				t.Errorf("it rests %v, want %v", d, want)
			}
		}
		p.waits(time.Hour)
		p.ends() // it failed before
		restsAgainAfterTheEnd(t, rested, 40*time.Millisecond)
	})
}

func TestOnlyWhatNobodyLooksAtIsPassedOver(t *testing.T) {
	for line, want := range map[string]bool{
		`{"kind":"station","node":"car"}`:  true,
		`{"kind":"trials","node":"car"}`:   true,
		`{"kind":"trial","node":"car"}`:    false,
		`{"kind":"window","node":"car"}`:   false,
		`{"kind":"note","node":"car"}`:     false,
		`{"node":"car","kind":"trial"}`:    false, // another order is no other record
		`{ "kind": "trial", "node":"car"}`: false,
	} {
		if uninteresting([]byte(line)) != want {
			t.Errorf("%s: passed over %v", line, !want)
		}
	}
}

// A disk that cannot be written ends the run with what to do, at once or when it stays so; a node that is out of reach
// is waited for.
func TestADiskThatCannotBeWrittenEndsTheRun(t *testing.T) {
	lane, _ := newLane(t, "only")
	r := newRunner(t, 1, 1, lane)
	l := &openLane{s: &shell{Runner: r}}
	full, broken := "the disk of "+r.Archive.Dir()+" is full: make room", "nothing can be written to "+r.Archive.Dir()
	broken += ": mend its disk; or copy the folder to another, and " + runkey.File(r.Archive.Dir()) + " to .keys"
	now, longAgo := time.Now(), time.Now().Add(-keepPatience)
	for _, c := range []struct {
		err   error
		since time.Time
		want  string
	}{
		{keepError{fmt.Errorf("append records: %w", unix.ENOSPC)}, now, full},
		{keepError{fmt.Errorf("append records: %w", unix.EROFS)}, now, broken},
		{keepError{fmt.Errorf("append records: %w", unix.EIO)}, longAgo, broken},
		{keepError{fmt.Errorf("append records: %w", unix.EMFILE)}, now, ""},
		{keepError{fmt.Errorf("the run is full: %w", fs.ErrInvalid)}, longAgo, "what the nodes sent cannot be kept"},
		{fmt.Errorf("out of reach: %w", unix.EROFS), longAgo, ""}, // a node's own disk
	} {
		err := l.cannotKeep(c.err, c.since)
		if got := fmt.Sprint(err); c.want == "" != (err == nil) || c.want != "" && !strings.HasPrefix(got, c.want) {
			t.Errorf("%v since %s: %v, want %q", c.err, time.Since(c.since), err, c.want)
		}
		if err != nil && !errors.Is(err, errors.Unwrap(c.err)) {
			t.Errorf("%v does not say %v", err, c.err)
		}
	}
}

// told answers as a node that has one record.
type told struct{ source }

func (told) Records(context.Context, string, uint64, int, time.Duration) ([][]byte, string, uint64, error) {
	line := `{"v":1,"node":"car","epoch":"e","seq":1,"run":"today","trial":1,"attempt":1,"t_boot_ns":1,"kind":"note",` +
		`"text":"hello"}`
	return [][]byte{[]byte(line)}, "e", 1, nil
}

// What cannot be kept is the disk's fault, not the node's.
func TestWhatCannotBeKeptIsToldApart(t *testing.T) {
	lane, _ := newLane(t, "only")
	l := &openLane{s: &shell{Runner: newRunner(t, 1, 1, lane)}}
	dir := l.s.Archive.Dir()
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil { // a stick that was pulled
		t.Fatal(err)
	}
	limit := 1
	_, _, err := l.copyRecords(within(t), "car", told{}, wire.SpoolPosition{}, &limit, 0)
	if !errors.As(err, new(keepError)) {
		t.Errorf("%v", err)
	}
}

// rested is how long a pace rests that is asked to rest for d.
func rested(t *testing.T, p *pace, d time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	p.rest(t.Context(), d)
	return time.Since(began)
}
