package run

import (
	"context"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Where the mesh under test carries control too, the controller says nothing
// while a window is open: its own packets would be measured. Everything that it
// does beside a trial asks leave to speak; the watch over the attempt learns
// from the initiator that GO is out, some time before the window opens, and
// hushes all of it until the window has closed.
type hush struct {
	mesh bool
	mu   sync.RWMutex
}

const (
	// meshLease is long enough for a window in which it cannot be renewed.
	meshLease = 120 * time.Second
	// hushAfter is for flows that drain after the window's close.
	hushAfter = 500 * time.Millisecond
	// gatePoll is how long the initiator holds a question for what it waits for.
	gatePoll = 20 * time.Second
)

// speak does what sends packets to nodes, not within a window.
func (h *hush) speak(do func()) {
	if !h.mesh {
		do()
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	do()
}

// wait is how long a node may hold a question for records: on the mesh it is to
// answer at once, so that no answer comes in a window.
func (h *hush) wait(usual time.Duration) time.Duration {
	if h.mesh {
		return 0
	}
	return usual
}

// watchOverMesh is watch where the mesh carries control: it follows the
// initiator until GO is out, and is silent until the window has closed.
func (l *openLane) watchOverMesh(ctx context.Context, t wire.Trial, k wire.TrialKey, names []string) {
	suspects := map[string]bool{}
	var known uint64
	for ctx.Err() == nil {
		v, err := l.Nodes[t.Initiator].View(ctx, l.r.Plan.Run, known, gatePoll)
		if err != nil || v.Current == nil || *v.Current != k {
			sleep(ctx, l.r.lookEvery)
			if ctx.Err() == nil && err == nil {
				l.writeOff(ctx, k, names, suspects)
			}
			continue
		}
		known = v.Version
		l.r.show(Progress{Lane: l.Name, Trial: &t, Attempt: k.Attempt, Phase: string(v.State), Detail: v.Detail, Live: v.Live})
		if v.State == wire.StateRunning && v.Live != nil && v.Live.RemainingS != nil && *v.Live.RemainingS > 0 {
			l.silent(ctx, time.Duration(*v.Live.RemainingS*float64(time.Second))+hushAfter)
		}
	}
}

// silent keeps everything from speaking for a while. Connections are closed
// first: one that is kept open is looked after by packets of its own.
func (l *openLane) silent(ctx context.Context, d time.Duration) {
	l.hush.mu.Lock()
	defer l.hush.mu.Unlock()
	for _, c := range l.Nodes {
		c.Close()
	}
	sleep(ctx, d)
}

// leaseFor is how long a lease is to last.
func (l *openLane) leaseFor() time.Duration {
	if l.hush.mesh {
		return meshLease
	}
	return leaseTTL
}

// renewOnce renews a node's lease; where nodes are goes with it.
func (l *openLane) renewOnce(ctx context.Context, c *fleet.Client) {
	l.hush.speak(func() {
		lease, asked, name := l.lease(), time.Now(), c.Node().Name
		lease.Places = l.places.others(name, asked)
		answer, err := c.Lease(ctx, lease)
		if err == nil {
			l.places.hear(name, asked, answer)
		} else if ctx.Err() == nil {
			l.r.Log.Warn("renew lease", "node", name, "error", err)
		}
	})
}
