package field

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/gps"
)

// placeWithin bounds the wait for GPS after the nodes were put in their places.
const placeWithin = 10 * time.Second

// Place puts every node where the trial wants it, standing, sets the radio,
// and waits until each gpsd shows its node there. The car does not drive back
// to its start: it is put there, which saves the time of a return. A node
// whose receiver has a fault is not waited for.
func (f *Field) Place(ctx context.Context, t wire.Trial, attempt int) error {
	s, err := f.stage.arrange(t)
	if err != nil {
		return err
	}
	if err := f.tune(t); err != nil {
		return fmt.Errorf("place trial %d: %w", t.Number, err)
	}
	if err := f.hosts.begin(); err != nil {
		return fmt.Errorf("place trial %d: %w", t.Number, err)
	}
	f.trial, f.attempt = t, attempt
	f.scene.Store(s)
	ctx, cancel := context.WithTimeout(ctx, placeWithin)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range f.manned() {
		if n.receiver.State() == gps.Fix {
			g.Go(func() error { return f.awaitFix(ctx, n) })
		}
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("place trial %d: %w", t.Number, err)
	}
	return nil
}

// Drive lets the car set off. It goes on at its speed until Settle. Nodes that
// follow the field's mobility stand until the window is about to open: for the
// gate's after_s and lead_s.
func (f *Field) Drive(context.Context) error {
	now, err := bootNow()
	if err != nil {
		return err
	}
	f.scene.Store(f.scene.Load().departing(now))
	return nil
}

// Settle lets the car brake and tells what only the field knows of the window
// [openBootNs, closeBootNs]: how late the radio was, what it lost and why,
// where the nodes really were (the car ten times a second), and what else
// happened. With both 0 there was no window.
// Of a window that opened before the last Drive, while the nodes stood or in a
// field that has ended, it knows nothing but the events.
func (f *Field) Settle(ctx context.Context, openBootNs, closeBootNs int64) ([]wire.Record, error) {
	now, err := bootNow()
	if err != nil {
		return nil, err
	}
	s := f.scene.Load().braking(now)
	f.scene.Store(s)

	for _, n := range f.manned() {
		if missed := n.receiver.Missed(); missed > 0 {
			f.note("warning", "gpsd of %s did not read, and missed %d reports", n.Name, missed)
		}
	}
	out := f.takeEvents()
	// An attempt that was aborted in its window is settled before the window's end.
	if closeBootNs = min(closeBootNs, int64(now)); s.drove(openBootNs) && closeBootNs > openBootNs {
		open, closed := time.Duration(openBootNs), time.Duration(closeBootNs)
		if closed-open > maxWindow {
			return nil, fmt.Errorf("settle trial %d: a window of %v is longer than %v", f.trial.Number, closed-open,
				maxWindow)
		}
		if a := f.air.Load(); a != nil {
			l, err := a.channel.Lateness(open, closed)
			if err != nil {
				return nil, fmt.Errorf("settle trial %d: %w", f.trial.Number, err)
			}
			out = append(out, wire.Record{Header: wire.Header{TBootNs: closeBootNs}, Body: &l})
			lost, err := f.monitored(ctx, a, open, closed)
			if err != nil {
				return nil, fmt.Errorf("settle trial %d: %w", f.trial.Number, err)
			}
			out = append(out, lost...)
		}
		out = append(out, s.truth(f.stage.names, f.trial.Car, open, closed)...)
	}
	for i := range out {
		h := &out[i].Header
		h.Kind, h.Version, h.Node = out[i].Body.Kind(), wire.SchemaVersion, "field"
		h.Run, h.Trial, h.Attempt = f.cfg.Run, f.trial.Number, f.attempt
	}
	return out, nil
}

// maxWindow bounds the records of one answer.
const maxWindow = time.Hour

// Fault is something that goes wrong in a field, for tests and drills.
type Fault struct {
	Kind string  `json:"kind"`            // see the Fault constants
	Node string  `json:"node,omitempty"`  // absent: every node
	ForS float64 `json:"for_s,omitempty"` // 0: until the fault "clear"
}

// The faults.
const (
	FaultGPSNoFix   = "gps_no_fix"  // the receiver loses its satellites
	FaultGPSSilent  = "gps_silent"  // the receiver says nothing
	FaultGPSDStop   = "gpsd_stop"   // gpsd is stopped as by SIGSTOP
	FaultRadioDead  = "radio_dead"  // no frame of anybody's is heard
	FaultControlCut = "control_cut" // the control link is down
	FaultClear      = "clear"       // all is well again
)

// Fault makes something go wrong, and well again after its time.
func (f *Field) Fault(fault Fault) error {
	nodes := f.manned()
	if fault.Node != "" {
		i := f.find(fault.Node)
		if i < 0 {
			return fmt.Errorf("make fault: the field has no node %q", fault.Node)
		}
		if f.nodes[i].Bare {
			return fmt.Errorf("make fault: node %q has no agent and no receiver", fault.Node)
		}
		nodes = f.nodes[i : i+1]
	}
	if fault.Kind == FaultClear {
		var errs []error
		for _, kind := range []string{FaultGPSNoFix, FaultGPSDStop, FaultRadioDead, FaultControlCut} {
			errs = append(errs, f.turn(kind, nodes, false))
		}
		return errors.Join(errs...)
	}
	if err := f.turn(fault.Kind, nodes, true); err != nil {
		return err
	}
	f.note("info", "fault %s of %q for %g s", fault.Kind, fault.Node, fault.ForS)
	if fault.ForS <= 0 {
		return nil
	}
	f.rest.Go(func() error {
		if pause.For(f.restCtx, time.Duration(fault.ForS*float64(time.Second))) != nil {
			return nil
		}
		if err := f.turn(fault.Kind, nodes, false); err != nil {
			f.note("error", "fault %s of %q does not end: %v", fault.Kind, fault.Node, err)
		}
		return nil
	})
	return nil
}

func (f *Field) turn(kind string, nodes []*node, on bool) error {
	if kind == FaultRadioDead {
		f.dead.Store(on)
		if a := f.air.Load(); a != nil {
			a.channel.SetDead(on)
		}
		return nil
	}
	var errs []error
	for _, n := range nodes {
		switch kind {
		case FaultGPSNoFix, FaultGPSSilent:
			state := gps.Fix
			if on && kind == FaultGPSNoFix {
				state = gps.NoFix
			} else if on {
				state = gps.Silent
			}
			n.receiver.Set(state)
		case FaultGPSDStop:
			errs = append(errs, n.gpsd.pause(on))
		case FaultControlCut:
			errs = append(errs, setPort(f.ctlNS, n.port, !on))
		default:
			return fmt.Errorf("make fault: %q is none of %s, %s, %s, %s, %s, %s", kind,
				FaultGPSNoFix, FaultGPSSilent, FaultGPSDStop, FaultRadioDead, FaultControlCut, FaultClear)
		}
	}
	return errors.Join(errs...)
}

// maxEvents bounds what waits for the next Settle.
const maxEvents = 1000

// note keeps an event for the records.
func (f *Field) note(level, format string, args ...any) {
	now, err := bootNow()
	if err != nil {
		return // the clock is gone: there are greater troubles than this event
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) < maxEvents {
		f.events = append(f.events, wire.Record{Header: wire.Header{TBootNs: int64(now)},
			Body: &wire.Event{Level: level, Text: fmt.Sprintf(format, args...)}})
	}
}

func (f *Field) takeEvents() []wire.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.events
	f.events = nil
	return out
}
