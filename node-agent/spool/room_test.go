package spool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"golang.org/x/sys/unix"
)

// faultyDisk fails every write after room more bytes while err is set.
type faultyDisk struct {
	mu   sync.Mutex
	err  error
	room int
	free int64
	sync bool // fail in Sync instead, after the write was taken
}

func (d *faultyDisk) set(err error, room int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.room = err, room
}

func (d *faultyDisk) open(t testing.TB, dir string, opt Options) *Spool {
	t.Helper()
	d.free = 1 << 40
	s, err := open(dir, "n1", opt, func(path string) (file, error) {
		f, err := openSegmentFile(path)
		return faultyFile{f, d}, err
	}, func(string) (int64, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.free, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

type faultyFile struct {
	file
	disk *faultyDisk
}

func (f faultyFile) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.err == nil || f.disk.sync || len(p) <= f.disk.room {
		return f.file.WriteAt(p, off)
	}
	n, err := f.file.WriteAt(p[:f.disk.room], off)
	return n, errors.Join(f.disk.err, err)
}

func (f faultyFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.sync && f.disk.err != nil {
		return f.disk.err
	}
	return f.file.Sync()
}

func TestFullDiskLosesNothingAndRecovers(t *testing.T) {
	for _, inSync := range []bool{false, true} {
		dir := t.TempDir()
		d := &faultyDisk{sync: inSync}
		s := d.open(t, dir, noFloor)
		appendN(t, s, 10)
		mustSync(t, s)
		d.set(unix.ENOSPC, 37) // in the midst of a line
		appendN(t, s, 5)
		err := s.Sync(t.Context())
		var full *FullError
		if !errors.As(err, &full) || !errors.Is(err, unix.ENOSPC) || !strings.Contains(full.Cure, dir) {
			t.Fatalf("sync on a full disk: %v", err)
		}
		if s.Position().Seq != 10 {
			t.Errorf("durable to %d on a full disk", s.Position().Seq)
		}
		if _, err := s.Append(wire.Header{}, event(0)); !errors.As(err, &full) {
			t.Errorf("append on a full disk: %v", err)
		}
		if err := s.CheckRoom(1); !errors.As(err, &full) {
			t.Errorf("room on a full disk: %v", err)
		}
		wantRange(t, seqs(t, s, 0, 100), 1, 10)
		d.set(nil, 0)
		// No call makes it recover: the flusher tries again by itself.
		if err := s.Wait(t.Context(), 14); err != nil {
			t.Fatal(err)
		}
		mustSync(t, s)
		appendN(t, s, 1)
		mustSync(t, s)
		wantRange(t, seqs(t, s, 0, 100), 1, 16)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again := mustOpen(t, dir, noFloor)
		if r := again.Recovered(); r.CutBytes != 0 || r.TornFile != "" || len(r.Damaged) > 0 {
			t.Errorf("a segment written on a full disk was damaged: %+v", r)
		}
		wantRange(t, seqs(t, again, 0, 100), 1, 16)
	}
}

func TestCrashOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	d := &faultyDisk{}
	s := d.open(t, dir, noFloor)
	appendN(t, s, 3)
	mustSync(t, s)
	d.set(unix.ENOSPC, 11)
	appendN(t, s, 3)
	if err := s.Close(); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("Close says nothing of what it could not write: %v", err)
	}
	wantRange(t, seqs(t, mustOpen(t, dir, noFloor), 0, 10), 1, 3)
}

