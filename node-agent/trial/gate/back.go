package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// lookEvery is how long Back waits between two tries, and how often it looks where the car is.
	lookEvery = 250 * time.Millisecond
	// logEvery is how often it is logged why a try failed, at most.
	logEvery = 10 * time.Second
)

// Back has an initiator do what may fail as long as its car is out of reach: again while the car comes back to its
// start, and once more there.
type Back struct {
	Gate  *Gate // nil: the car is not this node's
	NowNs func() int64
	Fix   func() wire.GPS
	// Tell is told where the car is to go, and why the last try failed, and whether it has yet to come to its start.
	Tell func(detail string, toStart bool)
	Log  *slog.Logger

	returns  bool   // when it was looked at last
	why      string // the last try failed
	loggedNs int64  // when that was logged last
}

// Do tries until it succeeds, and returns how the last try ended. The context of one that is not the last ends as soon
// as the car is at its start, or may take no longer. passes reports which errors may pass as the car comes back.
func (b *Back) Do(ctx context.Context, passes func(error) bool,
	try func(ctx context.Context, returns bool) error) error {
	b.why = ""
	for {
		returns := b.look()
		err := b.follow(ctx, returns, try)
		ended := errors.Is(err, context.Canceled) // before it could fail
		if err == nil || !returns || !ended && !passes(err) {
			return err
		}
		if !ended {
			b.failed(err)
		}
		if pause.For(ctx, lookEvery) != nil {
			return err
		}
	}
}

// failed has it told why a try failed.
func (b *Back) failed(err error) {
	b.why = fmt.Sprintf("; the last try to arm: %.200s", err)
	if now := b.NowNs(); b.loggedNs == 0 || now-b.loggedNs >= logEvery.Nanoseconds() {
		b.Log.Warn("arming has failed while the car comes back, and is tried again", "error", err)
		b.loggedNs = now
	}
}

// follow looks where the car is beside a try.
func (b *Back) follow(ctx context.Context, returns bool, try func(ctx context.Context, returns bool) error) error {
	if !returns {
		return try(ctx, false)
	}
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup // it alone has the gate until then
	looking.Go(func() {
		for pause.For(ctx, lookEvery) == nil {
			if !b.look() {
				cancel()
			}
		}
	})
	err := try(ctx, true)
	cancel()
	looking.Wait()
	return err
}

// look reports whether the car comes back, and tells where it is to go.
func (b *Back) look() bool {
	if b.Gate == nil {
		return false
	}
	returns, detail := b.Gate.Returns(b.NowNs(), b.Fix())
	switch {
	case returns:
		b.Tell(detail+b.why, b.Gate.Away())
	case b.returns && b.Gate.Started():
		b.Tell("stay at the start until the trial is armed", false)
	}
	b.returns = returns
	return returns
}
