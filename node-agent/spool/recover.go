package spool

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/internal/sumline"
)

const (
	epochFile     = "epoch"
	confirmedFile = "confirmed"
	bootFile      = "boot"
	lockFile      = "lock"
	keepTornBytes = 1 << 20
	bootGap       = 1 << 24 // more than the records of a day
)

// lockFolder makes sure that no other process writes here.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock spool %q: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another process has it open")
		}
		return nil, errors.Join(fmt.Errorf("lock spool %q: %w", dir, err), f.Close())
	}
	return f, nil
}

// recover brings the folder into order and the newest segment to its last
// whole record.
func (s *Spool) recover() error {
	segments, err := listSegments(s.dir)
	if err != nil {
		return err
	}
	if s.epoch, err = readEpoch(s.dir, len(segments) > 0); err != nil {
		return err
	}
	if s.confirmed, err = readConfirmed(s.dir); err != nil {
		return err
	}
	if s.segments, err = dropUnbegun(segments); err != nil {
		return err
	}
	s.durable = s.confirmed.newest
	if len(s.segments) == 0 {
		if err := s.begin(s.durable + 1); err != nil {
			return err
		}
	} else if err := s.resume(s.segments[len(s.segments)-1]); err != nil {
		return err
	}
	for i, g := range s.segments {
		s.used += g.bytes
		if i+1 < len(s.segments) && s.wanted(i) {
			g.readRuns()
		}
	}
	s.next, err = s.firstOfBoot()
	return err
}

// firstOfBoot is the number of the next record. A disk that lied about its syncs goes back
// in a power cut, and what had been read meanwhile has the numbers that would come next: a
// boot keeps away from them. Its first number is on disk, for a life that records nothing.
func (s *Spool) firstOfBoot() (uint64, error) {
	next := s.durable + 1
	if s.opt.Boot == "" {
		return next, nil
	}
	path := filepath.Join(s.dir, bootFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read boot: %w", err)
	}
	var boot string
	var first uint64
	// What cannot be read is of another boot.
	if _, err := fmt.Sscanf(string(text), "%s %d\n", &boot, &first); err == nil && boot == s.opt.Boot {
		return max(next, first), nil
	}
	if next = max(next, first); s.durable > 0 || first > 0 {
		next += bootGap
	}
	if err := durable.Replace(path, fmt.Sprintf("%s %d\n", s.opt.Boot, next)); err != nil && !isFull(err) {
		return 0, fmt.Errorf("note the boot: %w", err)
	}
	return next, nil
}

// begin starts a segment. Its name must be on disk before its first record is
// called durable.
func (s *Spool) begin(first uint64) error {
	path := segmentPath(s.dir, first)
	f, err := s.openSegment(path)
	if err == nil {
		if err = durable.Folder(s.dir); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		// The segment before it goes on: its records must not be looked for here. What
		// stays is dropped by the next Open.
		_ = os.Remove(path)
		return fmt.Errorf("begin segment: %w", err)
	}
	s.live = f
	s.segments = append(s.segments, &segment{path: path, first: first, runs: map[string]uint64{}})
	return nil
}

// dropUnbegun drops what is left of segments that could not be begun, so that
// the one before went on: they are empty, and the record that they are named
// after is in that one.
func dropUnbegun(segments []*segment) ([]*segment, error) {
	var out []*segment
	for _, g := range segments {
		if g.bytes == 0 && len(out) > 0 {
			newest, err := out[len(out)-1].newest()
			if err == nil && g.first <= newest {
				if err = os.Remove(g.path); err == nil {
					continue
				}
			}
			if err != nil {
				return nil, err
			}
		}
		out = append(out, g)
	}
	return out, nil
}

// newest is the seq of the last record in a segment, 0 when there is none.
func (g *segment) newest() (newest uint64, err error) {
	_, err = span{g.path, 0, g.bytes}.scan(func(_ []byte, seq uint64, _ place) bool {
		newest = max(newest, seq)
		return true
	})
	return newest, err
}

// runsNote keeps, of a segment that is written no more, what would take long to read from it.
type runsNote struct {
	Bytes int64             `json:"bytes"` // length of the segment: a note of another one is not its own
	Runs  map[string]uint64 `json:"runs"`
}

func (g *segment) runsPath() string { return strings.TrimSuffix(g.path, segmentSuffix) + runsSuffix }

