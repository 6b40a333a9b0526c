package run

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// decide writes the verdicts of a trial's attempts, as a former life of the
// controller has.
func decide(t *testing.T, r *Runner, trial int, outcomes ...wire.Outcome) {
	t.Helper()
	for i, o := range outcomes {
		v := wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: i + 1}, Outcome: o,
			Reason: wire.ParseReason("speed: too slow"), Final: true}
		if err := r.Archive.Decide(v); err != nil {
			t.Fatal(err)
		}
	}
}

// A trial that was given up is driven again when somebody says so, in a run
// that was finished, and the journal tells who did, when and why.
func TestATrialThatWasGivenUpIsRetried(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newRunner(t, 3, 2, lane)
	decide(t, r, 1, "rejected", "failed")
	decide(t, r, 2, "accepted")
	decide(t, r, 3, "rejected", "rejected")
	if err := r.Archive.Finish(); err != nil {
		t.Fatal(err)
	}
	if told := r.GivenUp(); !strings.Contains(told, "2 given up") || !strings.Contains(told, "trials 1,3") {
		t.Errorf("given up: %q", told)
	}
	before := time.Now()
	again, err := Reopening(r.Archive, []int{3, 3}, "ada", "the battery was flat")
	if err != nil || len(again) != 1 || !r.Archive.Finished() {
		t.Fatalf("reopening %+v, %v; complete: %v", again, err, r.Archive.Finished())
	}
	if err := r.Archive.Decide(again[0]); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range r.Archive.Decisions() {
		got[fmt.Sprintf("%d.%d", v.Trial, v.Attempt)] = string(v.Outcome)
	}
	if fmt.Sprint(got) != fmt.Sprint(map[string]string{"1.1": "rejected", "1.2": "failed", "2.1": "accepted",
		"3.1": "rejected", "3.2": "rejected", "3.3": "accepted"}) {
		t.Errorf("decided %v", got)
	}
	if vs := field.nodes["road"].trials[3]; len(vs) != 3 {
		t.Errorf("the node was told %+v", vs)
	}
	entries, err := r.Archive.Journal()
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, e := range entries {
		if e.Verdict == nil || e.Verdict.Word == nil {
			continue
		}
		words++
		want := wire.Word{Decision: verdict.Retry, By: "ada", Text: "the battery was flat", Judged: "rejected"}
		if e.Verdict.TrialKey != (wire.TrialKey{Trial: 3, Attempt: 2}) || *e.Verdict.Word != want ||
			e.Verdict.Outcome != "rejected" || e.Verdict.Reason.String() != "speed: too slow" ||
			e.Wall.Before(before.Add(-time.Second)) {
			t.Errorf("the journal has %+v %+v", e, e.Verdict.Word)
		}
	}
	if words != 1 {
		t.Errorf("%d words in the journal", words)
	}
}

func TestWhatCannotBeRetriedIsRefused(t *testing.T) {
	lane, _ := newLane(t, "only")
	r := newRunner(t, 3, 2, lane)
	decide(t, r, 1, "rejected", "failed")
	decide(t, r, 2, "rejected", "accepted")
	decide(t, r, 3, "failed")
	for trial, want := range map[int]string{0: "trials 1 to 3", 4: "trials 1 to 3", 2: "it was accepted, and only"} {
		_, err := Reopening(r.Archive, []int{1, trial}, "ada", "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("trial %d: %v, want %q", trial, err, want)
		}
	}
	for _, v := range r.Archive.Decisions() {
		if v.Word != nil {
			t.Errorf("decided all the same: %+v", v)
		}
	}
	if again, err := Reopening(r.Archive, []int{3}, "ada", ""); err != nil || again != nil {
		t.Errorf("a trial that is open: %+v, %v", again, err)
	}
}

// Attempts that ended from outside use none up, whatever ended them.
func TestInterruptedAttemptsAreDrivenAgain(t *testing.T) {
	lane, field := newLane(t, "only")
	drives := 0
	field.ends = func() (wire.Outcome, wire.Reason) {
		if drives++; drives <= 4 {
			return wire.Interrupted, wire.ParseReason("agent_restarted: killed")
		}
		return wire.Accepted, wire.Reason{}
	}
	r := newRunner(t, 1, 2, lane)
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range r.Archive.Decisions() {
		got = append(got, string(v.Outcome))
	}
	if strings.Join(got, " ") != "interrupted interrupted interrupted interrupted accepted" {
		t.Errorf("decided %v", got)
	}
}

// A node whose agent crashes at every attempt is not driven for ever, and the
// run says that this was why.
func TestATrialThatIsAlwaysInterruptedIsGivenUp(t *testing.T) {
	lane, field := newLane(t, "only")
	field.ends = func() (wire.Outcome, wire.Reason) {
		return wire.Interrupted, wire.ParseReason("agent_restarted: killed")
	}
	r := newRunner(t, 1, 2, lane)
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Archive.Decisions()); n != verdict.InterruptionsMax {
		t.Errorf("%d attempts", n)
	}
	if told := r.GivenUp(); !strings.HasPrefix(told, "1 given up after 20 interruptions") {
		t.Errorf("given up: %q", told)
	}
}
