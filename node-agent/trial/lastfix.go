package trial

import (
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// fastHz is a rate from which a fix's age moves no node by as much as a fix
	// errs: its place at the close may be extrapolated, and the next trial begin.
	fastHz     = 4.0
	fixPeriods = 1.5                    // of the receiver, that its next fix may take
	fixTelling = 400 * time.Millisecond // what gpsd takes to tell a fix whole, on a slow line
	fixEvery   = 50 * time.Millisecond
)

// fixAfterClose records fixes until one is from after the window's close, so that
// the node's place there lies between two. It comes last, when the machine is
// put back: the receiver needs nothing of the trial. It waits for no more than a
// receiver's period and a half, and not at all for one that is fast or silent.
func (a *attempt) fixAfterClose() error {
	e := a.engine
	a.mu.Lock()
	closeNs, fixed := a.closeNs, a.hasFixSince(a.closeNs)
	a.mu.Unlock()
	newest, ok := e.deps.GPS.Last()
	if fixed || closeNs == 0 || !ok || newest.Mode < 2 || newest.LatDeg == nil || newest.LonDeg == nil ||
		newest.FixAgeMs == nil || *newest.FixAgeMs > verdict.FixAgeMsDefault ||
		newest.RateHz != nil && *newest.RateHz >= fastHz {
		return nil
	}
	patience := time.Duration(verdict.FixAgeMsDefault * float64(time.Millisecond))
	if newest.RateHz != nil && *newest.RateHz > 0 {
		patience = min(patience, time.Duration(fixPeriods / *newest.RateHz * float64(time.Second)))
	}
	for limit := closeNs + (patience + fixTelling).Nanoseconds(); ; time.Sleep(fixEvery) {
		now := e.deps.Clock.BootNs()
		if fix := e.deps.GPS.Tick(); fix.FixBootNs != nil {
			if err := a.emit(now, &fix); err != nil {
				return err
			}
			if *fix.FixBootNs > closeNs {
				return nil
			}
		}
		if now > limit {
			return nil
		}
	}
}

// hasFixSince reports whether a fix from after a moment is recorded. a.mu is held.
func (a *attempt) hasFixSince(bootNs int64) bool {
	return slices.ContainsFunc(a.covers, func(r wire.Record) bool {
		g, ok := r.Body.(*wire.GPS)
		return ok && g.FixBootNs != nil && *g.FixBootNs > bootNs
	})
}
