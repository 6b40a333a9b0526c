package spool

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func confirm(s *Spool, run string, seq uint64) error {
	return s.Confirm(wire.Confirmation{Run: run, Seq: seq})
}

// appendOf appends records of a run, each in a segment of its own or with few others.
func appendOf(t testing.TB, s *Spool, run string, trial, n int) {
	t.Helper()
	for i := range n {
		if _, err := s.Append(wire.Header{Run: run, Trial: trial, Attempt: trial}, event(i)); err != nil {
			t.Fatal(err)
		}
		mustSync(t, s)
	}
}

// greedy drops at once whatever may go.
var greedy = Options{KeptBytes: -1, MinFreeBytes: -1, SegmentBytes: 300, QuotaBytes: 1 << 20}

// The controller of a run was cut off; another run is driven to its end before anybody collects the rest.
func TestARunsConfirmationKeepsWhatAnotherRunRecorded(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, greedy)
	appendOf(t, s, "", 0, 2)
	appendOf(t, s, "yesterday", 1, 20)
	if err := confirm(s, "yesterday", 12); err != nil {
		t.Fatal(err)
	}
	appendOf(t, s, "today", 1, 20)
	for _, over := range []bool{false, true} {
		if err := s.Confirm(wire.Confirmation{Run: "today", Seq: 42, Over: over}); err != nil {
			t.Fatal(err)
		}
		got := seqs(t, s, 12, 100)
		if len(got) < 10 || !slices.Equal(got[:10], []uint64{13, 14, 15, 16, 17, 18, 19, 20, 21, 22}) {
			t.Fatalf("of yesterday's records 13 to 22 there are %v", got)
		}
		if st := s.Status(); st.UsedBytes > 3000 || !slices.Equal(st.UnconfirmedRuns, []string{"yesterday"}) {
			t.Errorf("%d bytes are held, unconfirmed runs %v", st.UsedBytes, st.UnconfirmedRuns)
		}
		// The agent is started again: what was confirmed, and of which run, is on disk.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, dir, greedy)
	}
	appendOf(t, s, "tomorrow", 1, 5)
	if err := confirm(s, "tomorrow", 47); err != nil {
		t.Fatal(err)
	}
	if got := seqs(t, s, 12, 100); len(got) < 10 || got[9] != 22 {
		t.Errorf("of yesterday's records 13 to 22 there are %v", got)
	}
	if err := s.Confirm(wire.Confirmation{Run: "yesterday", Seq: 22, Over: true}); err != nil {
		t.Fatal(err)
	}
	if got := seqs(t, s, 0, 100); len(got) > 4 || len(s.Status().UnconfirmedRuns) != 0 {
		t.Errorf("%v is held though all is confirmed", got)
	}
}

