package archive

import (
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Stop says after how many blocks a run had enough, and why.
type Stop struct {
	Blocks int    `json:"blocks"`
	Reason string `json:"reason"`
}

// StopAfter writes to the journal that no further block is to be driven. It is
// said once: a run that is resumed keeps to it.
func (a *Archive) StopAfter(s Stop) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		return fmt.Errorf("stop run %q after block %d: it stops after block %d already", a.info.Run, s.Blocks,
			a.stop.Blocks)
	}
	if err := a.writable(); err != nil {
		return errors.Join(fmt.Errorf("stop run %q", a.info.Run), err)
	}
	if err := a.write(JournalEntry{Type: "enough", Stop: &s}); err != nil {
		return fmt.Errorf("stop run %q: %w", a.info.Run, err)
	}
	a.stop = &s
	return nil
}

// Stopped tells after how many blocks the run had enough; nil: all are driven.
func (a *Archive) Stopped() *Stop {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stop
}

// Beyond reports whether a trial is of a block after that which was enough: none
// is where nothing stopped, and no calibration pass.
func (s *Stop) Beyond(t wire.Trial) bool { return s != nil && t.Pass == "" && t.Block > s.Blocks }

// Counts reports whether an attempt is a result of the campaign, by its trial, its
// verdict and where the run stopped: it was accepted, it is no calibration pass,
// and it was driven before the run had enough. Nodes that went on alone may have
// driven more, which would be one more look at the same question.
func Counts(t wire.Trial, v *wire.Verdict, s *Stop) bool {
	return v != nil && v.Outcome == wire.Accepted && t.Pass == "" && !s.Beyond(t)
}

// Drives reports whether a trial of the plan is driven in this run: not one of
// another shard, and none of a block after that which was enough. Calibration
// passes are driven either way.
func (a *Archive) Drives(t wire.Trial) bool {
	return a.info.Shard.Has(t.Number) && !a.Stopped().Beyond(t)
}
