package verdict

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func said(note string) wire.Noted { return wire.Noted{Note: note, By: "phone", Text: "a bus passed"} }

func TestAnOverrideOutranksTheRules(t *testing.T) {
	for _, c := range []struct {
		judged  wire.Outcome
		note    string
		want    wire.Outcome
		changed bool
		gate    bool // it did not open
	}{
		{wire.Rejected, "accept", wire.Accepted, true, false},
		{wire.Rejected, "accept", wire.Rejected, false, true}, // nothing was measured
		{wire.Rejected, "repeat", wire.Rejected, true, true},
		{wire.Rejected, "skip", wire.Rejected, true, true},
		{wire.Accepted, "repeat", wire.Rejected, true, false},
		{wire.Rejected, "repeat", wire.Rejected, true, false},
		{wire.Failed, "repeat", wire.Failed, true, false},
		{wire.Accepted, "skip", wire.Accepted, true, false},
		{wire.Rejected, "skip", wire.Rejected, true, false},
		{wire.Failed, "accept", wire.Failed, false, false},
		{wire.Interrupted, "accept", wire.Interrupted, false, false},
		{wire.Interrupted, "repeat", wire.Interrupted, true, false},
		{wire.Interrupted, "skip", wire.Interrupted, true, false},
		{wire.Rejected, Retry, wire.Rejected, true, false},
		{wire.Failed, Retry, wire.Failed, true, false},
		{wire.Rejected, "mark", wire.Rejected, false, false},
	} {
		reason := wire.Reason{Code: "gps"}
		if c.gate {
			reason.Code = wire.ReasonGateTimeout
		}
		v, changed := ApplyOverride(wire.Verdict{TrialKey: wire.TrialKey{Trial: 3, Attempt: 1}, Outcome: c.judged,
			Reason: reason}, said(c.note))
		if changed != c.changed || v.Outcome != c.want && changed {
			t.Errorf("%s, %s: %s, changed %v; want %s, %v", c.judged, c.note, v.Outcome, changed, c.want, c.changed)
		}
		if changed && (v.Word.Judged != c.judged || v.Word.By != "phone" || v.Word.Text != "a bus passed") {
			t.Errorf("%s, %s: the word is %+v", c.judged, c.note, v.Word)
		}
	}
}

func TestTheLastOverrideCountsAndTheFirstJudgementIsKept(t *testing.T) {
	v := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: wire.Accepted}
	repeated, _ := ApplyOverride(v, said("repeat"))
	again, changed := ApplyOverride(repeated, said("repeat"))
	if changed || again.Outcome != wire.Rejected {
		t.Errorf("the same word twice: %+v, changed %v", again, changed)
	}
	back, changed := ApplyOverride(repeated, said("accept"))
	if !changed || back.Outcome != wire.Accepted || !back.Reason.IsZero() || back.Word.Judged != wire.Accepted {
		t.Errorf("accepted after all: %+v %+v", back, back.Word)
	}
}

func TestNextCountsOverrides(t *testing.T) {
	key := func(n int) wire.TrialKey { return wire.TrialKey{Trial: 1, Attempt: n} }
	word := func(n int, outcome wire.Outcome, note string) wire.Verdict {
		v, _ := ApplyOverride(wire.Verdict{TrialKey: key(n), Outcome: outcome}, said(note))
		return v
	}
	for _, c := range []struct {
		what    string
		vs      []wire.Verdict
		attempt int
		more    bool
	}{
		{"none yet", nil, 1, true},
		{"rejected", []wire.Verdict{{TrialKey: key(1), Outcome: wire.Rejected}}, 2, true},
		{"accepted", []wire.Verdict{{TrialKey: key(1), Outcome: wire.Accepted}}, 2, false},
		{"used up", []wire.Verdict{{TrialKey: key(1), Outcome: wire.Rejected},
			{TrialKey: key(2), Outcome: wire.Failed}}, 3, false},
		{"used up and repeated", []wire.Verdict{{TrialKey: key(1), Outcome: wire.Rejected},
			word(2, wire.Failed, "repeat")}, 3, true},
		{"the repeat is used up", []wire.Verdict{word(2, wire.Failed, "repeat"),
			{TrialKey: key(3), Outcome: wire.Failed}}, 4, false},
		{"accepted and repeated", []wire.Verdict{word(1, wire.Accepted, "repeat")}, 2, true},
		{"skipped", []wire.Verdict{word(1, wire.Rejected, "skip")}, 2, false},
		{"skipped before", []wire.Verdict{Skipped(1, said("skip"))}, 2, false},
		{"accepted by a word", []wire.Verdict{word(1, wire.Rejected, "accept")}, 2, false},
	} {
		if attempt, more := Next(2, c.vs); attempt != c.attempt || more != c.more {
			t.Errorf("%s: attempt %d, more %v; want %d, %v", c.what, attempt, more, c.attempt, c.more)
		}
	}
}

