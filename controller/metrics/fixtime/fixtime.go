// Package fixtime tells when a node's fixes were: by the receiver's own time, or
// when they arrived. Where the node was between them is track's.
package fixtime

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// latencyMax is how long after its moment a fix is taken to arrive at most: as long
	// as a line of 4800 baud (NMEA 0183) takes for a receiver's set of sentences.
	latencyMax = 500 * time.Millisecond
	// syncMaxNs is how uncertain true time may be for a receiver's own time to say
	// more about a fix than its arrival.
	syncMaxNs = int64(100 * time.Millisecond)
	// heldMaxNs is how old a fix may be when it arrives; beyond it the receiver's
	// date is wrong, or it does not count in UTC.
	heldMaxNs = int64(2 * time.Second)
)

// Of are the times of a node's fixes by its boot clock, within ± offS: those that
// the receiver tells, where true time is known on the node, else those of their
// arrival. Where by that time even the quickest fix came later than fixes do, either
// the wall clock is ahead of true time, as it is by a server that has not UTC, or the
// receiver is slow (gpsd takes 0.704 s for one of SiRF at 4800 baud, driver_sirf.c). A
// fix then was somewhere between what the receiver tells and its arrival.
func Of(node string, records []wire.Record, fixes []verdict.Fix) (ns []int64, offS float64) {
	arrivals := make([]int64, len(fixes))
	for i, f := range fixes {
		arrivals[i] = f.BootNs
	}
	told, clocks := receiversTimes(node, records), trueTime(node, records)
	if len(clocks) == 0 || len(fixes) == 0 {
		return arrivals, latencyMax.Seconds()
	}
	quickest, slowest := int64(math.MaxInt64), int64(0) // at least, and at most
	for i, f := range fixes {
		utc, known := told[f.BootNs]
		k := clocks[0]
		for _, c := range clocks {
			if c.atNs <= f.BootNs {
				k = c
			}
		}
		moment := utc.UnixNano() - k.aheadNs
		late := f.BootNs - moment
		if !known || late < -k.offNs || late > heldMaxNs || i > 0 && moment <= ns[i-1] {
			return arrivals, latencyMax.Seconds()
		}
		ns, offS = append(ns, moment), max(offS, float64(k.offNs)/1e9)
		quickest, slowest = min(quickest, late-k.offNs), max(slowest, late+k.offNs)
	}
	if quickest > latencyMax.Nanoseconds() {
		return arrivals, float64(slowest) / 1e9
	}
	return ns, offS
}

// receiversTimes are the receiver's own times of fixes, by their arrival.
func receiversTimes(node string, records []wire.Record) map[int64]time.Time {
	out := map[int64]time.Time{}
	for _, r := range records {
		if g, ok := r.Body.(*wire.GPS); ok && r.Node == node && g.FixBootNs != nil {
			if utc, err := time.Parse(time.RFC3339Nano, g.TimeUTC); err == nil { // empty: it told none
				out[*g.FixBootNs] = utc
			}
		}
	}
	return out
}

// trueClock is how far true time is ahead of a node's boot clock, ± offNs.
type trueClock struct{ atNs, aheadNs, offNs int64 }

// trueTime is what a node knows of true time in the course of an attempt; nothing
// as soon as its wall clock was stepped or is not kept. A clock that is kept by a
// receiver's sentences alone is as late as they are, and tells nothing of it.
func trueTime(node string, records []wire.Record) (out []trueClock) {
	for _, r := range records {
		b, ok := r.Body.(*wire.WallClock)
		if !ok || r.Node != node {
			continue
		}
		kept := b.Sync == "synchronised" && b.SyncOffsetNs != nil && b.SyncUncertaintyNs != nil
		if !kept || b.Unset || b.SteppedNs != nil || !independent(b.SyncSource) {
			return nil
		}
		// chrony works on the offset that it last reported: it may be gone by now.
		off := *b.SyncUncertaintyNs + max(*b.SyncOffsetNs, -*b.SyncOffsetNs)
		if off > syncMaxNs {
			return nil
		}
		out = append(out, trueClock{r.TBootNs, b.OwnWallOffsetNs + *b.SyncOffsetNs, off})
	}
	slices.SortStableFunc(out, func(a, b trueClock) int { return cmp.Compare(a.atNs, b.atNs) })
	return out
}

// independent reports whether chrony follows something that is not a receiver's
// sentences: a server, or a pulse per second.
func independent(source string) bool {
	_, err := netip.ParseAddr(source)
	return err == nil || strings.HasPrefix(source, "PPS")
}
