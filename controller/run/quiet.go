package run

import (
	"context"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
)

// quiet holds back for a while whatever sends packets to nodes. Where the mesh
// under test carries control too, the controller says nothing while a window is
// open: its own packets would be measured.
type quiet struct {
	mu       sync.Mutex
	until    time.Time
	speaking int
	silent   chan struct{} // closed when nobody speaks any more; nil while nobody waits for that
}

// speak calls do, which sends packets, after any quiet period is over.
func (q *quiet) speak(ctx context.Context, do func()) {
	for {
		q.mu.Lock()
		wait := time.Until(q.until)
		if wait <= 0 {
			q.speaking++
			q.mu.Unlock()
			break
		}
		q.mu.Unlock()
		if pause.For(ctx, wait) != nil {
			return
		}
	}
	do()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.speaking--; q.speaking == 0 && q.silent != nil {
		close(q.silent)
		q.silent = nil
	}
}

// begin begins a quiet period, and waits for the calls of speak under way.
func (q *quiet) begin(ctx context.Context, d time.Duration) {
	q.mu.Lock()
	q.until = time.Now().Add(d)
	if q.speaking == 0 {
		q.mu.Unlock()
		return
	}
	if q.silent == nil {
		q.silent = make(chan struct{})
	}
	silent := q.silent
	q.mu.Unlock()
	select {
	case <-silent:
	case <-ctx.Done():
	}
}