// The attempts that a trial has are used up by what says something of it.
func TestInterruptedAttemptsUseUpNone(t *testing.T) {
	attempts := func(outcomes ...wire.Outcome) (vs []wire.Verdict) {
		for i, o := range outcomes {
			vs = append(vs, wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: i + 1}, Outcome: o})
		}
		return vs
	}
	words := func(vs []wire.Verdict, attempt int, word string) []wire.Verdict {
		vs[attempt-1], _ = ApplyOverride(vs[attempt-1], said(word))
		return vs
	}
	all := func(outcome wire.Outcome, n int) (out []wire.Outcome) {
		for range n {
			out = append(out, outcome)
		}
		return out
	}
	mixed := attempts(wire.Interrupted, wire.Rejected, wire.Interrupted, wire.Interrupted, wire.Failed)
	slices.Reverse(mixed) // the order of the journal need not be that of the attempts
	for _, c := range []struct {
		what      string
		vs        []wire.Verdict
		attempt   int
		more      bool
		exhausted bool
	}{
		{"interrupted more often than there are attempts", attempts(all(wire.Interrupted, 5)...), 6, true, false},
		{"one interrupted, one rejected", attempts(wire.Interrupted, wire.Rejected), 3, true, false},
		{"two that count among interrupted ones", mixed, 6, false, false},
		{"accepted after all", attempts(wire.Interrupted, wire.Interrupted, wire.Interrupted, wire.Accepted), 5,
			false, false},
		{"interrupted for ever", attempts(all(wire.Interrupted, InterruptionsMax)...), InterruptionsMax + 1,
			false, true},
		{"once less than for ever", attempts(all(wire.Interrupted, InterruptionsMax-1)...), InterruptionsMax,
			true, false},
		{"interrupted for ever, and retried", words(attempts(all(wire.Interrupted, InterruptionsMax)...),
			InterruptionsMax, Retry), InterruptionsMax + 1, true, false},
		{"interrupted for ever, and repeated", words(attempts(all(wire.Interrupted, InterruptionsMax)...), 1, "repeat"),
			InterruptionsMax + 1, false, true},
		{"interrupted and skipped", words(attempts(wire.Interrupted), 1, "skip"), 2, false, false},
		{"skipped, then retried", words(words(attempts(wire.Rejected), 1, "skip"), 1, Retry), 2, true, false},
		{"a repeat that is interrupted", words(attempts(wire.Failed, wire.Failed, wire.Interrupted), 2, "repeat"), 4,
			true, false},
		{"a repeat that is interrupted and fails",
			words(attempts(wire.Failed, wire.Failed, wire.Interrupted, wire.Failed), 2, "repeat"), 5, false, false},
		{"given up, and retried", words(attempts(wire.Failed, wire.Rejected), 2, Retry), 3, true, false},
		{"retried, one used", words(attempts(wire.Failed, wire.Rejected, wire.Failed), 2, Retry), 4, true, false},
		{"retried, all used", words(attempts(wire.Failed, wire.Rejected, wire.Failed, wire.Failed), 2, Retry), 5,
			false, false},
		{"an attempt that nobody has judged is used", attempts(wire.Rejected, wire.Interrupted, wire.Rejected)[2:], 4,
			false, false},
	} {
		if attempt, more := Next(2, c.vs); attempt != c.attempt || more != c.more {
			t.Errorf("%s: attempt %d, more %v; want %d, %v", c.what, attempt, more, c.attempt, c.more)
		}
		if got := Exhausted(2, c.vs); got != c.exhausted {
			t.Errorf("%s: exhausted %v, want %v", c.what, got, c.exhausted)
		}
	}
}
