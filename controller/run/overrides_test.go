package run

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What a person decides is the outcome of the attempts, and the schedule follows
// it: an accepted attempt that is to be repeated is made once more, beyond the
// plan's number of attempts, and a skipped trial is not driven.
func TestOverridesAreApplied(t *testing.T) {
	lane, field := newLane(t, "only")
	car := field.nodes["car"]
	said := func(k wire.TrialKey, id, note string) {
		car.record(k, &wire.Noted{ID: id, Note: note, Text: "a bus passed", By: "phone"})
	}
	driven := map[wire.TrialKey]int{}
	field.armed = func() {
		k := *car.current
		driven[k]++
		switch k {
		case wire.TrialKey{Trial: 1, Attempt: 1}:
			said(k, "a", "repeat")
			said(wire.TrialKey{Trial: 3}, "b", "skip")
			said(k, "c", "mark")
		case wire.TrialKey{Trial: 1, Attempt: 2}:
			said(k, "d", "repeat")
			said(k, "e", "accept") // after all
		}
	}
	r := newRunner(t, 3, 1, lane)
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	want := map[wire.TrialKey]string{{Trial: 1, Attempt: 1}: "rejected repeat",
		{Trial: 1, Attempt: 2}: "accepted accept",
		{Trial: 2, Attempt: 1}: "accepted", {Trial: 3, Attempt: 1}: "failed skip"}
	got := map[wire.TrialKey]string{}
	for _, v := range r.Archive.Decisions() {
		got[v.TrialKey] = string(v.Outcome)
		if v.Word != nil {
			got[v.TrialKey] += " " + v.Word.Decision
		}
	}
	for k, w := range want {
		if got[k] != w {
			t.Errorf("trial %d attempt %d: %q, want %q", k.Trial, k.Attempt, got[k], w)
		}
	}
	if len(got) != len(want) || driven[wire.TrialKey{Trial: 3, Attempt: 1}] != 0 {
		t.Errorf("decided %v, driven %v", got, driven)
	}
	if a, g, l := r.Counts(); a != 2 || g != 1 || l != 0 {
		t.Errorf("%d accepted, %d given up, %d left", a, g, l)
	}
	for _, v := range field.nodes["road"].trials[1] {
		if v.Attempt == 1 && (v.Word == nil || v.Word.Judged != "accepted") {
			t.Errorf("the node was told %+v", v)
		}
	}
}

// A word about an attempt that measured nothing changes nothing, and the
// journal says so.
//
//attack:phone a word that accepts an attempt in which nothing was measured | it is noted, and decides nothing
func TestAnOverrideThatCannotBeAppliedIsNoted(t *testing.T) {
	lane, field := newLane(t, "only")
	field.mute = "road" // which fails the attempt
	car := field.nodes["car"]
	field.armed = func() {
		car.record(*car.current, &wire.Noted{ID: "a", Note: "accept", Text: "it looked good", By: "phone"})
	}
	r := newRunner(t, 1, 1, lane)
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	if v := r.Archive.Decisions(); len(v) != 1 || v[0].Outcome != "failed" || v[0].Word != nil {
		t.Errorf("decided %+v", v)
	}
	noted(t, r, "phone wished to accept trial 1 attempt 1")
}

// One attempt of a trial is its result: an earlier one is not accepted beside it.
func TestATrialIsAcceptedOnce(t *testing.T) {
	lane, field := newLane(t, "only")
	car := field.nodes["car"]
	first := wire.TrialKey{Trial: 1, Attempt: 1}
	field.armed = func() {
		if *car.current == first {
			car.record(first, &wire.Noted{ID: "a", Note: "repeat", By: "phone"})
		} else {
			car.record(first, &wire.Noted{ID: "b", Note: "accept", By: "phone"})
		}
	}
	r := newRunner(t, 1, 1, lane)
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	v := r.Archive.Decisions()
	if len(v) != 2 || v[0].Outcome != "rejected" || v[1].Outcome != "accepted" {
		t.Errorf("decided %+v", v)
	}
	noted(t, r, "and attempt 2 is accepted: nothing changed")
}

