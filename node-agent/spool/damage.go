package spool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Damage is records that were durable and are lost: lines whose checksum does not hold. That is the disk's fault.
type Damage struct {
	After uint64      // seq of the good record before the first of them, or that a reader went on from
	Next  wire.Header // of the first good record after the last of them
	Lines int         // how many; a damaged line feed makes one of two
}

const areLost = "are lost: the spool's lines that are damaged on the disk"

func (d Damage) String() string {
	return fmt.Sprintf("records after %d and before %d %s: %d", d.After, d.Next.Seq, areLost, d.Lines)
}

// damage is what lies between a good record and the next, whose line is given.
func damage(after uint64, lines int, next []byte) Damage {
	d := Damage{After: after, Lines: lines}
	if json.Unmarshal(next, &d.Next) != nil {
		d.Next.Seq, _ = seqOf(next) // its checksum holds: it is of another version
	}
	return d
}

// report is a record of an earlier life that reports damage.
type report struct {
	wire.Header
	text string
}

// reportIn takes from a line the record that reports damage; nil: it has none.
func reportIn(line []byte) *report {
	var r wire.Record
	if !bytes.Contains(line, []byte(areLost)) || json.Unmarshal(line, &r) != nil {
		return nil
	}
	if e, is := r.Body.(*wire.Event); is {
		return &report{r.Header, e.Text}
	}
	return nil
}

// tell has records made that report damage which no record in the newest segment reports, one for each attempt that it
// comes before. Of what is confirmed, none is made.
func (s *Spool) tell(found []Damage) {
	if s.opt.Damaged == nil || len(found) == 0 {
		return
	}
	for _, d := range s.news(found) {
		i := slices.IndexFunc(s.reports, func(r report) bool { return strings.HasSuffix(r.text, d.String()) })
		if i >= 0 {
			s.mu.Lock()
			s.keep(d, s.reports[i].Header)
			s.mu.Unlock()
			continue
		}
		h, b := s.opt.Damaged(d)
		s.record(d, h, b)
	}
}

// news leaves out what was told or is confirmed, and joins what comes before the same attempt.
func (s *Spool) news(found []Damage) []Damage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Damage
	for _, d := range found {
		if s.told[d.Next.Seq] || s.confirmed.has(d.Next.Run, d.Next.Seq) {
			continue
		}
		s.told[d.Next.Seq] = true
		if n := len(out); n > 0 && out[n-1].subject() == d.subject() {
			out[n-1].Next, out[n-1].Lines = d.Next, out[n-1].Lines+d.Lines
			continue
		}
		out = append(out, d)
	}
	return out
}

func (d Damage) subject() subject {
	return subject{d.Next.Run, wire.TrialKey{Trial: d.Next.Trial, Attempt: d.Next.Attempt}}
}

// record takes the record that reports damage, and keeps the segments with the damage until it is confirmed. Where
// there is no room for it, it is tried again when the damage is read again.
func (s *Spool) record(d Damage, h wire.Header, b wire.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	h, line, err := s.take(h, b)
	if err != nil {
		maps.DeleteFunc(s.told, func(next uint64, _ bool) bool { return next > d.After && next <= d.Next.Seq })
		return
	}
	if s.opt.Sign != nil {
		s.sign(s.toSign(h, line))
	}
	s.keep(d, h)
}

// keep keeps the segments with damage until the record that reports it is confirmed. mu is held.
func (s *Spool) keep(d Damage, h wire.Header) {
	for i, g := range s.segments {
		endsBefore := i+1 < len(s.segments) && s.segments[i+1].first <= d.After+1
		if g.first < d.Next.Seq && !endsBefore && (g.told == nil || g.told.Seq < h.Seq) {
			g.told = &h
		}
	}
}
