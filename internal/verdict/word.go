package verdict

import (
	"cmp"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ApplyOverride returns a verdict as a person overrides it, and reports whether
// that changes it. An override is not a rule: the verdict keeps what
// was judged, so that a report can tell how much people decided. An attempt
// that failed or was interrupted, or whose gate never opened, measured nothing that
// could be accepted.
func ApplyOverride(v wire.Verdict, n wire.Noted) (wire.Verdict, bool) {
	judged := v.Outcome
	if v.Word != nil {
		judged = v.Word.Judged
	}
	word := wire.Word{Decision: n.Note, By: n.By, Text: n.Text, NoteID: n.ID, Judged: judged}
	if had := v.Word; had != nil && had.Decision == word.Decision && had.By == word.By && had.Text == word.Text {
		return v, false
	}
	if judged == wire.Accepted {
		v.Reason = wire.Reason{} // of an earlier word
	}
	v.Word, v.Final = &word, true
	switch {
	case n.Note == "accept" && (judged == wire.Accepted || judged == wire.Rejected &&
		v.Reason.Code != wire.ReasonGateTimeout):
		v.Outcome = wire.Accepted
	case n.Note == "repeat" && judged == wire.Accepted:
		v.Outcome, v.Reason = wire.Rejected,
			wire.Reason{Code: wire.ReasonRepeat, Text: n.By + " asked for another attempt"}
	case n.Note == "repeat", n.Note == "skip", n.Note == Retry:
		v.Outcome = judged
	default:
		return v, false
	}
	return v, true
}

// Skipped is the verdict on a trial that a person skips before its first attempt.
func Skipped(trial int, n wire.Noted) wire.Verdict {
	return wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Outcome: wire.Failed, Final: true,
		Reason: wire.Reason{Code: wire.ReasonSkipped, Text: n.By + " skipped the trial before its first attempt"},
		Word:   &wire.Word{Decision: "skip", By: n.By, Text: n.Text, NoteID: n.ID, Judged: wire.Failed}}
}

// Retry is the word that reopens a trial that was given up. It stands at the
// trial's newest attempt.
const Retry = "retry"

// Next returns which attempt at a trial comes after those with the verdicts vs,
// and whether there is to be one: a trial is done when an attempt is accepted,
// when its attempts are used up, or when a person skips it. Interrupted attempts
// use up none, up to InterruptionsMax. A person who wants an attempt repeated is
// given one more; one who wants the trial retried is given all of them again.
func Next(attemptsMax int, vs []wire.Verdict) (attempt int, more bool) {
	s := standingOf(attemptsMax, vs)
	return s.attempt, s.more()
}

// Exhausted reports whether a trial is given up because it was interrupted too
// often, and not for what its attempts came to.
func Exhausted(attemptsMax int, vs []wire.Verdict) bool {
	s := standingOf(attemptsMax, vs)
	return !s.accepted && !s.skipped && s.used < s.allowed && s.interrupted >= InterruptionsMax
}

// standing is how a trial stands after some attempts.
type standing struct {
	attempt           int // the next one
	used, allowed     int // attempts that count
	interrupted       int // attempts that do not, since the trial was opened last
	accepted, skipped bool
}

func (s standing) more() bool {
	return !s.accepted && !s.skipped && s.used < s.allowed && s.interrupted < InterruptionsMax &&
		s.attempt <= wire.MaxAttempts
}

// standingOf takes attempts without a verdict for used ones: some node has
// driven them.
func standingOf(attemptsMax int, vs []wire.Verdict) standing {
	vs = slices.SortedFunc(slices.Values(vs), func(a, b wire.Verdict) int { return cmp.Compare(a.Attempt, b.Attempt) })
	s := standing{attempt: 1, allowed: max(attemptsMax, 1)}
	for _, v := range vs {
		s.used += max(v.Attempt-s.attempt, 0)
		s.attempt = max(s.attempt, v.Attempt+1)
		if v.Outcome == wire.Interrupted {
			s.interrupted++
		} else {
			s.used++
		}
		s.accepted = s.accepted || v.Outcome == wire.Accepted
		if v.Word == nil {
			continue
		}
		switch v.Word.Decision {
		case "skip":
			s.skipped = true
		case "repeat":
			s.allowed, s.interrupted = max(s.allowed, s.used+1), min(s.interrupted, InterruptionsMax-1)
		case Retry:
			s.allowed, s.interrupted, s.skipped = s.used+max(attemptsMax, 1), 0, false
		}
	}
	return s
}