// noteRuns leaves a note for readRuns. It is not synced: where it is missing or torn, the segment is read.
func (g *segment) noteRuns() {
	if text, err := json.Marshal(runsNote{g.bytes, g.runs}); err == nil {
		_ = os.WriteFile(g.runsPath(), sumline.Append(nil, text), 0o600)
	}
}

// readRuns finds out of which runs a segment has records; if none can be read, that stays unknown. What was read beside
// damage is noted nowhere: another day more may be read.
func (g *segment) readRuns() {
	var note runsNote
	line, err := os.ReadFile(g.runsPath())
	if text, whole := sumline.Text(bytes.TrimSuffix(line, []byte("\n"))); err == nil && whole &&
		json.Unmarshal(text, &note) == nil && note.Bytes == g.bytes && note.Runs != nil {
		g.runs = note.Runs
		return
	}
	runs := map[string]uint64{}
	seen, err := span{g.path, 0, g.bytes}.scan(func(json []byte, seq uint64, _ place) bool {
		runs[runOf(json)] = seq
		return true
	})
	whole := seen.damaged == 0 && seen.after == 0
	if err == nil && (whole || len(runs) > 0) {
		g.runs = runs
	}
	if err == nil && whole {
		g.noteRuns()
	}
}

// resume opens the newest segment, cuts its torn tail, and finds the newest seq.
func (s *Spool) resume(g *segment) error {
	f, err := os.Open(g.path)
	if err != nil {
		return err
	}
	defer f.Close()
	newest := g.first - 1
	g.runs = map[string]uint64{}
	seen, err := scan(f, 0, func(json []byte, seq uint64, at place) bool {
		if at.damaged > 0 {
			s.recovery.Damaged = append(s.recovery.Damaged, damage(newest, at.damaged, json))
		}
		if r := reportIn(json); r != nil {
			s.reports = append(s.reports, *r)
		}
		newest = max(newest, seq)
		g.runs[runOf(json)] = seq
		g.note(seq, at.offset)
		return true
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", g.path, err)
	}
	s.durable = max(s.durable, newest)
	if s.live, err = s.openSegment(g.path); err != nil {
		return err
	}
	if g.bytes > seen.end {
		if err := s.cut(f, g, seen.end); err != nil {
			return errors.Join(fmt.Errorf("cut the torn tail of %s: %w", g.path, err), s.live.Close())
		}
	}
	// What is reported as durable must be so: a process that died may have
	// written the last lines without having synced them.
	if err := s.live.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync %s: %w", g.path, err), s.live.Close())
	}
	return nil
}

// cut puts the bytes after end aside, for whoever wonders, and drops them. A
// full disk must not keep a spool from opening, so the copy is not a must.
func (s *Spool) cut(f *os.File, g *segment, end int64) error {
	s.recovery.CutBytes = g.bytes - end
	torn := fmt.Sprintf("%s@%d%s", strings.TrimSuffix(g.path, segmentSuffix), end, tornSuffix)
	tail := make([]byte, min(g.bytes-end, keepTornBytes))
	if _, err := f.ReadAt(tail, end); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := os.WriteFile(torn, tail, 0o600); err == nil {
		s.recovery.TornFile = torn
	} else if !isFull(err) {
		return err
	} else if err := os.Remove(torn); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.live.Truncate(end); err != nil {
		return err
	}
	g.bytes = end
	return nil
}

func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []*segment
	for _, e := range entries {
		first, ok := parseSegmentName(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		out = append(out, &segment{path: filepath.Join(dir, e.Name()), first: first, bytes: info.Size()})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].first < out[j].first })
	return out, nil
}

// readEpoch reads the spool's epoch, or draws one for a new spool.
func readEpoch(dir string, hasSegments bool) (string, error) {
	path := filepath.Join(dir, epochFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !hasSegments {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return "", fmt.Errorf("draw an epoch: %w", err)
		}
		epoch := hex.EncodeToString(random[:])
		return epoch, durable.Replace(path, epoch+"\n")
	}
	if err != nil {
		return "", fmt.Errorf("read epoch: %w; if the file is lost, move the folder away and start again", err)
	}
	epoch := strings.TrimSuffix(string(text), "\n")
	if raw, err := hex.DecodeString(epoch); err != nil || len(raw) != 8 {
		return "", fmt.Errorf("read epoch: %q is not 16 hexadecimal digits; move the folder away and start again",
			epoch)
	}
	return epoch, nil
}
