package run

import (
	"context"
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// captureChunk is how much of a capture is fetched at once: as much as a slow
// control link carries within a call's time.
const captureChunk = 1 << 20

// captures fetches the packet captures that the attempt's records name. It runs
// between trials, so that nothing of it is in the air of a window, and before the
// verdict, by which the nodes forget their captures. A node that is away is waited
// for, as it is for its records; a capture that the node has no more is recorded as an
// event of the run. Any other refusal ends the run before the verdict, which may be resumed.
func (l *openLane) captures(ctx context.Context, k wire.TrialKey) error {
	told := map[string]*wire.Capture{}
	for rec, err := range l.s.Archive.Records(k.Trial, k.Attempt) {
		if err != nil {
			return fmt.Errorf("fetch captures of trial %d attempt %d: %w", k.Trial, k.Attempt, err)
		}
		if c, ok := rec.Body.(*wire.Capture); ok && c.FileBytes > 0 && l.Nodes[rec.Node] != nil {
			told[rec.Node] = c
		}
	}
	names := make([]string, 0, len(told))
	for n := range told {
		names = append(names, n)
	}
	return eachNamed(names, func(node string) error {
		err := l.capture(ctx, k, node, *told[node])
		var refused *wire.Error
		gone := errors.As(err, &refused) && (refused.Code == wire.CodeNotFound || refused.Code == wire.CodeConflict)
		if gone || errors.Is(err, archive.ErrOtherCapture) {
			text := fmt.Sprintf("the capture of node %s is lost: %v", node, err)
			return l.s.own.append(k, &wire.Event{Level: "warning", Text: text})
		}
		return err
	})
}

// capture fetches one capture from where it is.
func (l *openLane) capture(ctx context.Context, k wire.TrialKey, node string, told wire.Capture) error {
	for again := true; ; again = false {
		if err := l.captureBytes(ctx, k, node, told); err != nil {
			return err
		}
		if _, whole := l.s.Archive.CaptureHeld(k, node); whole {
			return nil
		}
		err := l.s.Archive.CloseCapture(k, node, told.SHA256)
		if !again || !errors.Is(err, archive.ErrOtherCapture) { // what a former controller left may be at fault
			return err
		}
	}
}

func (l *openLane) captureBytes(ctx context.Context, k wire.TrialKey, node string, told wire.Capture) error {
	c := l.Nodes[node]
	for {
		held, whole := l.s.Archive.CaptureHeld(k, node)
		if whole || held >= told.FileBytes {
			return nil
		}
		detail := fmt.Sprintf("capture of %s: %d of %d kB", node, held/1000, told.FileBytes/1000)
		l.s.show(Progress{Lane: l.Name, Phase: "collecting", Detail: detail})
		var data []byte
		err := l.insist(ctx, c, func() (err error) {
			data, _, err = c.Capture(ctx, l.s.Plan.Run, k, held, captureChunk)
			return err
		})
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return wire.Errorf(wire.CodeConflict, "the file ends at byte %d of %d", held, told.FileBytes)
		}
		if err := l.s.Archive.AppendCapture(k, node, data); err != nil {
			return err
		}
	}
}
