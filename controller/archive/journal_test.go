package archive_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// entry is a line of a journal.
func entry(t *testing.T, e archive.JournalEntry) []byte {
	t.Helper()
	e.Wall = time.Unix(1_790_000_000, 0).UTC()
	b, err := json.Marshal(e)
	must(t, err)
	return append(b, '\n')
}

// Each trial of the largest plan may be driven more than once, and each
// verdict has a rule for each covariate of each node.
func TestAJournalOfTheLargestPlanIsRead(t *testing.T) {
	a := create(t)
	must(t, a.Close())
	var journal bytes.Buffer
	const attempts = 2 * wire.MaxTrials
	for n := range attempts {
		k := wire.TrialKey{Trial: n/2 + 1, Attempt: n%2 + 1}
		v := wire.Verdict{TrialKey: k, Outcome: wire.Rejected, Reason: wire.Reason{Code: wire.ReasonSpeed}, Final: true}
		for i := range 10 {
			v.Checks = append(v.Checks, wire.Check{Rule: fmt.Sprintf("rule_%d", i), Limit: 0.9, Measured: new(0.5)})
		}
		journal.Write(entry(t, archive.JournalEntry{Type: "verdict", Verdict: &v}))
		journal.Write(entry(t, archive.JournalEntry{Type: "sealed", Trial: &k}))
	}
	must(t, os.WriteFile(filepath.Join(a.Dir(), "journal.ndjson"), journal.Bytes(), 0o600))
	b, err := archive.Read(a.Dir())
	must(t, err)
	if got := len(b.Decisions()); got != attempts {
		t.Errorf("%d decisions are read, of %d", got, attempts)
	}
}

// What could not be read again is not written: the run ends with what it has.
func TestAJournalIsNotWrittenBeyondWhatIsRead(t *testing.T) {
	a := create(t)
	must(t, a.Close())
	line := entry(t, archive.JournalEntry{Type: "note", Text: "rain"})
	must(t, os.WriteFile(filepath.Join(a.Dir(), "journal.ndjson"), bytes.Repeat(line, 199_999), 0o600))
	b, err := archive.Open(a.Dir())
	must(t, err)
	must(t, b.Note("the last"))
	err = b.Note("one too many")
	if err == nil || !strings.Contains(err.Error(), "fieldmesh nodes restore") {
		t.Errorf("%v, and it should say what to do", err)
	}
	v := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: wire.Rejected, Final: true}
	if err := b.Decide(v); err == nil || len(b.Decisions()) != 0 {
		t.Errorf("%v, and %d decisions", err, len(b.Decisions()))
	}
	must(t, b.Close())
	c, err := archive.Read(a.Dir())
	must(t, err)
	entries, err := c.Journal()
	must(t, err)
	if len(entries) != 200_000 {
		t.Errorf("%d entries", len(entries))
	}
}
