package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A node's spool still holds the run before, whose trials have the same numbers.
func TestRecordsOfAnotherRunAreNotSeen(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	line := func(run string, b wire.Body) []byte {
		text, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: 1, Run: run, Trial: k.Trial, Attempt: k.Attempt}, Body: b}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	s := newSightings("today", func(wire.Record) {})
	for _, b := range []wire.Body{&wire.Window{OpenBootNs: 1, CloseBootNs: 2}, &wire.TrialState{State: "kept", Outcome: "failed", Reason: wire.ParseReason("x")}} {
		s.see(line("yesterday", b))
		s.see(line("", b))
	}
	if missing, gaveUp, _, _ := s.lacking(k, []string{"car"}); len(missing) != 1 || gaveUp != "" {
		t.Errorf("yesterday's trial was taken for today's: missing %v, given up %q", missing, gaveUp)
	}
	if open, _ := s.window(k, "car"); open != 0 {
		t.Error("yesterday's window was taken for today's")
	}
	s.see(line("today", &wire.Window{OpenBootNs: 5, CloseBootNs: 6}))
	s.see(line("today", &wire.TrialState{State: "kept", Outcome: "accepted"}))
	if missing, _, _, _ := s.lacking(k, []string{"car"}); len(missing) != 0 {
		t.Error("today's trial was not seen")
	}
	if open, closed := s.window(k, "car"); open != 5 || closed != 6 {
		t.Errorf("window %d to %d", open, closed)
	}
}

// A controller was killed after it had collected an attempt and before it
// judged it: the next one must not wait for records that are long there.
func TestWhatTheArchiveHoldsIsRecalled(t *testing.T) {
	plan := wire.RunPlan{Run: "today", Trials: []wire.Trial{{Number: 1, Initiator: "car"}, {Number: 2, Initiator: "car"}}}
	a, err := archive.Create(filepath.Join(t.TempDir(), "today"), archive.RunInfo{Run: "today", Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var lines [][]byte
	for i, b := range []wire.Body{&wire.Window{OpenBootNs: 5, CloseBootNs: 6}, &wire.TrialState{State: "kept", Outcome: "accepted"}} {
		for trial := 1; trial <= 2; trial++ {
			line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: uint64(2*i + trial), Run: "today", Trial: trial, Attempt: 1}, Body: b}.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
	}
	if err := a.Append("car", lines); err != nil {
		t.Fatal(err)
	}
	if err := a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "accepted", Final: true}); err != nil {
		t.Fatal(err)
	}
	s := newSightings("today", func(wire.Record) {})
	if err := s.recall(a); err != nil {
		t.Fatal(err)
	}
	for trial, want := range map[int]int64{1: 0, 2: 5} { // the first is decided: nobody asks for it any more
		k := wire.TrialKey{Trial: trial, Attempt: 1}
		if open, _ := s.window(k, "car"); open != want {
			t.Errorf("trial %d: the window opens at %d, want %d", trial, open, want)
		}
		if missing, _, _, _ := s.lacking(k, []string{"car"}); (len(missing) == 0) != (want != 0) {
			t.Errorf("trial %d: missing %v", trial, missing)
		}
	}
}

func TestWhichRefusalsPass(t *testing.T) {
	for code, want := range map[string]bool{"no_lease": true, "host": true, "stopping": true, "lease_held": false, "conflict": false, "busy": false} {
		if got := passes(fmt.Errorf("load: %w", wire.Errorf(code, "no"))); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
	if !passes(errors.New("connection refused")) {
		t.Error("a node out of reach is not waited for")
	}
}

func TestOnlyTheMediumVouchesForAnEmulatedWindow(t *testing.T) {
	late := func(source string) []wire.Record {
		return []wire.Record{{Body: &wire.TrialState{}}, {Body: &wire.Lateness{Source: source}}}
	}
	if vouchedFor(late("sampler")) || !vouchedFor(late("medium")) {
		t.Error("the sampler's lateness was taken for the medium's, or the medium's was not seen")
	}
}

// While a window is open nobody waits for records; at its end all do.
func TestNodesAreLeftAloneUntilAnAttemptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSightings("today", func(wire.Record) {})
		rested := func() time.Duration {
			began := time.Now()
			s.rest(t.Context(), 4*time.Second)
			return time.Since(began)
		}
		if d := rested(); d != 4*time.Second {
			t.Errorf("in the quiet it rests %v", d)
		}
		at := func(b wire.Body) wire.Record {
			return wire.Record{Header: wire.Header{Node: "car", Run: "today", Trial: 1, Attempt: 1}, Body: b}
		}
		time.AfterFunc(time.Second, func() { s.take(at(&wire.TrialState{State: "armed"})) })
		time.AfterFunc(2*time.Second, func() { s.take(at(&wire.Window{OpenBootNs: 1, CloseBootNs: 2})) })
		if d := rested(); d != 2*time.Second {
			t.Errorf("the window of another closes after 2 s: it rests %v", d)
		}
		if d := rested(); d != 0 {
			t.Errorf("while attempts end it rests %v", d)
		}
		time.Sleep(endingFor)
		if d := rested(); d != 4*time.Second {
			t.Errorf("after the end it rests %v", d)
		}
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
