package archive_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/synthetic"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func options() synthetic.Options {
	return synthetic.Options{Seed: 4, Speeds: []float64{5.6}, Repetitions: 1}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T) *archive.Archive {
	t.Helper()
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), synthetic.Info(options()))
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	return a
}

// line is a record of a node; trial 0 is between trials.
func line(node, epoch string, seq uint64, trial, attempt int) []byte {
	h := wire.Header{Node: node, Epoch: epoch, Seq: seq, Run: "synthetic-4", Trial: trial, Attempt: attempt}
	b, err := json.Marshal(wire.Record{Header: h, Body: &wire.Event{Level: "info", Text: fmt.Sprint("record ", seq)}})
	if err != nil {
		panic(err)
	}
	return b
}

func seqs(t *testing.T, a *archive.Archive, trial, attempt int) []uint64 {
	t.Helper()
	records, err := a.All(trial, attempt)
	must(t, err)
	var out []uint64
	for _, r := range records {
		out = append(out, r.Seq)
	}
	return out
}

func TestAppendRoutesAndKeepsEachRecordOnce(t *testing.T) {
	a := create(t)
	lines := [][]byte{
		line("car", "e1", 1, 0, 0), line("car", "e1", 2, 1, 1), line("car", "e1", 3, 1, 1),
		line("car", "e1", 4, 1, 2), line("car", "e1", 5, 2, 1), line("car", "e1", 6, 99, 1),
	}
	must(t, a.Append("car", lines))
	must(t, a.Append("car", lines[2:]))
	must(t, a.Append("car", append(lines[4:], line("car", "e1", 7, 2, 1))))
	for k, want := range map[[2]int][]uint64{{1, 1}: {2, 3}, {1, 2}: {4}, {2, 1}: {5, 7}} {
		if got := seqs(t, a, k[0], k[1]); !slices.Equal(got, want) {
			t.Errorf("trial %v holds %v, want %v", k, got, want)
		}
	}
	var between []uint64
	for r, err := range a.Between() {
		must(t, err)
		between = append(between, r.Seq)
	}
	if !slices.Equal(between, []uint64{1, 6}) {
		t.Errorf("between trials: %v, want 1 and 6 (of a trial that is not planned)", between)
	}
	if got := a.Cursor("car"); got != (wire.SpoolPosition{Epoch: "e1", Seq: 7}) {
		t.Errorf("cursor is %+v", got)
	}
	must(t, a.Append("car", [][]byte{line("car", "e2", 1, 2, 1)}))
	if got := a.Cursor("car"); got != (wire.SpoolPosition{Epoch: "e2", Seq: 1}) {
		t.Errorf("after a new spool the cursor is %+v", got)
	}
	if got := a.Cursor("roadside"); got != (wire.SpoolPosition{}) {
		t.Errorf("a node without records has cursor %+v", got)
	}
}

func TestAppendPassesOverOtherRuns(t *testing.T) {
	a := create(t)
	foreign := bytes.Replace(line("car", "e1", 1, 1, 1), []byte("synthetic-4"), []byte("another-run"), 1)
	must(t, a.Append("car", [][]byte{foreign, line("car", "e1", 2, 1, 1)}))
	if got := seqs(t, a, 1, 1); !slices.Equal(got, []uint64{2}) {
		t.Errorf("holds %v, want only record 2", got)
	}
	if got := a.Cursor("car").Seq; got != 2 {
		t.Errorf("cursor is at %d, want 2", got)
	}
}

func TestAppendRefusesWhatIsNoRecord(t *testing.T) {
	a := create(t)
	good := line("car", "e1", 1, 1, 1)
	for name, c := range map[string]struct {
		node string
		bad  []byte
	}{
		"not JSON":       {"car", []byte("{")},
		"another's name": {"car", line("roadside", "e1", 2, 1, 1)},
		"no seq":         {"car", line("car", "e1", 0, 1, 1)},
		"two lines":      {"car", []byte(strings.Replace(string(line("car", "e1", 2, 1, 1)), ",", ",\n", 1))},
		"a path":         {"../car", line("../car", "e1", 2, 1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := a.Append(c.node, [][]byte{good, c.bad}); err == nil {
				t.Error("it was stored")
			}
		})
	}
	if got := seqs(t, a, 1, 1); len(got) != 0 {
		t.Errorf("a refused call left records %v", got)
	}
}

