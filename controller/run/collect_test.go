package run

import (
	"testing"

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
	s := newSightings("today")
	for _, b := range []wire.Body{&wire.Window{OpenBootNs: 1, CloseBootNs: 2}, &wire.TrialState{State: "kept", Outcome: "failed", Reason: "x"}} {
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
