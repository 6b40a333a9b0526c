package nodes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/screen"
)

// line is a node's state without what changes all the time, so that a
// difference means something: --json writes one line for each.
type line struct {
	At             time.Time         `json:"at"` // by this machine's clock
	Node           string            `json:"node"`
	Unit           string            `json:"unit,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Reached        bool              `json:"reached"`
	Error          string            `json:"error,omitempty"`
	Version        string            `json:"version,omitempty"`
	Run            string            `json:"run,omitempty"`
	InterfaceUp    *bool             `json:"interface_up,omitempty"`
	GPS            string            `json:"gps,omitempty"`
	BatteryPercent *float64          `json:"battery_percent,omitempty"` // whole
	BatteryState   string            `json:"battery_state,omitempty"`
	TemperatureC   *float64          `json:"temperature_c,omitempty"` // in steps of 5
	DiskFreeGB     *float64          `json:"disk_free_gb,omitempty"`  // in steps of 0.1
	ClockWithinMs  *float64          `json:"wall_clock_ms,omitempty"` // off this machine's, in steps of 100 ms
	Undo           []string          `json:"changes_in_force,omitempty"`
	Problems       []problem         `json:"problems"`
}

type problem struct {
	Need  string `json:"need"`
	Found string `json:"found"`
	Cure  string `json:"cure"`
}

// line is a report as a line.
func (r report) line() line {
	s := r.status
	l := line{Node: r.node.Name, Unit: r.node.Unit, Labels: r.node.Labels, Reached: s.Node != "",
		Problems: []problem{}}
	if !l.Reached {
		if r.err != nil {
			l.Error = steady(r.err)
		}
		return l
	}
	l.Version, l.Run, l.InterfaceUp, l.Undo = s.Version, s.Run, s.InterfaceUp, s.Host.Pending
	l.GPS = gpsFix(s)
	l.DiskFreeGB = stepped(float64(s.Spool.FreeBytes)/1e9, 0.1)
	if m := s.Machine; m != nil {
		l.BatteryState = m.BatteryState
		if m.BatteryPercent != nil {
			l.BatteryPercent = stepped(*m.BatteryPercent, 1)
		}
		if m.TemperatureC != nil {
			l.TemperatureC = stepped(*m.TemperatureC, 5)
		}
	}
	if r.clock != nil {
		l.ClockWithinMs = stepped(float64(r.clock.WallOffsetNs)/1e6, 100)
	}
	for _, p := range s.Problems {
		l.Problems = append(l.Problems, problem{p.Need, p.Found, p.Cure})
	}
	return l
}

// steady is why a node was not reached, without how long it took to find out.
func steady(err error) string {
	var e *fleet.NodeError
	if errors.As(err, &e) && e.Cure != "" {
		return e.Doing + ": not reached; " + e.Cure
	}
	return err.Error()
}

func stepped(v, step float64) *float64 {
	v = math.Round(v/step) * step
	v = math.Round(v*10) / 10 // 0.1 × 3 is not 0.3
	return &v
}

// Watch asks every node again and again until ctx ends, which is not an
// error.
func Watch(ctx context.Context, f *fleet.Fleet, identity keys.Identity, every time.Duration, asJSON bool,
	out io.Writer) error {
	clients := map[string]*fleet.Client{}
	for name, n := range f.Nodes {
		clients[name] = fleet.NewClient(identity, n)
		defer clients[name].Close()
	}
	w := &watching{out: out, before: map[string]line{}, asJSON: asJSON, terminal: isTerminal(out)}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		reports := make([]report, len(clients))
		var asked sync.WaitGroup
		for i, name := range f.Names() {
			asked.Go(func() { reports[i] = ask(ctx, clients[name]) })
		}
		asked.Wait()
		if ctx.Err() != nil {
			return nil
		}
		if err := w.show(reports, time.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// watching shows reports as they come: on a terminal in place; elsewhere
// whenever something has changed.
type watching struct {
	out      io.Writer
	asJSON   bool
	terminal bool
	before   map[string]line
}

func (w *watching) show(reports []report, at time.Time) error {
	var lines bytes.Buffer
	changed := false
	for _, r := range reports {
		l := r.line()
		if old, known := w.before[l.Node]; known && sameLine(old, l) {
			continue
		}
		changed = true
		w.before[l.Node] = l
		l.At = at.UTC()
		text, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("encode node: %w", err)
		}
		lines.Write(append(text, '\n'))
	}
	switch {
	case w.asJSON:
	case w.terminal || changed:
		lines.Reset()
		if w.terminal {
			lines.WriteString("\x1b[H\x1b[2J") // to the top left, and all cleared
		}
		fmt.Fprintf(&lines, "%s\n\n", at.Format(time.TimeOnly))
		if err := printTable(&lines, reports, screen.Columns(w.out)); err != nil && !errors.Is(err, ErrNotWell) {
			return err
		}
		if !w.terminal {
			lines.WriteByte('\n')
		}
	default:
		return nil
	}
	if _, err := w.out.Write(lines.Bytes()); err != nil {
		return fmt.Errorf("show nodes: %w", err)
	}
	return nil
}

func sameLine(a, b line) bool {
	a.At, b.At = time.Time{}, time.Time{}
	return maps.Equal(a.Labels, b.Labels) && reflect.DeepEqual(a, b)
}

// labelsCell is a node's labels in the order of their names.
func labelsCell(labels map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, k+"="+labels[k])
	}
	return cmp.Or(strings.Join(out, " "), "-")
}
