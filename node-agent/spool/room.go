package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"golang.org/x/sys/unix"
)

// FullError says that the spool has no room, and what would give it some.
type FullError struct {
	NeededBytes int64
	FreeBytes   int64
	Cure        string
}

func (e *FullError) Error() string {
	if e.FreeBytes == 0 {
		return "spool is full: " + e.Cure
	}
	return fmt.Sprintf("spool has room for %s, %s are needed: %s", amount(e.FreeBytes), amount(e.NeededBytes), e.Cure)
}

// amount words a number of bytes for a person; MB is 10^6.
func amount(bytes int64) string {
	if bytes < 1e5 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// Status is how full the spool is. Oldest is the seq of the oldest record
// that may still be held.
func (s *Spool) Status() wire.SpoolStatus {
	free, err := s.diskFree(s.dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.free = free
	}
	return wire.SpoolStatus{
		Newest:     wire.SpoolPosition{Epoch: s.epoch, Seq: s.durable},
		Oldest:     s.segments[0].first,
		UsedBytes:  s.taken(),
		QuotaBytes: s.opt.QuotaBytes,
		FreeBytes:  s.free,
		RoomBytes:  new(max(s.left()+s.droppable(), 0)),

		UnconfirmedRuns: s.unconfirmed(),
	}
}

// droppable is what trim could free. mu is held.
func (s *Spool) droppable() (bytes int64) {
	for i, g := range s.segments[:len(s.segments)-1] {
		if !s.wanted(i) {
			bytes += g.bytes
		}
	}
	return bytes
}

// CheckRoom says, with a *FullError, when needBytes more cannot be taken.
func (s *Spool) CheckRoom(needBytes int64) error {
	free, err := s.diskFree(s.dir)
	if err != nil {
		return fmt.Errorf("look at the disk of spool %q: %w", s.dir, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = free
	if s.closed {
		return ErrClosed
	}
	if s.failure != nil {
		return s.failure
	}
	return s.room(needBytes)
}

// taken is what counts against the quota. mu is held.
func (s *Spool) taken() int64 { return s.used + s.flushing + int64(len(s.pending)) }

// room makes room for need bytes if it can, else says what is short. mu is held.
func (s *Spool) room(need int64) error {
	if s.left() < need {
		// Nothing is flushed while Append refuses, so nobody else looks.
		if free, err := s.diskFree(s.dir); err == nil {
			s.free = free
		}
		s.trim(need)
	}
	if byQuota := s.opt.QuotaBytes - s.taken(); byQuota < need {
		return &FullError{NeededBytes: need, FreeBytes: max(byQuota, 0), Cure: s.quotaCure()}
	}
	if left := s.left(); left < need {
		return &FullError{NeededBytes: need, FreeBytes: max(left, 0), Cure: s.diskCure()}
	}
	return nil
}

// left is the room by quota and disk. mu is held.
func (s *Spool) left() int64 {
	byDisk := s.free - s.opt.MinFreeBytes - s.flushing - int64(len(s.pending))
	return min(s.opt.QuotaBytes-s.taken(), byDisk)
}

// quotaCure names the oldest of the runs that fill the spool. mu is held.
func (s *Spool) quotaCure() string {
	raise := fmt.Sprintf("raise the spool's quota of %s", amount(s.opt.QuotaBytes))
	for i, g := range s.segments[:len(s.segments)-1] {
		if g.runs == nil && s.wanted(i) {
			raise = fmt.Sprintf("move %s away, which cannot be read, and start the agent again, or %s", g.path, raise)
			break
		}
	}
	runs := s.unconfirmed()
	if len(runs) == 0 {
		return raise
	}
	others := ""
	if n := len(runs) - 1; n > 0 {
		others = fmt.Sprintf(", the oldest of %d such runs,", n+1)
	}
	return fmt.Sprintf("let the controller collect and confirm the records of run %s%s in %s (fieldmesh run --resume "+
		"%[1]s; if nobody wants them, fieldmesh nodes forget %[1]s), or %[4]s", runs[0], others, s.dir, raise)
}

func (s *Spool) diskCure() string {
	return fmt.Sprintf("make room on the disk of %s (%s of it are kept free for others)", s.dir,
		amount(s.opt.MinFreeBytes))
}

// trim drops the oldest segments whose records are all confirmed, while the spool is larger
// than KeptBytes, the disk is short, or there is no room for need bytes. mu is held.
func (s *Spool) trim(need int64) {
	for i := 0; i < len(s.segments)-1; {
		if s.taken() <= s.opt.KeptBytes && s.free > s.opt.MinFreeBytes && s.left() >= need {
			return
		}
		g := s.segments[i]
		if s.wanted(i) {
			i++
			continue
		}
		_ = os.Remove(g.runsPath())
		// What cannot be removed stays, counts, and is tried again.
		if err := os.Remove(g.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
		s.removeTorn(g)
		s.segments = slices.Delete(s.segments, i, i+1)
		s.used -= g.bytes
		s.free += g.bytes
	}
}

// removeTorn drops what was put aside from a segment that is gone. What stays
// is bounded by the next trim and harms nobody, so errors do not matter.
func (s *Spool) removeTorn(g *segment) {
	torn, err := filepath.Glob(strings.TrimSuffix(g.path, segmentSuffix) + "@*" + tornSuffix)
	if err != nil {
		return
	}
	for _, path := range torn {
		_ = os.Remove(path)
	}
}

// diskFree is the space that an unprivileged process may still take.
func diskFree(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("statfs %q: %w", dir, err)
	}
	return int64(min(st.Bavail, 1<<40)) * int64(st.Bsize), nil // int32 on 32-bit machines
}
