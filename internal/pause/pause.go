// Package pause waits in a way that a context can end.
package pause

import (
	"context"
	"time"
)

// For waits for a while, and returns why the context ended where it does before.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reconnect calls connect again whenever it returns, until the context ends. It
// pauses between, from first up to last, twice as long after each call that
// reports that nothing answered.
func Reconnect(ctx context.Context, first, last time.Duration, connect func(context.Context) (answered bool)) error {
	for wait := first; ; wait = min(2*wait, last) {
		if connect(ctx) {
			wait = first
		}
		if err := For(ctx, wait); err != nil {
			return err
		}
	}
}
