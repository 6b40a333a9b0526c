package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// write is one write that reached a segment, in the order in which it did.
type write struct {
	path   string
	offset int64
	data   []byte
}

// recorder notes every write and which seq was durable after it.
type recorder struct{ writes []write }

type recordedFile struct {
	file
	path string
	r    *recorder
}

func (f recordedFile) WriteAt(p []byte, off int64) (int, error) {
	f.r.writes = append(f.r.writes, write{f.path, off, bytes.Clone(p)})
	return f.file.WriteAt(p, off)
}

// TestReplayFromEveryPrefix cuts the sequence of written bytes at each byte,
// opens what a crash there would have left, and wants every whole record,
// nothing else, and a spool that goes on.
func TestReplayFromEveryPrefix(t *testing.T) {
	var rec recorder
	dir := t.TempDir()
	opt := Options{QuotaBytes: 1 << 20, SegmentBytes: 700, MinFreeBytes: -1}
	s, err := open(dir, "n1", opt, func(path string) (file, error) {
		f, err := openSegmentFile(path)
		return recordedFile{f, filepath.Base(path), &rec}, err
	}, diskFree)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		appendN(t, s, 3)
		mustSync(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	epoch, err := os.ReadFile(filepath.Join(dir, epochFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.segments) < 2 {
		t.Fatalf("only %d segments: rotation is not covered", len(s.segments))
	}
	scratch := t.TempDir()
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		if scratch, err = os.MkdirTemp("/dev/shm", "spool-replay-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(scratch) })
	}
	prefixes := 0
	for w := range rec.writes {
		for cut := 0; cut <= len(rec.writes[w].data); cut++ {
			prefixes++
			replay(t, filepath.Join(scratch, fmt.Sprint(prefixes)), epoch, opt, rec.writes, w, cut)
		}
	}
	t.Logf("%d prefixes over %d writes and %d segments", prefixes, len(rec.writes), len(s.segments))
}

// replay opens the state after all writes before w and cut bytes of w.
func replay(t *testing.T, dir string, epoch []byte, opt Options, writes []write, w, cut int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for i, one := range writes[:w+1] {
		data := one.data
		if i == w {
			data = data[:cut]
		}
		files[one.path] = append(files[one.path][:one.offset:one.offset], data...)
	}
	whole, tornBytes := 0, 0
	for name, data := range files {
		end := bytes.LastIndexByte(data, '\n') + 1
		whole += bytes.Count(data, []byte("\n"))
		tornBytes += len(data) - end
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, epochFile), epoch, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, "n1", opt)
	if err != nil {
		t.Fatalf("write %d, byte %d: %v", w, cut, err)
	}
	if got := s.Recovered(); got.CutBytes != int64(tornBytes) || len(got.Damaged) != 0 || (got.TornFile != "") !=
		(tornBytes > 0) {
		t.Fatalf("write %d, byte %d: recovered %+v, %d bytes are torn", w, cut, got, tornBytes)
	}
	wantRange(t, seqs(t, s, 0, 100), 1, uint64(whole))
	appendN(t, s, 1)
	mustSync(t, s)
	wantRange(t, seqs(t, s, 0, 100), 1, uint64(whole)+1)
	if err := errors.Join(s.Close(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
}

// TestACorruptByteCostsOneRecord flips each byte of the newest segment in
// turn: at most the records that it touches are lost.
func TestACorruptByteCostsOneRecord(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, noFloor)
	const records = 5
	appendN(t, s, records)
	mustSync(t, s)
	path := s.segments[0].path
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x15
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, "n1", noFloor)
		if err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		got := seqs(t, s, 0, 100)
		least := records - 1
		if good[i] == '\n' {
			least-- // two lines have become one
		}
		if len(got) < least || len(got) > records-1 {
			t.Fatalf("byte %d (%q): records %v are left", i, good[i], got)
		}
		if last, want := s.Position().Seq, got[len(got)-1]; last != want {
			t.Fatalf("byte %d: position %d, last record %d", i, last, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadPassesOverDamageInAnOldSegment also ends at the newest record, so
// that whoever tails the spool is not sent round in a circle.
func TestReadPassesOverDamageInAnOldSegment(t *testing.T) {
	dir := t.TempDir()
	opt := Options{QuotaBytes: 1 << 20, SegmentBytes: 400, MinFreeBytes: -1}
	s := mustOpen(t, dir, opt)
	for range 6 {
		appendN(t, s, 2)
		mustSync(t, s)
	}
	g := s.segments[0]
	data, err := os.ReadFile(g.path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-20] ^= 1
	if err := os.WriteFile(g.path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got := seqs(t, s, 0, 2)
	if len(got) != 11 || got[len(got)-1] != 12 {
		t.Errorf("read %v", got)
	}
	live := s.segments[len(s.segments)-1]
	if live.bytes == 0 {
		appendN(t, s, 1)
		mustSync(t, s)
	}
	if err := os.WriteFile(live.path, bytes.Repeat([]byte{0}, int(live.bytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	after := live.first - 1
	if lines, last, err := s.Read(after, 10); len(lines) != 0 || last != s.Position().Seq || err != nil {
		t.Errorf("damaged end: %d lines, last %d, error %v", len(lines), last, err)
	}
}