func TestQuotaRefusesAndConfirmFrees(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{QuotaBytes: 20_000, SegmentBytes: 2_000, MinFreeBytes: -1})
	n := 0
	var full *FullError
	for ; n < 1000; n++ {
		if _, err := s.Append(wire.Header{}, event(n)); errors.As(err, &full) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n%10 == 0 {
			mustSync(t, s)
		}
	}
	if full == nil || full.NeededBytes <= full.FreeBytes || !strings.Contains(full.Cure, "quota") {
		t.Fatalf("after %d records: %+v", n, full)
	}
	mustSync(t, s)
	wantRange(t, seqs(t, s, 0, 100), 1, uint64(n))
	if err := s.CheckRoom(5_000); !errors.As(err, &full) || full.NeededBytes != 5_000 {
		t.Errorf("room for 5000: %v", err)
	}
	if st := s.Status(); st.UsedBytes > st.QuotaBytes || st.Oldest != 1 || st.Newest.Seq != uint64(n) {
		t.Errorf("status %+v", st)
	}
	if err := confirm(s, "r", uint64(n)+1); err == nil {
		t.Error("a record that does not exist was confirmed")
	}
	if err := confirm(s, "r", uint64(n)-2); err != nil {
		t.Fatal(err)
	}
	st := s.Status()
	if st.UsedBytes > st.QuotaBytes/2 || st.Oldest == 1 || st.Oldest > uint64(n)-1 {
		t.Errorf("after confirm: %+v", st)
	}
	wantRange(t, seqs(t, s, 0, 100), st.Oldest, uint64(n))
	if err := s.CheckRoom(5_000); err != nil {
		t.Error(err)
	}
	appendN(t, s, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, dir, noFloor)
	wantRange(t, seqs(t, again, 0, 100), st.Oldest, uint64(n)+10)
}

func TestConfirmKeepsRecordsUnderHalfTheQuota(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{QuotaBytes: 1 << 20, SegmentBytes: 500, MinFreeBytes: -1})
	appendN(t, s, 50)
	mustSync(t, s)
	if err := confirm(s, "r", 50); err != nil {
		t.Fatal(err)
	}
	wantRange(t, seqs(t, s, 0, 100), 1, 50)
}

func TestShortDiskRefusesUntilThereIsRoom(t *testing.T) {
	d := &faultyDisk{}
	dir := t.TempDir()
	s := d.open(t, dir, Options{MinFreeBytes: 1000, SegmentBytes: 300})
	appendN(t, s, 4)
	mustSync(t, s)
	setFree := func(n int64) { d.mu.Lock(); defer d.mu.Unlock(); d.free = n }
	setFree(1010)
	mustSync(t, s)
	var full *FullError
	if _, err := s.Append(wire.Header{}, event(0)); !errors.As(err, &full) ||
		!strings.Contains(full.Cure, "make room on the disk") {
		t.Fatalf("append on a short disk: %v", err)
	}
	setFree(1 << 20)
	appendN(t, s, 1)
	mustSync(t, s)
	wantRange(t, seqs(t, s, 0, 100), 1, 5)
}

// What is confirmed makes room for a trial that would not fit otherwise, and not before.
func TestConfirmedRecordsMakeRoomForATrial(t *testing.T) {
	d := &faultyDisk{}
	s := d.open(t, t.TempDir(), Options{MinFreeBytes: 1000, SegmentBytes: 300})
	for range 20 {
		appendN(t, s, 1)
		mustSync(t, s)
	}
	if err := confirm(s, "r", 10); err != nil {
		t.Fatal(err)
	}
	st := s.Status()
	if st.Oldest != 1 {
		t.Errorf("the oldest record is %d while there is room", st.Oldest)
	}
	// By the quota, which is the lesser: ten of the twenty could go.
	if taken := st.QuotaBytes - *st.RoomBytes; taken >= st.UsedBytes || taken <= st.UsedBytes/4 {
		t.Errorf("room for %d bytes of a quota of %d, of which %d are used", *st.RoomBytes, st.QuotaBytes, st.UsedBytes)
	}
	d.mu.Lock()
	d.free = 1500
	d.mu.Unlock()
	var full *FullError
	if err := s.CheckRoom(3000); !errors.As(err, &full) {
		t.Errorf("room beside records that nobody else has: %v", err)
	}
	if st := s.Status(); st.FreeBytes != 1500 || *st.RoomBytes != 500 {
		t.Errorf("room for %d bytes on a disk with %d free, of which 1000 are others'", *st.RoomBytes, st.FreeBytes)
	}
	if at := s.Status().Oldest; at <= 1 || at > 11 {
		t.Errorf("the oldest record is %d, want one of the first that is not confirmed", at)
	}
	if err := confirm(s, "r", 20); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.Oldest > 11 || *st.RoomBytes <= 500 {
		t.Errorf("room for %d bytes with the oldest record %d: what may go is not counted", *st.RoomBytes, st.Oldest)
	}
	if err := s.CheckRoom(600); err != nil {
		t.Error(err)
	}
	if at := s.Status().Oldest; at <= 11 {
		t.Errorf("the oldest record is %d still", at)
	}
}