// What a person decided about an attempt that was decided before, and about a
// trial and no attempt of it, is done by the next controller when the one that
// collected it ended first; what the journal has an answer to is not done again.
func TestDecisionsThatWereNotMadeAreMadeOnResume(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newRunner(t, 3, 1, lane)
	first, answered := wire.TrialKey{Trial: 1, Attempt: 1}, wire.TrialKey{Trial: 2, Attempt: 1}
	for _, k := range []wire.TrialKey{first, answered} {
		if err := r.Archive.Decide(wire.Verdict{TrialKey: k, Outcome: wire.Accepted, Final: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Archive.Answer("c", "phone wished: nothing changed"); err != nil {
		t.Fatal(err)
	}
	car := field.nodes["car"]
	car.record(first, &wire.Noted{ID: "a", Note: "repeat", By: "phone"})
	car.record(wire.TrialKey{Trial: 3}, &wire.Noted{ID: "b", Note: "skip", By: "phone"})
	car.record(answered, &wire.Noted{ID: "c", Note: "repeat", By: "phone"})
	if err := r.Archive.Append("car", car.lines); err != nil { // by a controller that then was killed
		t.Fatal(err)
	}
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	want := map[wire.TrialKey]wire.Outcome{first: wire.Rejected, {Trial: 1, Attempt: 2}: wire.Accepted,
		answered: wire.Accepted, {Trial: 3, Attempt: 1}: wire.Failed}
	for _, v := range r.Archive.Decisions() {
		if v.Outcome != want[v.TrialKey] {
			t.Errorf("trial %d attempt %d is %s, want %q", v.Trial, v.Attempt, v.Outcome, want[v.TrialKey])
		}
		delete(want, v.TrialKey)
	}
	for k := range want {
		t.Errorf("trial %d attempt %d is not decided", k.Trial, k.Attempt)
	}
}

// A run that is complete says so, and one that is cut off does not: its nodes keep what they record.
func TestOnlyACompleteRunIsConfirmedAsOver(t *testing.T) {
	for _, cutOff := range []bool{false, true} {
		lane, field := newLane(t, "only")
		r := newRunner(t, 2, 1, lane)
		ctx, end := context.WithCancel(within(t))
		field.armed = func() {
			if cutOff && field.nodes["car"].current.Trial == 2 {
				field.mute = "road" // so that it does not end
				time.AfterFunc(100*time.Millisecond, end)
			}
		}
		if err := r.Run(ctx); (err != nil) != cutOff {
			t.Fatal(err)
		}
		end()
		got, all := field.nodes["car"].confirmed, uint64(len(field.nodes["car"].lines))
		if got.Run != "today" || got.Over == cutOff || !cutOff && got.Seq != all {
			t.Errorf("cut off %v: confirmed %+v of %d records", cutOff, got, all)
		}
	}
}

// A journal whose answers do not name the notes is of an earlier version: what it
// decided is not decided again.
func TestAnswersThatNameNoNoteAreNotMadeAgain(t *testing.T) {
	by := func(id, decision string) archive.JournalEntry {
		return archive.JournalEntry{Verdict: &wire.Verdict{Word: &wire.Word{Decision: decision, NoteID: id}}}
	}
	for name, c := range map[string]struct {
		journal []archive.JournalEntry
		all     bool
	}{
		"each names its note": {[]archive.JournalEntry{by("a", "accept"), {NoteID: "b"}, {Text: "a remark"}}, true},
		"retried":             {[]archive.JournalEntry{by("a", "accept"), by("", "retry")}, true},
		"of before":           {[]archive.JournalEntry{by("a", "accept"), by("", "repeat")}, false},
	} {
		if ids, all := answeredNotes(c.journal); all != c.all || !ids["a"] || ids["c"] {
			t.Errorf("%s: %v, all %t", name, ids, all)
		}
	}
}

// noted fails the test unless the journal has a note that holds a text.
func noted(t *testing.T, r *Runner, text string) {
	t.Helper()
	entries, err := r.Archive.Journal()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(entries, func(e archive.JournalEntry) bool {
		return e.Type == "note" && strings.Contains(e.Text, text)
	}) {
		t.Errorf("the journal does not hold %q: %+v", text, entries)
	}
}
