package archive_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan/room"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
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

//attack:face whoever has taken it over tells records of another run as today's
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

// One bad line must not keep the good ones behind it out for ever.
func TestWhatIsNoRecordIsSetAside(t *testing.T) {
	a := create(t)
	bad := [][]byte{
		[]byte("{"),
		line("roadside", "e1", 2, 1, 1), // another's name
		line("car", "e1", 0, 1, 1),
		[]byte(strings.Replace(string(line("car", "e1", 3, 1, 1)), ",", ",\n", 1)),
		bytes.Replace(line("car", "e1", 4, 1, 1), []byte(`"text":"record 4"`), []byte(`"text":4`), 1),
	}
	for range 2 { // given again after a restart, they are kept once
		must(t, a.Append("car", append([][]byte{line("car", "e1", 1, 1, 1)}, bad...)))
	}
	must(t, a.Append("car", [][]byte{line("car", "e1", 5, 1, 1), line("car", "e1", 6, 0, 0)}))
	if got := seqs(t, a, 1, 1); !slices.Equal(got, []uint64{1, 5}) {
		t.Errorf("holds %v, want 1 and 5", got)
	}
	kept, err := os.ReadFile(filepath.Join(a.Dir(), "between", "car.unreadable"))
	must(t, err)
	if got, want := string(kept), strings.ReplaceAll(string(bytes.Join(bad, []byte("\x00"))), "\n",
		" "); strings.ReplaceAll(got, "\n", "\x00") != want+"\x00" {
		t.Errorf("set aside:\n%s", got)
	}
	journal, err := a.Journal()
	must(t, err)
	if len(journal) != 1 || journal[0].Type != "note" || !strings.Contains(journal[0].Text, "5 lines of node car are "+
		"set aside") {
		t.Errorf("journal %+v", journal)
	}
	n := 0
	for _, err := range a.Between() {
		must(t, err)
		n++
	}
	var lines bytes.Buffer
	must(t, a.CopyLines(&lines))
	if got := bytes.Count(lines.Bytes(), []byte("\n")); n != 1 || got != 3 {
		t.Errorf("%d records between trials and %d lines in all, want 1 and 3", n, got)
	}
	if err := a.Append("../car", nil); err == nil {
		t.Error("a path was taken for a node's name")
	}
}

// Two fields side by side have nodes of one name, and a spool each.
func TestHowFarANodeIsIsToldSpoolBySpool(t *testing.T) {
	a := create(t)
	must(t, a.Append("car", [][]byte{line("car", "left", 7, 1, 1)}))
	must(t, a.Append("car", [][]byte{line("car", "right", 2, 2, 1)}))
	for at, want := range map[wire.SpoolPosition]bool{
		{Epoch: "left", Seq: 7}: true, {Epoch: "left", Seq: 8}: false, {Epoch: "right", Seq: 2}: true,
		{Epoch: "right", Seq: 3}: false, {Epoch: "other", Seq: 1}: false,
	} {
		if got := a.Holds("car", at); got != want {
			t.Errorf("holds %v: %v, want %v", at, got, want)
		}
	}
	must(t, a.Reached("car", wire.SpoolPosition{Epoch: "left", Seq: 9})) // 8 and 9 were not records
	must(t, a.Reached("car", wire.SpoolPosition{Epoch: "right", Seq: 1}))
	if !a.Holds("car", wire.SpoolPosition{Epoch: "left", Seq: 9}) ||
		!a.Holds("car", wire.SpoolPosition{Epoch: "right", Seq: 2}) {
		t.Error("a position that was reached is not held")
	}
}

//attack:archive whoever is given a run's folder gives GO with the run's key | the key is not in it
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
	v := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "rejected",
		Reason: wire.ParseReason("speed: slow"), Final: true,
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
		"plan.json", "verdict.json", "MANIFEST.sha256", "iperf3/car-bulk-client.json",
		"iperf3/roadside-bulk-server.json",
		"provenance/car.json", "provenance/roadside.json",
	} {
		t1, _ := a.Trial(1)
		if t1.Sender == "roadside" {
			name = strings.NewReplacer("car-bulk-client", "roadside-bulk-client", "roadside-bulk-server",
				"car-bulk-server").Replace(name)
		}
		raw, err := os.ReadFile(filepath.Join(a.Dir(), "trials/0001-a1", name))
		must(t, err)
		if strings.HasSuffix(name, ".json") && !json.Valid(raw) {
			t.Errorf("%s is no JSON", name)
		}
	}
}

// A plan is held to what its attempts come to, so that is not too few.
func TestAttemptsHaveNoMoreFilesThanAPlanIsHeldTo(t *testing.T) {
	o := options()
	o.Relays = 2
	a := synthetic.Run(t, o)
	for _, trial := range a.Info().Plan.Trials {
		n := 0
		dir := filepath.Join(a.Dir(), "trials", fmt.Sprintf("%04d-a1", trial.Number))
		must(t, filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { n++; return nil }))
		if most := room.FilesOfAttempt(trial); n > most || n < most-5 {
			t.Errorf("trial %d has %d files and folders, and the plan counts %d", trial.Number, n, most)
		}
	}
}

//attack:face whoever has taken it over tells records in another node's name | who brings a record has to be the
//attack:and node that it names; others are set aside
func TestRecordsInAnothersNameAreSetAside(t *testing.T) {
	a := create(t)
	must(t, a.Append("car", [][]byte{line("roadside", "e1", 1, 1, 1), line("car", "e1", 2, 1, 1)}))
	if got := seqs(t, a, 1, 1); !slices.Equal(got, []uint64{2}) {
		t.Errorf("holds %v, want only record 2", got)
	}
	if _, err := os.Stat(filepath.Join(a.Dir(), "trials/0001-a1/records/roadside.ndjson")); err == nil {
		t.Error("the other node has records")
	}
	if text, err := os.ReadFile(filepath.Join(a.Dir(), "between/car.unreadable")); err != nil ||
		!bytes.Contains(text, []byte(`"node":"roadside"`)) {
		t.Errorf("set aside: %q, %v", text, err)
	}
}

//attack:face whoever has taken it over sends another capture than the one that the node's record told | its SHA-256
//attack:and is compared with the record's
func TestACaptureThatWasNotToldIsThrownAway(t *testing.T) {
	a := create(t)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	must(t, a.AppendCapture(k, "car", []byte("another")))
	told := sha256.Sum256([]byte("the one"))
	if err := a.CloseCapture(k, "car", hex.EncodeToString(told[:])); !errors.Is(err, archive.ErrOtherCapture) {
		t.Error(err)
	}
	if held, whole := a.CaptureHeld(k, "car"); held != 0 || whole {
		t.Errorf("%d bytes are held, whole: %t", held, whole)
	}
	if err := a.AppendCapture(k, "../../car", nil); err == nil {
		t.Error("a capture is written elsewhere")
	}
}

// A run whose run.json is gone keeps what it measured: no other is begun over it.
func TestNoRunIsBegunOverAnother(t *testing.T) {
	for _, left := range []string{"trials/0001-a1/records/x.ndjson", "between/x.ndjson", "journal.ndjson"} {
		dir := filepath.Join(t.TempDir(), "run")
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, left)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, left), nil, 0o600))
		a, err := archive.Create(dir, archive.RunInfo{Run: "r"})
		if err == nil {
			must(t, a.Close())
		}
		if err == nil || !strings.Contains(err.Error(), "run.json is missing") {
			t.Errorf("over %s: %v", left, err)
		}
	}
}
