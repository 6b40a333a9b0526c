package archive

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/plan/room"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// JournalEntry is one line of journal.ndjson.
type JournalEntry struct {
	Wall    time.Time      `json:"t_wall"` // of the controller
	Type    string         `json:"type"`   // verdict | note | sealed | enough | finished
	Verdict *wire.Verdict  `json:"verdict,omitempty"`
	Trial   *wire.TrialKey `json:"sealed,omitempty"`
	Text    string         `json:"text,omitempty"`
	NoteID  string         `json:"note_id,omitempty"` // of the person's note that the text answers
	Stop    *Stop          `json:"enough,omitempty"`
}

// Decide writes a final verdict to the journal. The same verdict again changes
// nothing; another one on the same attempt is refused, unless it is a person's
// word over it. The journal keeps both; a sealed attempt's verdict.json stays
// what it was when the attempt was sealed.
func (a *Archive) Decide(v wire.Verdict) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !v.Final {
		return fmt.Errorf("decide trial %s: a provisional verdict is no decision", attemptName(v.TrialKey))
	}
	if _, planned := a.Trial(v.Trial); !planned || v.Attempt < 1 {
		return fmt.Errorf("decide trial %s: not in the plan", attemptName(v.TrialKey))
	}
	if had := a.verdictOf(v.TrialKey); had != nil {
		if reflect.DeepEqual(*had, v) {
			return nil
		}
		if v.Word == nil {
			return fmt.Errorf("decide trial %s: it is %s already", attemptName(v.TrialKey), had.Outcome)
		}
	}
	if err := a.writable(); err != nil {
		return fmt.Errorf("decide trial %s: %w", attemptName(v.TrialKey), err)
	}
	if err := a.write(JournalEntry{Type: "verdict", Verdict: &v}); err != nil {
		return fmt.Errorf("decide trial %s: %w", attemptName(v.TrialKey), err)
	}
	a.decided(v)
	return nil
}

// decided puts a verdict among the decisions, in the place of the one on the
// same attempt that it stands over.
func (a *Archive) decided(v wire.Verdict) {
	if had := a.verdictOf(v.TrialKey); had != nil {
		*had = v
		return
	}
	a.decidedAt[v.TrialKey] = len(a.decisions)
	a.decisions = append(a.decisions, v)
}

// Note writes a remark about the run to the journal.
func (a *Archive) Note(text string) error { return a.Answer("", text) }

// Answer writes to the journal what came of a person's note that decided nothing.
func (a *Archive) Answer(noteID, text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.note(noteID, text)
}

// Continued begins the note of a version of the controller that continues a run.
const Continued = "continued by "

// ContinuedBy notes which version of the controller continues a run that is not
// finished, where another drove it before.
func (a *Archive) ContinuedBy(version string) error {
	if a.Finished() || cmp.Or(a.driver, a.info.Version) == version {
		return nil
	}
	err := a.Note(Continued + version)
	if err == nil {
		a.drivenBy(version)
	}
	return err
}

func (a *Archive) drivenBy(version string) {
	a.driver = version
	if !strings.Contains(a.info.Version, version) {
		a.info.Version = cmp.Or(a.info.Version, "an unknown version") + " and " + version
	}
}

func (a *Archive) note(id, text string) error {
	if err := a.writable(); err != nil {
		return fmt.Errorf("write note: %w", err)
	}
	return a.write(JournalEntry{Type: "note", Text: text, NoteID: id})
}

func (a *Archive) write(e JournalEntry) error {
	e.Wall = time.Now().UTC()
	line, err := marshalLine(e)
	if err != nil {
		return err
	}
	size, err := a.journal.with(line)
	if err != nil {
		return fmt.Errorf("the run is as large as an archive may be: %w; %s", err, whenFull)
	}
	if _, err = a.disk.append(JournalFile, line); err == nil {
		a.journal = size
	}
	return err
}

// Decisions are the final verdicts in the order in which their attempts were
// decided first, one on each attempt.
func (a *Archive) Decisions() []wire.Verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]wire.Verdict(nil), a.decisions...)
}

func (a *Archive) verdictOf(k wire.TrialKey) *wire.Verdict {
	if i, ok := a.decidedAt[k]; ok {
		return &a.decisions[i]
	}
	return nil
}

func (a *Archive) readJournal() (err error) {
	a.journal, err = a.disk.journal(func(e JournalEntry) error {
		if e.Verdict != nil {
			a.decided(*e.Verdict)
		}
		if e.Stop != nil {
			a.stop = e.Stop
		}
		if v, is := strings.CutPrefix(e.Text, Continued); is && e.Type == "note" {
			a.drivenBy(v)
		}
		return nil
	})
	return err
}

// Journal is every decision and note in order.
func (a *Archive) Journal() (out []JournalEntry, err error) {
	_, err = a.disk.journal(func(e JournalEntry) error {
		out = append(out, e)
		return nil
	})
	return out, err
}

// Judged is when each attempt was first judged, by the controller's clock.
func (a *Archive) Judged() (map[wire.TrialKey]time.Time, error) {
	out := map[wire.TrialKey]time.Time{}
	entries, err := a.Journal()
	for _, e := range slices.Backward(entries) {
		if e.Verdict != nil {
			out[e.Verdict.TrialKey] = e.Wall
		}
	}
	return out, err
}

// journal calls do with every entry of the journal, and returns how much it holds.
func (d disk) journal(do func(JournalEntry) error) (journalSize, error) {
	var size journalSize
	err := d.lines(JournalFile, func(line []byte) error {
		var e JournalEntry
		var err error
		if size, err = size.with(line); err == nil {
			err = room.FitsMemory(line)
		}
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", JournalFile, err)
		}
		return do(e)
	})
	return size, err
}
