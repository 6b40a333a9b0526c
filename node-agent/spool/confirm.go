package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// confirmed is what controllers have confirmed, and so may be dropped. A controller
// answers for the records of its own run: those of another may be in no archive yet.
type confirmed struct {
	all    uint64            // all records up to this one
	newest uint64            // the newest that was confirmed in any run; records of no run may be dropped up to it
	runs   map[string]uint64 // run → its records up to this one, or everything
}

// everything stands for a run that is over: also what it may still record outside attempts.
const everything = math.MaxUint64

func (c confirmed) has(run string, seq uint64) bool {
	if run == "" {
		return seq <= c.newest
	}
	return seq <= max(c.all, c.runs[run])
}

// Confirm says that the controller of a run has every record of it up to a seq; with seq 0, that nobody has any or
// wants any. Whole segments of such records are dropped once the spool is larger than KeptBytes.
func (s *Spool) Confirm(c wire.Confirmation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	upTo := c.Seq
	if c.Over {
		upTo = everything
	}
	switch {
	case s.closed:
		return ErrClosed
	case c.Seq > s.durable:
		return fmt.Errorf("confirm record %d: the newest is %d", c.Seq, s.durable)
	case s.confirmed.has(c.Run, upTo) && c.Seq <= s.confirmed.newest:
		return nil
	}
	s.confirmed.runs[c.Run] = max(s.confirmed.runs[c.Run], upTo)
	newest := c.Seq
	if newest == 0 && len(s.unconfirmed()) == 0 {
		newest = s.durable // no run is left whose controller would collect what is of no run beside its own
	}
	s.confirmed.newest = max(s.confirmed.newest, newest)
	// Room first: on a full disk the note below cannot be written without it.
	s.trim(0)
	s.condense(c.Run)
	if err := s.noteConfirmed(); err != nil {
		return fmt.Errorf("note that record %d of run %s is confirmed: %w", c.Seq, c.Run, err)
	}
	return nil
}

// IsOver reports whether a run is known to be over. Of one that was over and has left nothing here it is not known.
func (s *Spool) IsOver(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.confirmed.runs[run] == everything
}

// condense forgets what need not be known by run any more, but not of the run that is named. mu is held.
func (s *Spool) condense(but string) {
	for i := range s.segments[:len(s.segments)-1] {
		if s.wanted(i) {
			break
		}
		s.confirmed.all = max(s.confirmed.all, s.segments[i+1].first-1)
	}
	held := maps.Clone(s.runs)
	maps.Copy(held, s.written)
	for _, g := range s.segments {
		maps.Copy(held, g.runs)
	}
	maps.DeleteFunc(s.confirmed.runs, func(run string, seq uint64) bool {
		return run != but && (held[run] == 0 || seq <= s.confirmed.all)
	})
}

// Reopen has a run that was over go on: what it records from now on is waited for.
func (s *Spool) Reopen(run string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reopen(run)
}

// reopen notes what is durable: of later numbers, a crash may give some to other records. mu is held.
func (s *Spool) reopen(run string) error {
	if s.closed || s.confirmed.runs[run] != everything {
		return nil
	}
	s.confirmed.runs[run] = s.durable
	// Room first, as above; nobody may have looked at the disk for long.
	if free, err := s.diskFree(s.dir); err == nil {
		s.free = free
	}
	s.trim(0)
	if err := s.noteConfirmed(); err != nil {
		s.confirmed.runs[run] = everything // it is tried again
		return fmt.Errorf("note that run %s goes on: %w", run, err)
	}
	return nil
}

// wanted reports whether a segment that is not the newest has records that nobody may have yet, or damage that nobody
// may know of. mu is held.
func (s *Spool) wanted(i int) bool {
	g, last := s.segments[i], s.segments[i+1].first-1
	if g.told != nil && !s.confirmed.has(g.told.Run, g.told.Seq) {
		return true
	}
	if last <= s.confirmed.all || g.runs == nil {
		return last > s.confirmed.all
	}
	for run, seq := range g.runs {
		if !s.confirmed.has(run, seq) {
			return true
		}
	}
	return false
}

// unconfirmed lists the runs of which a segment has records that are not confirmed, oldest first. mu is held.
func (s *Spool) unconfirmed() []string {
	out := []string{}
	for _, g := range s.segments {
		for _, run := range slices.Sorted(maps.Keys(g.runs)) {
			if run != "" && !s.confirmed.has(run, g.runs[run]) && !slices.Contains(out, run) {
				out = append(out, run)
			}
		}
	}
	return out
}

// noteConfirmed writes what is confirmed: a line with the seqs of all and newest, then one of each
// run and its seq. A former version wrote one seq, of all runs. mu is held.
func (s *Spool) noteConfirmed() error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d\n", s.confirmed.all, s.confirmed.newest)
	for _, run := range slices.Sorted(maps.Keys(s.confirmed.runs)) {
		fmt.Fprintf(&b, "%s %d\n", run, s.confirmed.runs[run])
	}
	return s.explain(durable.Replace(filepath.Join(s.dir, confirmedFile), b.String()), int64(b.Len()))
}

// readConfirmed reads what is confirmed. A damaged file only means that segments are kept longer.
func readConfirmed(dir string) (confirmed, error) {
	none := confirmed{runs: map[string]uint64{}}
	text, err := os.ReadFile(filepath.Join(dir, confirmedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read confirmed: %w", err)
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	all, newest, both := strings.Cut(first, " ")
	if !both {
		newest = all
	}
	c := confirmed{runs: map[string]uint64{}}
	var errAll, errNewest error
	c.all, errAll = strconv.ParseUint(all, 10, 64)
	c.newest, errNewest = strconv.ParseUint(newest, 10, 64)
	if errAll != nil || errNewest != nil {
		return none, nil
	}
	for line := range strings.Lines(rest) {
		run, digits, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if c.runs[run], err = strconv.ParseUint(digits, 10, 64); err != nil {
			return none, nil
		}
	}
	return c, nil
}
