package spool

import (
	"encoding/json"
	"fmt"
	"maps"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Damage is records that were durable and are lost: lines whose checksum does not hold. That is the disk's fault.
type Damage struct {
	After uint64      // seq of the good record before the first of them, or that a reader went on from
	Next  wire.Header // of the first good record after the last of them
	Lines int         // how many; a damaged line feed makes one of two
}

func (d Damage) String() string {
	return fmt.Sprintf("records after %d and before %d are lost: the spool's lines that are damaged on the disk: %d",
		d.After, d.Next.Seq, d.Lines)
}

// damage is what lies between a good record and the next, whose line is given.
func damage(after uint64, lines int, next []byte) Damage {
	d := Damage{After: after, Lines: lines}
	if json.Unmarshal(next, &d.Next) != nil {
		d.Next.Seq, _ = seqOf(next) // its checksum holds: it is of another version
	}
	return d
}

// tell has records made that report damage for the first time in this life, one for each attempt that it comes before.
// Of what is confirmed, none is made.
func (s *Spool) tell(found []Damage) {
	if s.opt.Damaged == nil || len(found) == 0 {
		return
	}
	for _, d := range s.news(found) {
		h, b := s.opt.Damaged(d)
		s.record(d, h, b)
	}
}

// news leaves out what was told, and joins what comes before the same attempt.
func (s *Spool) news(found []Damage) []Damage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Damage
	for _, d := range found {
		if s.told[d.Next.Seq] {
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
	if s.closed || s.confirmed.has(d.Next.Run, d.Next.Seq) {
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
	for i, g := range s.segments {
		endsBefore := i+1 < len(s.segments) && s.segments[i+1].first <= d.After+1
		if g.first < d.Next.Seq && !endsBefore {
			g.told = &h
		}
	}
}