// The nodes of a rehearsal share a disk: what one keeps though the controller has it
// leaves no room for another's trial.
func TestConfirmedRecordsLeaveASharedDiskToOthers(t *testing.T) {
	d := &faultyDisk{}
	s := d.open(t, t.TempDir(), Options{QuotaBytes: 100_000, KeptBytes: -1, MinFreeBytes: 1000, SegmentBytes: 300})
	appendN(t, s, 20)
	mustSync(t, s)
	if err := confirm(s, "r", 20); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.UsedBytes > 300+200 {
		t.Errorf("%d bytes are held of which the controller has all", st.UsedBytes)
	}
}

func TestSeqGoesOnAfterEverythingWasDropped(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, noFloor)
	appendN(t, s, 9)
	mustSync(t, s)
	if err := errors.Join(confirm(s, "r", 9), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, g := range s.segments {
		if err := os.Remove(g.path); err != nil {
			t.Fatal(err)
		}
	}
	// A seq given twice would make the controller drop the second as known.
	again := mustOpen(t, dir, noFloor)
	if seq, err := again.Append(wire.Header{}, event(0)); seq != 10 || err != nil {
		t.Errorf("next seq %d, error %v", seq, err)
	}
	if _, err := os.Stat(filepath.Join(dir, confirmedFile)); err != nil {
		t.Error(err)
	}
}

// A segment that cannot be begun leaves no file, or its name would say that the records
// after it are in it.
func TestASegmentThatCannotBeBegunLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	opt := Options{MinFreeBytes: -1, SegmentBytes: 600, QuotaBytes: 1 << 20}
	fails := false
	s, err := open(dir, "n1", opt, func(path string) (file, error) {
		f, err := openSegmentFile(path)
		if fails { // as when the folder cannot be synced
			return nil, errors.Join(unix.ENOSPC, f.Close())
		}
		return f, err
	}, func(string) (int64, error) { return 1 << 40, nil })
	if err != nil {
		t.Fatal(err)
	}
	fails = true
	appendN(t, s, 8)
	mustSync(t, s)
	fails = false
	appendN(t, s, 5)
	mustSync(t, s)
	wantRange(t, seqs(t, s, 8, 100), 9, 13)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantRange(t, seqs(t, mustOpen(t, dir, opt), 8, 100), 9, 13)
}

// An empty segment whose first record is in the one before it is what a kill has left of a
// segment that could not be begun.
func TestAnEmptySegmentAmongOthersIsDropped(t *testing.T) {
	for _, segmentBytes := range []int64{1 << 20, 600} { // the newest segment, and one between others
		dir := t.TempDir()
		opt := Options{MinFreeBytes: -1, SegmentBytes: segmentBytes, QuotaBytes: 1 << 20}
		s := mustOpen(t, dir, opt)
		appendN(t, s, 13)
		mustSync(t, s)
		appendN(t, s, 3)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(segmentPath(dir, 9), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, dir, opt)
		wantRange(t, seqs(t, s, 8, 100), 9, 16)
		appendN(t, s, 2)
		mustSync(t, s)
		wantRange(t, seqs(t, s, 0, 100), 1, 18)
	}
}
