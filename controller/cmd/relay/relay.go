// Package relay carries the steps of a rehearsal inside a kernel in virtual time to
// the program that started it.
package relay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

// Line is a line from a rehearsal inside a kernel in virtual time to the one
// that started it.
type Line struct {
	UptimeS float64       `json:"uptime_s"` // of the kernel, in virtual time
	Step    *run.Progress `json:"step,omitempty"`
	Ended   *End          `json:"ended,omitempty"` // the last line
}

// End is how the rehearsal inside ended.
type End struct {
	Error string `json:"error,omitempty"`
	Unmet bool   `json:"unmet,omitempty"` // what was driven is not all accepted
}

// Teller writes lines.
type Teller struct {
	mu  sync.Mutex
	out *json.Encoder
	Err error // the first
}

// NewTeller writes lines to out.
func NewTeller(out io.Writer) *Teller { return &Teller{out: json.NewEncoder(out)} }

// Tell writes a line, with the time since the kernel began.
func (t *Teller) Tell(line Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line.UptimeS = virtual.Uptime().Seconds()
	if t.Err == nil {
		t.Err = t.out.Encode(line)
	}
}

// Hearer takes the lines from inside a kernel.
type Hearer struct {
	progress *progress.Display
	lane     string
	tally    *Tally
	end      *End
}

// NewHearer shows what a kernel tells, and adds it up with what others do.
func NewHearer(p *progress.Display, lane string, t *Tally) *Hearer {
	return &Hearer{progress: p, lane: lane, tally: t}
}

// Line takes a line from inside.
func (h *Hearer) Line(raw []byte) error {
	var l Line
	if err := json.Unmarshal(raw, &l); err != nil {
		return fmt.Errorf("decode line %.80q from virtual time: %w", raw, err)
	}
	if l.Step != nil {
		pace := h.tally.take(h, &l)
		l.Step.Lane = h.lane
		h.progress.Step(*l.Step)
		if l.Step.Verdict != nil {
			h.progress.Say(pace)
		}
	}
	if l.Ended != nil {
		h.end = l.Ended
	}
	return nil
}

// End is how the rehearsal inside said that it ended; unmet: not all was accepted.
func (h *Hearer) End() (unmet bool, err error) {
	switch {
	case h.end == nil:
		return false, errors.New("the rehearsal in virtual time ended without a word; its console says more")
	case h.end.Error != "":
		return h.end.Unmet, errors.New(h.end.Error)
	}
	return false, nil
}

// Tally adds up what is heard of a run's kernels.
type Tally struct {
	Begun   time.Time // by this machine's clock
	Decided int       // trials of the parts that were finished before
	Total   int       // trials of the run; 0: as its only part says

	mu    sync.Mutex
	parts map[*Hearer]heardOf
}

// heardOf is what was heard of a kernel last.
type heardOf struct {
	first, decided int // trials decided: when it began, and now
	uptimeS        float64
}

// take makes a step of a kernel one of the whole run, and says how virtual time
// goes beside this machine's, and what is left by it.
func (t *Tally) take(h *Hearer, l *Line) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parts == nil {
		t.parts = map[*Hearer]heardOf{}
	}
	part, known := t.parts[h]
	if !known {
		part.first = l.Step.Decided
	}
	part.decided, part.uptimeS = max(part.decided, l.Step.Decided), max(part.uptimeS, l.UptimeS)
	t.parts[h] = part
	decided, before, uptimeS := t.Decided, t.Decided, 0.0
	for _, p := range t.parts {
		decided, before, uptimeS = decided+p.decided, before+p.first, uptimeS+p.uptimeS
	}
	l.Step.Decided, l.Step.Total = decided, cmp.Or(t.Total, l.Step.Total)
	took := time.Since(t.Begun)
	text := fmt.Sprintf("        %.0f s of virtual time in %.0f s", uptimeS, took.Seconds())
	if done := decided - before; done > 0 && l.Step.Total > decided {
		left := took / time.Duration(done) * time.Duration(l.Step.Total-decided)
		text += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	return text
}
