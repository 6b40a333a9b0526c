// Package progress shows a run to a person while it is driven.
package progress

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/internal/screen"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Display shows a run as it goes: on a terminal one line per lane that is
// drawn over, elsewhere a plain line per step that matters.
type Display struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	lanes    []string
	left     timeLeft
	now      map[string]string
	at       map[string]int    // trial that a lane's line is about
	last     map[string]string // phase last written, for plain lines
}

// New shows a run with so many lanes on out; the only lane of a run has no name.
func New(out io.Writer, lanes []string) *Display {
	p := &Display{out: out, lanes: lanes, now: map[string]string{}, at: map[string]int{},
		last: map[string]string{}}
	if f, ok := out.(interface{ Fd() uintptr }); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	return p
}

// width is the terminal's, which may change at any time.
func (p *Display) width() int { return cmp.Or(screen.Columns(p.out), 80) }

// timeLeft is how long a run still takes, as it is shown.
type timeLeft struct{ drive.Left }

// text is the estimate after a step, "" for none.
func (l *timeLeft) text(s run.Progress, now time.Time) string {
	if l.Begun.IsZero() {
		l.Begun, l.First = now, s.Decided
	}
	left := l.After(s.Decided, s.Total, now)
	if left == 0 {
		return ""
	}
	return ", " + drive.About(left) + " left"
}

// Expect sets how long a trial takes by the plan, and returns the time that is left at
// a step before the first, as Step writes it.
func (p *Display) Expect(trial time.Duration, at run.Progress) string {
	p.left.Trial = trial
	return p.left.text(at, time.Now())
}

// Step takes one step of the run.
func (p *Display) Step(s run.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.left.text(s, time.Now())
	line := terminal.Text(stepLine(s, left, true)) // a node's words may be anybody's
	if !p.terminal {
		key := fmt.Sprint(s.Trial != nil, s.Phase, s.Attempt, number(s))
		switch {
		case s.Verdict != nil: // it may come when the next trial is under way
		case s.Phase == "placing", s.Phase == "settling", s.Phase == "arming", p.last[s.Lane] == key:
			return
		default:
			p.last[s.Lane] = key
		}
		fmt.Fprintln(p.out, line)
		return
	}
	p.erase()
	if s.Verdict != nil || s.Phase == "looked" {
		fmt.Fprintln(p.out, screen.Fold(line, p.width()))
	}
	switch {
	case s.Phase == "looked": // of no lane
	case s.Verdict == nil:
		if utf8.RuneCountInString(line) >= p.width() {
			line = terminal.Text(stepLine(s, left, false))
		}
		p.now[s.Lane], p.at[s.Lane] = line, number(s)
	case p.at[s.Lane] == number(s): // it may come when the next trial is under way
		delete(p.now, s.Lane)
	}
	p.draw()
}

// Say writes a line of its own.
func (p *Display) Say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintln(p.out, terminal.Lines(line))
	p.draw()
}

func number(s run.Progress) int {
	if s.Trial == nil {
		return 0
	}
	return s.Trial.Number
}

// erase takes the live lines away; draw puts them back.
func (p *Display) erase() {
	if p.terminal {
		for range p.drawn() {
			fmt.Fprint(p.out, "\x1b[1A\x1b[2K")
		}
	}
}

func (p *Display) drawn() int {
	n := 0
	for _, l := range p.lanes {
		if p.now[l] != "" {
			n++
		}
	}
	return n
}

func (p *Display) draw() {
	for _, l := range p.lanes {
		if line := p.now[l]; line != "" {
			fmt.Fprintln(p.out, screen.Cut(line, p.width()-1))
		}
	}
}

// stepLine words one step, after which so much time is left: whole, or so that it fits
// a terminal of 80 columns.
func stepLine(s run.Progress, left string, whole bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%d/%d%s]", s.Decided, s.Total, left)
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
	if whole {
		for _, f := range slices.Sorted(maps.Keys(s.Trial.Factors)) {
			fmt.Fprintf(&b, " %s=%s", f, s.Trial.Factors[f])
		}
	}
	if v := s.Verdict; v != nil {
		fmt.Fprintf(&b, ": %s", v.Outcome)
		if !v.Reason.IsZero() {
			fmt.Fprintf(&b, " (%s)", v.Reason)
		}
		if s.Mbps != nil {
			fmt.Fprintf(&b, ", %s", rate(*s.Mbps))
		}
		return b.String()
	}
	switch {
	case s.Detail == "":
		fmt.Fprintf(&b, ": %s", s.Phase)
	case whole:
		fmt.Fprintf(&b, ": %s, %s", s.Phase, s.Detail)
	default:
		fmt.Fprintf(&b, ": %s", s.Detail)
	}
	if s.Live != nil {
		b.WriteString(liveText(s.Trial, *s.Live, strings.HasSuffix(s.Detail, " m/s")))
	}
	return b.String()
}

// liveText words what a node sees now; of the speed it says nothing where that is said.
func liveText(t *wire.Trial, l wire.Live, speedSaid bool) string {
	out := ""
	switch {
	case l.SpeedMps == nil || speedSaid:
	case t.SpeedMps != nil:
		out += fmt.Sprintf("  %.1f of %.1f m/s", *l.SpeedMps, *t.SpeedMps)
	default:
		out += fmt.Sprintf("  %.1f m/s", *l.SpeedMps)
	}
	if l.ThroughputBps != nil {
		out += "  " + rate(*l.ThroughputBps/1e6)
	}
	if l.RemainingS != nil {
		out += fmt.Sprintf("  %.0f s left", *l.RemainingS)
	}
	return out
}

// rate words a throughput; one of a few kbit/s is not 0.00 Mbit/s.
func rate(mbps float64) string {
	if mbps < 1 {
		return fmt.Sprintf("%.1f kbit/s", mbps*1e3)
	}
	return fmt.Sprintf("%.2f Mbit/s", mbps)
}
