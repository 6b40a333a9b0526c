package trial

import (
	"sync"

	"fieldmesh.dev/fieldmesh/node-agent/trial/gate"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// liveView is the present moment for a person to look at. It is not recorded:
// what it shows may be a tenth of a second old.
type liveView struct {
	mu           sync.Mutex
	speed, track *float64
	fixNs        int64 // when the fix was made that speed and track are of
	mode         int
	ticks        []liveTick // of the last second
}

type liveTick struct {
	tNs   int64
	bytes uint64
}

// liveSpanNs is the time over which throughput is shown.
const liveSpanNs = 1_000_000_000

// see takes a sample that has just been recorded.
func (l *liveView) see(tNs int64, b wire.Body) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s := b.(type) {
	case *wire.GPS:
		l.mode = s.Mode
		if s.SpeedMps != nil && s.FixAgeMs != nil {
			l.speed, l.track, l.fixNs = s.SpeedMps, s.TrackDeg, tNs-int64(*s.FixAgeMs*1e6)
		}
	case *wire.TCPSample:
		if s.Stream == nil || s.Edge != "" {
			return
		}
		if n := len(l.ticks); n > 0 && l.ticks[n-1].tNs == tNs {
			l.ticks[n-1].bytes += s.BytesReceived
		} else {
			l.ticks = append(l.ticks, liveTick{tNs, s.BytesReceived})
		}
		for len(l.ticks) > 2 && tNs-l.ticks[1].tNs > liveSpanNs {
			l.ticks = l.ticks[1:]
		}
	}
}

// snapshot is what a view shows now; e.mu is held.
func (l *liveView) snapshot(e *Engine) *wire.Live {
	a := e.current
	if a == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := &wire.Live{FixMode: l.mode}
	if e.deps.Clock.BootNs()-l.fixNs <= gate.FreshFix.Nanoseconds() {
		out.SpeedMps, out.TrackDeg = l.speed, l.track
	}
	a.mu.Lock()
	closeNs := a.closeNs
	a.mu.Unlock()
	if a.state != wire.StateRunning {
		return out
	}
	out.RemainingS = ptr(max(0, float64(closeNs-e.deps.Clock.BootNs())/1e9))
	if n := len(l.ticks); a.trial.Receiver == e.cfg.Node && n >= 2 && l.ticks[n-1].bytes >= l.ticks[0].bytes {
		if span := float64(l.ticks[n-1].tNs-l.ticks[0].tNs) / 1e9; span > 0 {
			out.ThroughputBps = ptr(float64(l.ticks[n-1].bytes-l.ticks[0].bytes) * 8 / span)
		}
	}
	return out
}

// reset forgets the last trial's flows.
func (l *liveView) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticks = nil
}

func ptr[T any](v T) *T { return &v }
