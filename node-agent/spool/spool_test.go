package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"golang.org/x/sys/unix"
)

// noFloor keeps tests independent of how full the disk is that they run on.
var noFloor = Options{MinFreeBytes: -1}

func mustOpen(t testing.TB, dir string, opt Options) *Spool {
	t.Helper()
	s, err := Open(dir, "n1", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func event(i int) *wire.Event {
	return &wire.Event{Level: "info", Text: fmt.Sprintf(`number %d "seq":9 %s`, i, strings.Repeat("x", i%7))}
}

func appendN(t testing.TB, s *Spool, n int) {
	t.Helper()
	for i := range n {
		if _, err := s.Append(wire.Header{TBootNs: int64(i), Run: "r", Trial: 1, Attempt: 1}, event(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func mustSync(t testing.TB, s *Spool) {
	t.Helper()
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// seqs reads everything after a seq in steps of limit.
func seqs(t testing.TB, s *Spool, after uint64, limit int) []uint64 {
	t.Helper()
	var out []uint64
	for range 10_000 {
		lines, last, err := s.Read(after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			var r wire.Record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			out = append(out, r.Seq)
		}
		if last == after {
			return out
		}
		after = last
	}
	t.Fatal("Read does not come to an end")
	return nil
}

func wantRange(t testing.TB, got []uint64, from, to uint64) {
	t.Helper()
	if uint64(len(got)) != to-from+1 {
		t.Fatalf("got %d records %v…, want %d…%d", len(got), got[:min(len(got), 5)], from, to)
	}
	for i, seq := range got {
		if seq != from+uint64(i) {
			t.Fatalf("record %d has seq %d, want %d", i, seq, from+uint64(i))
		}
	}
}

func TestAppendIsReadBackAndOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	opt := Options{MinFreeBytes: -1, SegmentBytes: 2000, QuotaBytes: 1 << 20}
	s := mustOpen(t, dir, opt)
	if lines, last, err := s.Read(0, 10); len(lines) != 0 || last != 0 || err != nil {
		t.Fatalf("new spool reads %d lines, last %d, error %v", len(lines), last, err)
	}
	appendN(t, s, 100)
	mustSync(t, s)
	epoch := s.Position().Epoch
	if len(epoch) != 16 || s.Position().Seq != 100 {
		t.Fatalf("position %+v", s.Position())
	}
	for _, limit := range []int{1, 7, 1000} {
		wantRange(t, seqs(t, s, 0, limit), 1, 100)
		wantRange(t, seqs(t, s, 41, limit), 42, 100)
	}
	lines, _, err := s.Read(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	var r wire.Record
	if err := json.Unmarshal(lines[0], &r); err != nil {
		t.Fatal(err)
	}
	want := wire.Header{Kind: "event", Version: wire.SchemaVersion, Node: "n1", Epoch: epoch, Seq: 5, TBootNs: 4,
		Run: "r", Trial: 1, Attempt: 1}
	if r.Header != want || r.Body.(*wire.Event).Text != event(4).Text {
		t.Errorf("record 5 is %+v %+v, want header %+v", r.Header, r.Body, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir, opt)
	if got := s.Position(); got != (wire.SpoolPosition{Epoch: epoch, Seq: 100}) {
		t.Errorf("opened again at %+v", got)
	}
	appendN(t, s, 1)
	mustSync(t, s)
	wantRange(t, seqs(t, s, 0, 50), 1, 101)
}

func TestRecordsBecomeDurableByThemselves(t *testing.T) {
	s := mustOpen(t, t.TempDir(), noFloor)
	appendN(t, s, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Wait(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if s.Position().Seq != 3 {
		t.Errorf("position %d after Wait(2)", s.Position().Seq)
	}
	cancel()
	if err := s.Wait(ctx, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with an ended context: %v", err)
	}
}

func TestReadGivesOnlyDurableRecords(t *testing.T) {
	d := &faultyDisk{}
	s := d.open(t, t.TempDir(), noFloor)
	appendN(t, s, 1)
	mustSync(t, s)
	d.set(unix.EIO, 0)
	appendN(t, s, 1)
	if err := s.Sync(t.Context()); !errors.Is(err, unix.EIO) {
		t.Fatalf("sync on a broken disk: %v", err)
	}
	wantRange(t, seqs(t, s, 0, 10), 1, 1)
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, dir, noFloor)
	if _, err := Open(dir, "n1", noFloor); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Fatalf("second open: %v", err)
	}
}

func TestClosedSpoolSaysSo(t *testing.T) {
	s := mustOpen(t, t.TempDir(), noFloor)
	waiting := make(chan error, 1)
	go func() { waiting <- s.Wait(context.Background(), 0) }()
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	_, appendErr := s.Append(wire.Header{}, event(0))
	_, _, readErr := s.Read(0, 1)
	for _, err := range []error{appendErr, readErr, s.Sync(t.Context()), confirm(s, "r", 0), s.CheckRoom(1)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestUnknownBodyIsRefused(t *testing.T) {
	s := mustOpen(t, t.TempDir(), noFloor)
	if _, err := s.Append(wire.Header{}, wire.Unknown{Name: "x", Raw: []byte("{}")}); err == nil {
		t.Error("a record whose seq cannot be set was taken")
	}
}

func TestOpenRefusesWhatItCannotTrust(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"lost epoch": func(dir string) error { return os.Remove(filepath.Join(dir, epochFile)) },
		"damaged epoch": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, epochFile), []byte("zz\n"), 0o600)
		},
	} {
		dir := t.TempDir()
		s := mustOpen(t, dir, noFloor)
		appendN(t, s, 1)
		if err := errors.Join(s.Close(), spoil(dir)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, "n1", noFloor); err == nil || !strings.Contains(err.Error(), "epoch") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, opt := range []Options{{SyncEvery: time.Second}, {QuotaBytes: -1}, {SegmentBytes: -1}} {
		if _, err := Open(t.TempDir(), "n1", opt); err == nil {
			t.Errorf("options %+v were taken", opt)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s := mustOpen(b, b.TempDir(), noFloor)
	body := &wire.TCPSample{Flow: "main", Local: "10.77.0.1:5000", Remote: "10.77.0.2:40000", State: "ESTABLISHED"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Append(wire.Header{Run: "r", Trial: 1, Attempt: 1}, body); err != nil {
			b.Fatal(err)
		}
	}
}

// A power cut may take back what was synced. A reader that has it would take records of the
// same numbers for it, and pass them over.
func TestNumbersThatAPowerCutTookBackAreNotGivenAgain(t *testing.T) {
	dir := t.TempDir()
	life := func(boot string) *Spool { return mustOpen(t, dir, Options{MinFreeBytes: -1, Boot: boot}) }
	s := life("one")
	appendN(t, s, 100)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = life("one")
	wantRange(t, seqs(t, s, 0, 1000), 1, 100)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentPath(dir, 1)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	var kept uint64
	for range 2 { // lives of the next boot, of which the first records nothing
		s = life("two")
		if kept = s.Position().Seq; kept < 40 || kept > 60 {
			t.Fatalf("of 100 records %d are left", kept)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s = life("two")
	appendN(t, s, 20)
	mustSync(t, s)
	wantRange(t, seqs(t, s, 100, 1000), kept+bootGap+1, kept+bootGap+20)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = life("two")
	appendN(t, s, 1)
	mustSync(t, s)
	wantRange(t, seqs(t, s, kept, 1000), kept+bootGap+1, kept+bootGap+21)
}

// A spool whose making was cut short begins with its first number, and not behind a gap.
func TestASpoolThatWasHardlyMadeHasNoGap(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{MinFreeBytes: -1, Boot: "one"})
	if err := errors.Join(s.Close(), os.Remove(filepath.Join(dir, bootFile))); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir, Options{MinFreeBytes: -1, Boot: "one"})
	defer s.Close()
	appendN(t, s, 3)
	mustSync(t, s)
	wantRange(t, seqs(t, s, 0, 10), 1, 3)
}

// A boot whose records are all lost in a power cut had numbers as well.
func TestNumbersOfABootWithoutRecordsAreNotGivenAgain(t *testing.T) {
	for name, lose := range map[string]func(path string, first os.FileInfo) error{
		"the records of the second boot": func(path string, first os.FileInfo) error {
			return os.Truncate(path, first.Size())
		},
		"all records": func(path string, _ os.FileInfo) error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, had := t.TempDir(), uint64(0)
			path := segmentPath(dir, 1)
			boot := func(name string, records int) {
				t.Helper()
				s := mustOpen(t, dir, Options{MinFreeBytes: -1, Boot: name})
				appendN(t, s, records)
				mustSync(t, s)
				if got := s.Position().Seq; got <= had {
					t.Errorf("boot %s: the newest number is %d, after %d", name, got, had)
				} else {
					had = got
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			boot("one", 50)
			first, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			boot("two", 20)
			if err := lose(path, first); err != nil {
				t.Fatal(err)
			}
			boot("three", 5)
		})
	}
}