func TestTheKeyIsNotStored(t *testing.T) {
	a := synthetic.Run(t, options())
	err := filepath.WalkDir(a.Dir(), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(`"key"`)) || bytes.Contains(raw, []byte("must not be archived")) {
			t.Errorf("%s holds the run's key", path)
		}
		return err
	})
	must(t, err)
}

func TestOneWriterAtATime(t *testing.T) {
	a := create(t)
	if _, err := archive.Open(a.Dir()); !errors.Is(err, archive.ErrLocked) {
		t.Fatalf("a second writer got %v, want ErrLocked", err)
	}
	r, err := archive.Read(a.Dir())
	must(t, err)
	if err := r.Note("no"); err == nil {
		t.Error("a reader wrote a note")
	}
	must(t, a.Close())
	b, err := archive.Open(a.Dir())
	must(t, err)
	must(t, b.Close())
	if _, err := archive.Create(a.Dir(), synthetic.Info(options())); !errors.Is(err, archive.ErrExists) {
		t.Errorf("creating it again gave %v, want ErrExists", err)
	}
}

func TestDecisionsSurviveAndDoNotChange(t *testing.T) {
	a := create(t)
	v := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "rejected", Reason: "speed: slow", Final: true,
		Checks: []wire.Check{{Rule: "in_band_share_min", Limit: 0.9, Measured: new(0.1 + 0.2)}}}
	must(t, a.Decide(v))
	must(t, a.Note("the lorry in lane 1"))
	must(t, a.Close())
	b, err := archive.Open(a.Dir())
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	must(t, b.Decide(v))
	if got := b.Decisions(); len(got) != 1 || got[0].Reason != v.Reason || *got[0].Checks[0].Measured != 0.1+0.2 {
		t.Errorf("decisions are %+v", got)
	}
	other := v
	other.Outcome = "accepted"
	if err := b.Decide(other); err == nil {
		t.Error("a decision was overturned")
	}
	other.Final, other.Attempt = false, 2
	if err := b.Decide(other); err == nil {
		t.Error("a provisional verdict was taken as a decision")
	}
}

func TestReadingLeavesTheArchiveAsItIs(t *testing.T) {
	a := create(t)
	must(t, a.Append("car", [][]byte{line("car", "e1", 1, 1, 1)}))
	path := filepath.Join(a.Dir(), "trials/0001-a1/records/car.ndjson")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"kind":"eve`) // as another process is writing it
	must(t, err)
	must(t, f.Close())
	before, err := os.ReadFile(path)
	must(t, err)
	r, err := archive.Read(a.Dir())
	must(t, err)
	if got := seqs(t, r, 1, 1); !slices.Equal(got, []uint64{1}) {
		t.Errorf("reads %v, want the whole line alone", got)
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("reading changed the file")
	}
}

func TestLateRecordsDoNotBreakASeal(t *testing.T) {
	a := synthetic.Run(t, options())
	at := a.Cursor("car")
	must(t, a.Append("car", [][]byte{line("car", at.Epoch, at.Seq+1, 1, 1)}))
	got := seqs(t, a, 1, 1)
	if got[len(got)-1] != at.Seq+1 {
		t.Error("the late record is not among the trial's")
	}
	must(t, a.Finish())
	findings, err := archive.Verify(a.Dir())
	must(t, err)
	if len(findings) != 0 {
		t.Errorf("verify found %v", findings)
	}
}

func TestSealTakesOutIperf3AndProvenance(t *testing.T) {
	a := synthetic.Run(t, options())
	for _, name := range []string{
		"plan.json", "verdict.json", "MANIFEST.sha256", "iperf3/car-bulk-client.json", "iperf3/roadside-bulk-server.json",
		"provenance/car.json", "provenance/roadside.json",
	} {
		t1, _ := a.Trial(1)
		if t1.Sender == "roadside" {
			name = strings.NewReplacer("car-bulk-client", "roadside-bulk-client", "roadside-bulk-server", "car-bulk-server").Replace(name)
		}
		raw, err := os.ReadFile(filepath.Join(a.Dir(), "trials/0001-a1", name))
		must(t, err)
		if strings.HasSuffix(name, ".json") && !json.Valid(raw) {
			t.Errorf("%s is no JSON", name)
		}
	}
}
