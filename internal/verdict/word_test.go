package verdict

import (
	_ "embed"
	"encoding/json"
	"fmt"
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

// trials are how trials of two attempts each stand after some. An attempt is its number, the outcome that its verdict
// has, and a person's word. The phone app's CampaignStateTest reads the same file.
//
//go:embed testdata/next.json
var trials []byte

func TestWhenATrialIsDone(t *testing.T) {
	var cases []struct {
		What      string   `json:"what"`
		Attempts  []string `json:"attempts"`
		Next      int      `json:"next"`
		More      bool     `json:"more"`
		Exhausted bool     `json:"exhausted"` // interrupted too often
	}
	if err := json.Unmarshal(trials, &cases); err != nil || len(cases) < 30 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		var vs []wire.Verdict
		for _, text := range c.Attempts {
			v, word := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1}}, ""
			if n, err := fmt.Sscan(text, &v.Attempt, &v.Outcome, &word); n < 2 {
				t.Fatalf("%s: %q: %v", c.What, text, err)
			}
			if word != "" {
				v.Word = &wire.Word{Decision: word, By: "phone", Judged: v.Outcome}
			}
			vs = append(vs, v)
		}
		if attempt, more := Next(2, vs); attempt != c.Next || more != c.More {
			t.Errorf("%s: attempt %d, more %v; want %d, %v", c.What, attempt, more, c.Next, c.More)
		}
		if got := Exhausted(2, vs); got != c.Exhausted {
			t.Errorf("%s: exhausted %v, want %v", c.What, got, c.Exhausted)
		}
	}
}

// A person skips a trial before its first attempt: it is done.
func TestASkippedTrialIsDone(t *testing.T) {
	if attempt, more := Next(2, []wire.Verdict{Skipped(1, said("skip"))}); attempt != 2 || more {
		t.Errorf("attempt %d, more %v", attempt, more)
	}
}
