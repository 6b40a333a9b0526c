package verdict

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Heed gives the verdict that a person's word makes of the one before it, and
// whether it makes another at all. Words are no rules: the verdict keeps what
// was judged, so that a report can tell how much people decided. An attempt
// that failed measured nothing that could be accepted.
func Heed(v wire.Verdict, n wire.Noted) (wire.Verdict, bool) {
	judged := v.Outcome
	if v.Word != nil {
		judged = v.Word.Judged
	}
	word := wire.Word{Decision: n.Note, By: n.By, Text: n.Text, Judged: judged}
	if v.Word != nil && *v.Word == word {
		return v, false
	}
	if judged == Accepted {
		v.Reason = "" // of an earlier word
	}
	v.Word, v.Final = &word, true
	switch {
	case n.Note == "accept" && judged != Failed:
		v.Outcome = Accepted
	case n.Note == "repeat" && judged == Accepted:
		v.Outcome, v.Reason = Rejected, "repeat: "+n.By+" asked for another attempt"
	case n.Note == "repeat", n.Note == "skip":
		v.Outcome = judged
	default:
		return v, false
	}
	return v, true
}

// Skipped is the verdict on a trial that a person skips before its first attempt.
func Skipped(trial int, n wire.Noted) wire.Verdict {
	return wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Outcome: Failed, Final: true,
		Reason: "skipped: " + n.By + " skipped the trial before its first attempt",
		Word:   &wire.Word{Decision: "skip", By: n.By, Text: n.Text, Judged: Failed}}
}

// Next tells which attempt at a trial comes after those with the verdicts vs,
// and whether there is to be one: a trial is done when an attempt is accepted,
// when its attempts are used up, or when a person skips it. A person who wants
// one repeated is given one attempt more.
func Next(attemptsMax int, vs []wire.Verdict) (attempt int, more bool) {
	attempt = 1
	last, done := max(attemptsMax, 1), false
	for _, v := range vs {
		attempt = max(attempt, v.Attempt+1)
		done = done || v.Outcome == Accepted
		if v.Word == nil {
			continue
		}
		done = done || v.Word.Decision == "skip"
		if v.Word.Decision == "repeat" {
			last = max(last, v.Attempt+1)
		}
	}
	return attempt, !done && attempt <= min(last, wire.MaxAttempts)
}
