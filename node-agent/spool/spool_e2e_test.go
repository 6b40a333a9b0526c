//go:build e2e

package spool

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"golang.org/x/sys/unix"
)

// TestRealFullDisk fills a small tmpfs: the kernel's own ENOSPC, in the midst
// of a batch.
func TestRealFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small disk: run the tests with sudo")
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 128<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(disk, "spool")
	// Without the look at the disk, so that it is the write that fails.
	s, err := open(dir, "n1", Options{MinFreeBytes: -1, SegmentBytes: 20 << 10}, openSegmentFile,
		func(string) (int64, error) { return 1 << 40, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	appended := uint64(0)
	var full *FullError
	for full == nil && appended < 100_000 {
		_, err := s.Append(wire.Header{}, event(int(appended)))
		switch {
		case err == nil:
			appended++
		case !errors.As(err, &full):
			t.Fatal(err)
		}
		if appended%25 != 0 {
			continue
		}
		if err := s.Sync(t.Context()); err != nil && !errors.As(err, &full) {
			t.Fatal(err)
		}
	}
	if full == nil {
		t.Fatal("the disk never was full")
	}
	durable := s.Position().Seq
	t.Logf("%d appended, %d durable when it said: %v", appended, durable, full)
	wantRange(t, seqs(t, s, 0, 100), 1, durable)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), appended-1); err != nil {
		t.Fatal(err)
	}
	mustSync(t, s)
	if seq, err := s.Append(wire.Header{}, event(0)); err != nil || seq != appended+1 {
		t.Fatalf("after there is room: seq %d, %v", seq, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, dir, noFloor)
	if r := again.Recovered(); r.CutBytes != 0 || r.TornFile != "" || len(r.Damaged) > 0 {
		t.Errorf("damage: %+v", r)
	}
	wantRange(t, seqs(t, again, 0, 100), 1, appended+1)
}
