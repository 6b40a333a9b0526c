package spool

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"
)

// keepBufferBytes bounds the buffer that is kept for reuse after a burst.
const keepBufferBytes = 1 << 20

// run is the flusher: the only goroutine that writes segments. It ends with Close.
func (s *Spool) run() {
	defer close(s.stopped)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	armed := false
	for {
		select {
		case <-s.stop:
			s.flush() // its error is kept in failure, which Close returns
			return
		case reply := <-s.requests:
			err := s.flush()
			reply <- err
			if err == nil {
				continue
			}
		case <-s.wake:
		case <-timer.C:
			armed = false
			if s.flush() == nil {
				continue
			}
		}
		if !armed {
			timer.Reset(s.opt.SyncEvery)
			armed = true
		}
	}
}

// flush makes durable what is pending. When it cannot, the segment is as
// before, the records stay pending, and Append refuses more until a later
// flush succeeds.
func (s *Spool) flush() error {
	s.mu.Lock()
	batch, newest := s.pending, s.next-1
	s.pending, s.spare = s.spare[:0], nil // Append goes on in the other buffer
	runs := s.runs
	s.runs, s.written = map[string]uint64{}, runs
	s.flushing = int64(len(batch))
	g := s.segments[len(s.segments)-1]
	s.mu.Unlock()

	err := s.write(g, batch)
	free, freeErr := s.diskFree(s.dir)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushing, s.written = 0, nil
	if freeErr == nil {
		s.free = free
	}
	if err != nil {
		// Append may have gone on while the disk was being written.
		s.pending = append(batch, s.pending...)
		maps.Copy(runs, s.runs)
		s.runs = runs
		s.failure = s.explain(err, int64(len(s.pending)))
		return s.failure
	}
	s.failure = freeErr
	if cap(batch) <= keepBufferBytes {
		s.spare = batch
	}
	if len(batch) > 0 {
		g.note(s.durable+1, g.bytes)
		g.bytes += int64(len(batch))
		s.used += int64(len(batch))
		maps.Copy(g.runs, runs)
		s.durable = newest
		s.announce()
	}
	if g.bytes >= s.opt.SegmentBytes {
		s.failure = errors.Join(s.failure, s.rotate())
	}
	return s.failure
}

// write puts a batch at the segment's durable end and syncs it. After a
// failure the kernel may hold any part of it, and may have forgotten that it
// was never written (fsync reports an error once), so the next attempt cuts
// the file back and writes all of it again.
func (s *Spool) write(g *segment, batch []byte) error {
	if s.unclean {
		if err := s.live.Truncate(g.bytes); err != nil {
			return fmt.Errorf("cut segment back: %w", err)
		}
		s.unclean = false
	}
	if len(batch) == 0 {
		return nil
	}
	s.unclean = true
	if _, err := s.live.WriteAt(batch, g.bytes); err != nil {
		// Given back at once: on a full disk even these bytes count.
		return errors.Join(fmt.Errorf("write segment: %w", err), s.live.Truncate(g.bytes))
	}
	if err := s.live.Sync(); err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	s.unclean = false
	return nil
}

// rotate begins a new segment; when the disk has no room for one, the old one
// goes on. mu is held, and all of the live segment is durable.
func (s *Spool) rotate() error {
	old := s.live
	if err := s.begin(s.durable + 1); err != nil {
		if isFull(err) {
			return nil
		}
		return err
	}
	s.segments[len(s.segments)-2].noteRuns()
	s.trim(0)
	return old.Close()
}

// explain turns a disk's refusal into an error that names the cure.
func (s *Spool) explain(err error, need int64) error {
	if !isFull(err) {
		return err
	}
	return errors.Join(&FullError{NeededBytes: need, FreeBytes: 0, Cure: s.diskCure()}, err) // whatever statfs says
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
