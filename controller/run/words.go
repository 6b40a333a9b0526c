package run

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// hear keeps a person's decision about an attempt until it can be heeded. Marks
// are records like others.
func (r *Runner) hear(rec wire.Record) {
	n, ok := rec.Body.(*wire.Noted)
	if !ok || n.Note == "mark" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.words = append(r.words, rec)
}

// heed makes verdicts of the words whose attempts are decided, and leaves those
// whose attempts are under way; r.mu is held. What is heeded is in the journal;
// a word that changes nothing is noted there, so that nobody waits for it.
func (r *Runner) heed() {
	var later []wire.Record
	for _, rec := range r.words {
		n := *rec.Body.(*wire.Noted)
		v, known := r.spokenOf(rec, n)
		if !known {
			later = append(later, rec)
			continue
		}
		if err := r.stand(v, n); err != nil {
			r.Log.Error("heed a word", "trial", v.Trial, "attempt", v.Attempt, "error", err)
			later = append(later, rec)
		}
	}
	r.words = later
}

// spokenOf finds the verdict that a word is about; a word about a trial and no
// attempt is about the newest.
func (r *Runner) spokenOf(rec wire.Record, n wire.Noted) (v wire.Verdict, known bool) {
	for _, had := range r.Archive.Decisions() {
		if had.Trial == rec.Trial && (had.Attempt == rec.Attempt || rec.Attempt == 0) {
			v, known = had, true
		}
	}
	if !known && n.Note == "skip" && rec.Attempt == 0 && !r.taken[rec.Trial] {
		if _, planned := r.trial(rec.Trial); planned {
			return verdict.Skipped(rec.Trial, n), true
		}
	}
	return v, known
}

// stand writes what a word makes of a verdict.
func (r *Runner) stand(v wire.Verdict, n wire.Noted) error {
	if other := r.acceptedBeside(v); n.Note == "accept" && other != 0 { // or the trial would count twice
		return r.Archive.Note(fmt.Sprintf("%s wished to accept trial %d attempt %d, and attempt %d is accepted: nothing changed", n.By, v.Trial, v.Attempt, other))
	}
	after, heeded := v, v.Word != nil && v.Word.Decision == n.Note && v.Word.Text == n.Text
	if !heeded {
		if after, heeded = verdict.Heed(v, n); !heeded {
			return r.Archive.Note(fmt.Sprintf("%s wished to %s trial %d attempt %d, which is %s: nothing changed", n.By, n.Note, v.Trial, v.Attempt, v.Outcome))
		}
	}
	if err := r.Archive.Decide(after); err != nil {
		return err
	}
	r.Log.Info("a person decided", "trial", v.Trial, "attempt", v.Attempt, "word", n.Note, "by", n.By, "outcome", after.Outcome)
	return nil
}

// acceptedBeside is another attempt at the same trial that is accepted; 0 when
// there is none.
func (r *Runner) acceptedBeside(v wire.Verdict) int {
	for _, had := range r.Archive.Decisions() {
		if had.Trial == v.Trial && had.Attempt != v.Attempt && had.Outcome == wire.Accepted {
			return had.Attempt
		}
	}
	return 0
}
