package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// readBytes bounds one Read; at least one record is given however long it is.
const readBytes = 4 << 20

// Read returns up to limit durable records newer than after, oldest first, as
// JSON without a line feed, and the seq to go on from. Records that were
// confirmed and dropped are passed over, and so are damaged ones, of which Damaged is told.
func (s *Spool) Read(after uint64, limit int) (lines [][]byte, last uint64, err error) {
	if limit <= 0 {
		return nil, after, nil
	}
	// A segment can be dropped between the look and the reading; what it held
	// was confirmed, so a second look begins after it.
	var holes []Damage
	for range 3 {
		lines, last, holes, err = s.read(after, limit)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, after, fmt.Errorf("read spool %q: %w", s.dir, err)
	}
	s.tell(holes)
	return lines, last, nil
}

func (s *Spool) read(after uint64, limit int) (lines [][]byte, last uint64, holes []Damage, err error) {
	s.mu.Lock()
	durable, closed := s.durable, s.closed
	spans := s.spans(after)
	s.mu.Unlock()
	if closed {
		return nil, after, nil, ErrClosed
	}
	if after >= durable {
		return nil, after, nil, nil
	}
	size, damaged := 0, 0 // the latter since the last good line
	last = after
	for _, p := range spans {
		full := false
		seen, err := p.scan(func(json []byte, seq uint64, at place) bool {
			damaged += at.damaged
			if seq > last && damaged > 0 {
				holes = append(holes, damage(last, damaged, json))
			}
			damaged = 0
			if seq <= last {
				return true
			}
			lines, last, size = append(lines, bytes.Clone(json)), seq, size+len(json)
			full = len(lines) >= limit || size >= readBytes
			return !full
		})
		if err != nil {
			return nil, after, nil, err
		}
		if full {
			return lines, last, holes, nil
		}
		damaged += seen.after
	}
	// Everything durable was looked at, so a damaged end is passed over too:
	// whoever waits for news must not be sent back to it for ever.
	return lines, max(last, durable), holes, nil
}

// span is the part of a segment that a reader has to look at.
type span struct {
	path     string
	from, to int64
}

// spans lists where durable records newer than after are. mu is held.
func (s *Spool) spans(after uint64) []span {
	var out []span
	for i, g := range s.segments {
		if i+1 < len(s.segments) && s.segments[i+1].first <= after+1 {
			continue
		}
		out = append(out, span{g.path, g.before(after), g.bytes})
	}
	return out
}

// scan calls visit with every good line of the span in turn until visit says false.
func (p span) scan(visit func(json []byte, seq uint64, at place) bool) (scanned, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return scanned{}, err
	}
	defer f.Close()
	return scan(io.NewSectionReader(f, p.from, p.to-p.from), p.from, visit)
}
