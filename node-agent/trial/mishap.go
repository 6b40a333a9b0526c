package trial

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// mishap ends the attempt when a sample shows something with which it cannot
// continue. The sample itself is recorded already.
func (a *attempt) mishap(b wire.Body) {
	switch s := b.(type) {
	case *wire.Machine:
		if !s.Alarm.IsZero() {
			a.cancel(s.Alarm)
		}
	case *wire.Event:
		if s.Level == "error" { // a driver that does something else than it says
			a.cancel(wire.Reason{Text: s.Text})
		}
	case *wire.WallClock:
		if s.SteppedNs != nil { // captures bear the wall clock, and what other programs wrote does
			by := time.Duration(*s.SteppedNs).Round(time.Millisecond)
			a.cancel(faultf(wire.ReasonClockStepped, "the wall clock was put forward by %s during the attempt", by))
		}
	}
}

// fit refuses a trial that the machine as it is would have to end.
func (e *Engine) fit() error {
	if e.deps.Fit == nil {
		return nil
	}
	if err := e.deps.Fit(); err != nil {
		return refuse(wire.CodeUnfit, "node "+e.cfg.Node+" cannot begin a trial: "+err.Error(), "see `fieldmesh nodes`")
	}
	return nil
}