// Former versions noted one number, for all runs.
func TestTheNoteOfAFormerVersionIsOfAllRuns(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{MinFreeBytes: -1, SegmentBytes: 300, QuotaBytes: 1 << 20})
	appendOf(t, s, "a", 1, 8)
	appendOf(t, s, "b", 1, 8)
	note := filepath.Join(dir, confirmedFile)
	if err := errors.Join(s.Close(), os.WriteFile(note, []byte("12\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir, greedy)
	appendOf(t, s, "c", 1, 5)
	if err := confirm(s, "c", 21); err != nil {
		t.Fatal(err)
	}
	got := seqs(t, s, 0, 100)
	if len(got) == 0 || got[0] < 9 || got[0] > 13 || !slices.Contains(got, 16) {
		t.Errorf("records %v are left, want none that was confirmed, and b's 13 to 16", got)
	}
	if runs := s.Status().UnconfirmedRuns; !slices.Equal(runs, []string{"b"}) {
		t.Errorf("unconfirmed runs: %v", runs)
	}
}

// A damaged note, or one cut off anywhere, drops nothing that is not confirmed and gives no seq twice.
func TestADamagedNoteKeepsRecords(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{MinFreeBytes: -1, SegmentBytes: 300, QuotaBytes: 1 << 20})
	appendOf(t, s, "a", 1, 8)
	appendOf(t, s, "b", 1, 8)
	if err := errors.Join(confirm(s, "b", 16), s.Close()); err != nil {
		t.Fatal(err)
	}
	note, err := os.ReadFile(filepath.Join(dir, confirmedFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "x", "0 x\n", string(note) + "a", string(note) + "a 99999999999999999999\n"} {
		if err := os.WriteFile(filepath.Join(dir, confirmedFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, dir, greedy)
		got := seqs(t, s, 0, 100)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wantRange(t, got, 1, 16)
	}
}

// A run that is over may still note something beside its attempts; that keeps nothing. An attempt of it
// is again waited for: somebody has resumed it, or begun another run of its name.
func TestARunThatIsOverMayGoOn(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, greedy)
	appendOf(t, s, "a", 1, 8)
	if err := s.Confirm(wire.Confirmation{Run: "a", Seq: 8, Over: true}); err != nil {
		t.Fatal(err)
	}
	appendOf(t, s, "a", 0, 8)
	if runs := s.Status().UnconfirmedRuns; len(runs) != 0 {
		t.Errorf("unconfirmed runs after its end: %v", runs)
	}
	appendOf(t, s, "a", 2, 8)
	appendOf(t, s, "b", 1, 8)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir, greedy)
	if err := confirm(s, "b", 32); err != nil {
		t.Fatal(err)
	}
	got := seqs(t, s, 16, 100)
	if len(got) < 8 || !slices.Equal(got[:8], []uint64{17, 18, 19, 20, 21, 22, 23, 24}) {
		t.Errorf("of the attempt's records 17 to 24 there are %v", got)
	}
	if st := s.Status(); st.Oldest < 9 || !slices.Equal(st.UnconfirmedRuns, []string{"a"}) {
		t.Errorf("the oldest record is %d, unconfirmed runs %v", st.Oldest, st.UnconfirmedRuns)
	}
}

// A spool that is full of abandoned runs says whose records those are.
func TestAFullSpoolNamesTheRuns(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{QuotaBytes: 5000, SegmentBytes: 300, MinFreeBytes: -1})
	var full *FullError
	for i, run := range []string{"a", "b", "c"} {
		for n := 0; n < 100 && (n < 5 || i == 2); n++ {
			if _, err := s.Append(wire.Header{Run: run, Trial: 1, Attempt: 1}, event(n)); errors.As(err, &full) {
				break
			}
			mustSync(t, s)
		}
	}
	want := "of run a, the oldest of 3 such runs, in "
	if full == nil || !strings.Contains(full.Cure, want) || !strings.Contains(full.Cure, "--resume a;") ||
		!strings.Contains(full.Cure, "nodes forget a)") {
		t.Fatalf("%v, want it to say %q", full, want)
	}
	newest := s.Position().Seq
	for i, run := range []string{"a", "b"} {
		if err := s.Confirm(wire.Confirmation{Run: run, Seq: newest, Over: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.CheckRoom(int64(400 * (i + 1))); err != nil {
			t.Errorf("after run %s was given up: %v", run, err)
		}
	}
}

// What is written while a flush fails is still of its run.
func TestRunsAreKnownAfterAFailedWrite(t *testing.T) {
	d := &faultyDisk{}
	s := d.open(t, t.TempDir(), greedy)
	appendOf(t, s, "a", 1, 1)
	d.set(errors.New("torn"), 3)
	for range 3 {
		if _, err := s.Append(wire.Header{Run: "b", Trial: 1, Attempt: 1}, event(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(t.Context()); err == nil {
		t.Fatal("the disk took it")
	}
	d.set(nil, 0)
	mustSync(t, s)
	appendOf(t, s, "c", 1, 5)
	if err := errors.Join(confirm(s, "c", 9), confirm(s, "a", 1)); err != nil {
		t.Fatal(err)
	}
	if got := seqs(t, s, 0, 100); !slices.Contains(got, 2) || !slices.Contains(got, 4) {
		t.Errorf("of b's records 2 to 4 there are %v", got)
	}
}

// Whoever begins another run of a name, or takes one up again that is over, waits for all that is recorded from then
// on, also before the first attempt.
func TestWhatIsRecordedBeforeTheFirstAttemptIsKept(t *testing.T) {
	s := mustOpen(t, t.TempDir(), greedy)
	appendOf(t, s, "a", 1, 8)
	if err := errors.Join(s.Confirm(wire.Confirmation{Run: "a", Seq: 8, Over: true}), s.Reopen("a")); err != nil {
		t.Fatal(err)
	}
	appendOf(t, s, "a", 0, 8)
	appendOf(t, s, "a", 2, 1)
	appendOf(t, s, "b", 1, 8)
	if err := confirm(s, "b", 25); err != nil {
		t.Fatal(err)
	}
	got := seqs(t, s, 8, 100)
	if len(got) < 9 || !slices.Equal(got[:9], []uint64{9, 10, 11, 12, 13, 14, 15, 16, 17}) {
		t.Errorf("of the run's records 9 to 17 there are %v", got)
	}
}

// To take a run up on a full disk, what is confirmed makes room first; where there is none, the error says so.
func TestARunIsTakenUpOnAFullDisk(t *testing.T) {
	dir, d := t.TempDir(), &faultyDisk{}
	s := d.open(t, dir, Options{MinFreeBytes: -1, SegmentBytes: 300, QuotaBytes: 1 << 20})
	appendOf(t, s, "a", 1, 20)
	if err := s.Confirm(wire.Confirmation{Run: "a", Seq: 20, Over: true}); err != nil {
		t.Fatal(err)
	}
	oldest := s.Status().Oldest
	d.mu.Lock()
	d.free = 0 // others have filled it
	d.mu.Unlock()
	note := filepath.Join(dir, confirmedFile+".new")
	if err := os.Symlink("/dev/full", note); err != nil {
		t.Fatal(err)
	}
	err := s.Reopen("a")
	full, _ := errors.AsType[*FullError](err)
	if full == nil || !strings.Contains(err.Error(), "make room on the disk") {
		t.Errorf("%v, want how to make room", err)
	}
	if got := s.Status().Oldest; got <= oldest {
		t.Errorf("the oldest record is still %d", got)
	}
	if err := errors.Join(os.Remove(note), s.Reopen("a")); err != nil {
		t.Fatal(err)
	}
	appendOf(t, s, "a", 0, 1)
	if runs := s.Status().UnconfirmedRuns; !slices.Equal(runs, []string{"a"}) {
		t.Errorf("unconfirmed runs: %v", runs)
	}
}

// Who forgets a run has not collected what is of no run: that stays while another run's controller may, and no longer.
func TestAForgottenRunConfirmsNothingElse(t *testing.T) {
	s := mustOpen(t, t.TempDir(), greedy)
	appendOf(t, s, "", 0, 4)
	appendOf(t, s, "a", 1, 20)
	appendOf(t, s, "b", 1, 20)
	if err := s.Confirm(wire.Confirmation{Run: "a", Over: true}); err != nil {
		t.Fatal(err)
	}
	got := seqs(t, s, 0, 100)
	if len(got) < 24 || len(got) > 26 || !slices.Equal(got[:4], []uint64{1, 2, 3, 4}) {
		t.Errorf("%v is held, want of no run 1 to 4, and of b 25 to 44", got)
	}
	if err := s.Confirm(wire.Confirmation{Run: "b", Over: true}); err != nil {
		t.Fatal(err)
	}
	if got := seqs(t, s, 0, 100); len(got) > 4 {
		t.Errorf("%v is held though nobody is left who would collect it", got)
	}
}

// slowFile takes long to sync while hold is not nil.
type slowFile struct {
	file
	disk *slowDisk
}

type slowDisk struct {
	mu      sync.Mutex
	hold    chan struct{} // closed to go on
	syncing chan struct{} // a sync has begun
}

func (f slowFile) Sync() error {
	f.disk.mu.Lock()
	hold := f.disk.hold
	f.disk.mu.Unlock()
	if hold != nil {
		f.disk.syncing <- struct{}{}
		<-hold
	}
	return f.file.Sync()
}

// What is said of a run that is over holds for records that are just being written, too.
func TestARunThatIsOverStaysSoWhileItsRecordsAreWritten(t *testing.T) {
	d := &slowDisk{syncing: make(chan struct{}, 100)}
	s, err := open(t.TempDir(), "n1", greedy, func(path string) (file, error) {
		f, err := openSegmentFile(path)
		return slowFile{f, d}, err
	}, diskFree)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	appendOf(t, s, "a", 1, 8)
	appendOf(t, s, "b", 1, 8)
	if err := errors.Join(confirm(s, "b", 12), s.Confirm(wire.Confirmation{Run: "a", Seq: 8, Over: true})); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	d.mu.Lock()
	d.hold = hold
	d.mu.Unlock()
	if _, err := s.Append(wire.Header{Run: "a"}, event(1)); err != nil { // late, and beside any attempt
		t.Fatal(err)
	}
	<-d.syncing
	err = confirm(s, "b", 16)
	d.mu.Lock()
	d.hold = nil
	d.mu.Unlock()
	close(hold)
	if err != nil {
		t.Fatal(err)
	}
	mustSync(t, s)
	if runs := s.Status().UnconfirmedRuns; len(runs) != 0 {
		t.Errorf("unconfirmed runs: %v", runs)
	}
}

// What was read of a segment beside damage is not noted: such a note would be believed when more can be read.
func TestADamagedSegmentGetsNoNote(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, greedy)
	appendOf(t, s, "a", 1, 8)
	appendOf(t, s, "b", 1, 8)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	segments := closedSegments(t, dir)
	damage := func(path string, from, to int) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		for i := max(from, 0); i < len(lines)-1 && i < to; i++ {
			lines[i] = strings.Repeat("x", len(lines[i])-1) + "\n"
		}
		_ = os.Remove(strings.TrimSuffix(path, segmentSuffix) + runsSuffix)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage(segments[0], 0, 1)
	damage(segments[1], 1, 100)
	damage(segments[2], 0, 100)
	s = mustOpen(t, dir, greedy)
	for i, path := range segments[:4] {
		_, err := os.Stat(strings.TrimSuffix(path, segmentSuffix) + runsSuffix)
		if noted := err == nil; noted != (i == 3) {
			t.Errorf("of segment %d there is a note: %v", i, noted)
		}
	}
	if s.segments[0].runs["a"] == 0 || s.segments[1].runs["a"] == 0 || s.segments[2].runs != nil {
		t.Errorf("of the first segments the runs are %v, %v and %v", s.segments[0].runs, s.segments[1].runs,
			s.segments[2].runs)
	}
}

// The numbers of records that an ended agent had not yet written are given to others.
func TestARunGoesOnFromWhatIsDurable(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	s := mustOpen(t, dir, greedy)
	appendOf(t, s, "a", 1, 8)
	if err := s.Confirm(wire.Confirmation{Run: "a", Seq: 8, Over: true}); err != nil {
		t.Fatal(err)
	}
	for _, trial := range []int{0, 0, 0, 0, 0, 0, 2} {
		if _, err := s.Append(wire.Header{Run: "a", Trial: trial, Attempt: trial}, event(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, killed, greedy)
	first := s.Position().Seq + 1
	appendOf(t, s, "a", 2, 8)
	appendOf(t, s, "b", 1, 8)
	if err := confirm(s, "b", first+15); err != nil {
		t.Fatal(err)
	}
	if got := seqs(t, s, first-1, 100); len(got) == 0 || got[0] != first {
		t.Errorf("the first of the attempt's records is %d, there are %v", first, got)
	}
}

// What comes after the newest confirmation keeps no room when it is of runs that are over; what is of no run goes with
// whatever is confirmed next, also of such a run.
func TestWhatComesAfterTheLastRunsEndKeepsNoRoom(t *testing.T) {
	s := mustOpen(t, t.TempDir(), greedy)
	appendOf(t, s, "a", 1, 8)
	if err := s.Confirm(wire.Confirmation{Run: "a", Seq: 8, Over: true}); err != nil {
		t.Fatal(err)
	}
	appendOf(t, s, "a", 0, 40)
	if st := s.Status(); st.UsedBytes > 1000 {
		t.Errorf("%d bytes are held of a run that is over", st.UsedBytes)
	}
	appendOf(t, s, "", 0, 40)
	if st := s.Status(); st.UsedBytes < 4000 {
		t.Errorf("%d bytes are held of what nobody has", st.UsedBytes)
	}
	if err := s.Confirm(wire.Confirmation{Run: "a", Seq: 88, Over: true}); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.UsedBytes > 1000 {
		t.Errorf("%d bytes are held of what is confirmed", st.UsedBytes)
	}
}

// closedSegments lists the segments of a closed spool that are written no more.
func closedSegments(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil || len(paths) < 4 {
		t.Fatalf("segments %v, %v", paths, err)
	}
	return paths[:len(paths)-1]
}

// A node that is started again answers before its whole disk has been read.
func TestABacklogIsNotReadAtTheStart(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, greedy)
	appendOf(t, s, "a", 1, 8)
	appendOf(t, s, "", 0, 1)
	appendOf(t, s, "b", 1, 8)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	segments := closedSegments(t, dir)
	runs := func() []string {
		s, err := Open(dir, "n1", greedy)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.Status().UnconfirmedRuns
	}
	for _, text := range []string{"", "torn", "00000000 {}\n"} { // such a note is not believed
		for _, path := range segments {
			note := strings.TrimSuffix(path, segmentSuffix) + runsSuffix
			if err := os.WriteFile(note, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := runs(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("notes %q: unconfirmed runs %v", text, got)
		}
	}
	for _, path := range segments {
		info, err := os.Stat(path)
		if err == nil {
			err = os.WriteFile(path, make([]byte, info.Size()), 0o600) // nothing can be read from it
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := runs(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("by the notes alone: unconfirmed runs %v", got)
	}
	for _, path := range segments {
		if err := os.WriteFile(path, []byte("another"), 0o600); err != nil { // than the note's
			t.Fatal(err)
		}
	}
	if got := runs(); slices.Contains(got, "a") {
		t.Errorf("notes of other segments were believed: %v", got)
	}
}

// No note stays without its segment.
func TestADroppedSegmentLeavesNoNote(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, greedy)
	appendOf(t, s, "a", 1, 20)
	if err := confirm(s, "a", 20); err != nil {
		t.Fatal(err)
	}
	if notes, err := filepath.Glob(filepath.Join(dir, "*"+runsSuffix)); err != nil || len(notes) > 0 {
		t.Errorf("notes %v, %v", notes, err)
	}
}

// A segment of which nobody knows what it has is kept; who needs its room is told which it is.
func TestASegmentThatCannotBeReadIsNamed(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, greedy)
	appendOf(t, s, "a", 1, 20)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	broken := closedSegments(t, dir)[1]
	_ = os.Remove(strings.TrimSuffix(broken, segmentSuffix) + runsSuffix)
	if err := errors.Join(os.Remove(broken), os.Mkdir(broken, 0o700)); err != nil {
		t.Fatal(err)
	}
	small := greedy
	small.QuotaBytes = 2000
	s = mustOpen(t, dir, small)
	if err := s.Confirm(wire.Confirmation{Run: "a", Seq: 20, Over: true}); err != nil {
		t.Fatal(err)
	}
	full, _ := errors.AsType[*FullError](s.CheckRoom(2000))
	if full == nil || !strings.Contains(full.Cure, "move "+broken+" away") {
		t.Errorf("%v, want it to name %s", full, broken)
	}
}
