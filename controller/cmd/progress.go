package cmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// progress shows a run as it goes: on a terminal one line per lane that is
// drawn over, elsewhere a plain line per step that matters.
type progress struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	width    int
	lanes    []string
	now      map[string]string
	last     map[string]string // phase last written, for plain lines
}

func newProgress(out io.Writer, lanes []string) *progress {
	p := &progress{out: out, lanes: lanes, now: map[string]string{}, last: map[string]string{}, width: 100}
	if f, ok := out.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(f.Fd())) {
		p.terminal = true
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			p.width = w
		}
	}
	return p
}

// step takes one step of the run.
func (p *progress) step(s run.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := stepLine(s)
	if !p.terminal {
		key := fmt.Sprint(s.Trial != nil && s.Verdict == nil, s.Phase, s.Attempt, number(s))
		if s.Phase == "placing" || s.Phase == "settling" || s.Phase == "arming" || p.last[s.Lane] == key {
			return
		}
		p.last[s.Lane] = key
		fmt.Fprintln(p.out, line)
		return
	}
	p.erase()
	if s.Verdict != nil || s.Phase == "looked" {
		fmt.Fprintln(p.out, line)
	}
	if s.Phase != "looked" { // of no lane
		p.now[s.Lane] = line
	}
	p.draw()
}

// say writes a line of its own.
func (p *progress) say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintln(p.out, line)
	p.draw()
}

func number(s run.Progress) int {
	if s.Trial == nil {
		return 0
	}
	return s.Trial.Number
}

// erase takes the live lines away; draw puts them back.
func (p *progress) erase() {
	if p.terminal {
		for range p.drawn() {
			fmt.Fprint(p.out, "\x1b[1A\x1b[2K")
		}
	}
}

func (p *progress) drawn() int {
	n := 0
	for _, l := range p.lanes {
		if p.now[l] != "" {
			n++
		}
	}
	return n
}

func (p *progress) draw() {
	for _, l := range p.lanes {
		if line := p.now[l]; line != "" {
			if len(line) > p.width-1 {
				line = line[:p.width-1]
			}
			fmt.Fprintln(p.out, line)
		}
	}
}

// stepLine words one step.
func stepLine(s run.Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%d/%d]", s.Decided, s.Total)
	if s.Lane != "" {
		fmt.Fprintf(&b, " %s", s.Lane)
	}
	if s.Trial == nil {
		fmt.Fprintf(&b, " %s %s", s.Phase, s.Detail)
		return b.String()
	}
	fmt.Fprintf(&b, " trial %d", s.Trial.Number)
	if s.Attempt > 1 {
		fmt.Fprintf(&b, " attempt %d", s.Attempt)
	}
	for _, f := range slices.Sorted(maps.Keys(s.Trial.Factors)) {
		fmt.Fprintf(&b, " %s=%s", f, s.Trial.Factors[f])
	}
	if v := s.Verdict; v != nil {
		fmt.Fprintf(&b, ": %s", v.Outcome)
		if !v.Reason.IsZero() {
			fmt.Fprintf(&b, " (%s)", v.Reason)
		}
		return b.String()
	}
	fmt.Fprintf(&b, ": %s", s.Phase)
	if s.Detail != "" {
		fmt.Fprintf(&b, ", %s", s.Detail)
	}
	b.WriteString(liveText(s.Trial, s.Live))
	return b.String()
}

func liveText(t *wire.Trial, l *wire.Live) string {
	if l == nil {
		return ""
	}
	out := ""
	if t.SpeedMps != nil {
		out += fmt.Sprintf("  target %.1f m/s", *t.SpeedMps)
	}
	if l.SpeedMps != nil {
		out += fmt.Sprintf("  now %.1f m/s", *l.SpeedMps)
	}
	if l.ThroughputBps != nil {
		out += fmt.Sprintf("  %.2f Mbit/s", *l.ThroughputBps/1e6)
	}
	if l.RemainingS != nil {
		out += fmt.Sprintf("  %.0f s left", *l.RemainingS)
	}
	return out
}
