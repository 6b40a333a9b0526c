package verdict

import (
	"cmp"
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/clockfit"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// FixAgeMsDefault is how long a fix counts where the campaign sets no limit:
// one and a half periods of a 1 Hz receiver.
const FixAgeMsDefault = 1500

// Covariates are the measured conditions of one attempt. Absent is not
// measured.
type Covariates struct {
	InBandShare   *float64  // share of the window's time within the speed band, by fresh fixes
	MeanSpeedMps  *float64  // over the time that fresh fixes cover
	FixModeMin    *float64  // lowest mode of any tick of the car in the window
	FixAgeMsMax   *float64  // oldest the car's newest fix was at any moment of the window
	Roadside      *Receiver // of the roadside node; nil without one
	ClockErrorMs  *float64  // uncertainty of the nodes' alignment
	ClockSource   string    // what ClockErrorMs was made from
	LatenessShare *float64  // summed lateness of the emulated medium ÷ window
}

// Fix is one position report, at the moment when it reached its node.
type Fix struct {
	BootNs   int64
	SpeedMps *float64
	LatDeg   *float64
	LonDeg   *float64
	// Of the motion, where the receiver tells them.
	TrackDeg, SpeedErrMps *float64
}

// WindowOf finds a node's measuring window by its own clock; nil when it has
// none.
func WindowOf(node string, records []wire.Record) *wire.Window {
	for _, r := range records {
		if w, ok := r.Body.(*wire.Window); ok && r.Node == node {
			return w
		}
	}
	return nil
}

// Fixes lists a node's fixes in order of time, each once.
func Fixes(node string, records []wire.Record) []Fix {
	var out []Fix
	for _, r := range records {
		g, ok := r.Body.(*wire.GPS)
		if !ok || r.Node != node || g.FixBootNs == nil {
			continue
		}
		out = append(out, Fix{BootNs: *g.FixBootNs, SpeedMps: g.SpeedMps, LatDeg: g.LatDeg, LonDeg: g.LonDeg,
			TrackDeg: g.TrackDeg, SpeedErrMps: g.SpeedErrMps})
	}
	slices.SortStableFunc(out, func(a, b Fix) int { return cmp.Compare(a.BootNs, b.BootNs) })
	return slices.CompactFunc(out, func(a, b Fix) bool { return a.BootNs == b.BootNs })
}

// Measure computes the covariates of one attempt from its records.
func Measure(t wire.Trial, records []wire.Record) Covariates {
	var m Covariates
	if w := WindowOf(t.Car, records); t.Car != "" && w != nil {
		fixes := Fixes(t.Car, records)
		m.FixModeMin = fixModeMin(t.Car, *w, records)
		m.FixAgeMsMax = fixAgeMsMax(t.Car, *w, fixes, records)
		m.InBandShare, m.MeanSpeedMps = speeds(t, *w, fixes)
	}
	m.Roadside = receiverOf(t.Roadside, records)
	m.ClockErrorMs, m.ClockSource = clockError(t, records)
	m.LatenessShare = latenessShare(records)
	return m
}

// speeds weighs by time: a fix counts until the next fix, or until it is too
// old; time that no fresh fix covers is out of band.
func speeds(t wire.Trial, w wire.Window, fixes []Fix) (share, mean *float64) {
	var covered, inBand, metres float64
	window := float64(w.CloseBootNs - w.OpenBootNs)
	if window <= 0 {
		return nil, nil
	}
	for i, f := range fixes {
		until := f.BootNs + int64(freshMs(t)*1e6)
		if i+1 < len(fixes) {
			until = min(until, fixes[i+1].BootNs)
		}
		span := float64(min(until, w.CloseBootNs) - max(f.BootNs, w.OpenBootNs))
		if span <= 0 || f.SpeedMps == nil {
			continue
		}
		covered += span
		metres += span * *f.SpeedMps
		if inBandOf(t, *f.SpeedMps) {
			inBand += span
		}
	}
	if covered == 0 {
		return nil, nil
	}
	if t.SpeedMps != nil && t.Acceptance.SpeedBandMps != nil {
		share = new(inBand / window)
	}
	return share, new(metres / covered)
}

func freshMs(t wire.Trial) float64 {
	if t.Acceptance.FixAgeMsMax != nil {
		return *t.Acceptance.FixAgeMsMax
	}
	return FixAgeMsDefault
}

// inBandOf allows for the rounding of decimal speeds to binary: 8.3 + 0.5 is a
// speed of the band.
func inBandOf(t wire.Trial, speedMps float64) bool {
	if t.SpeedMps == nil || t.Acceptance.SpeedBandMps == nil {
		return false
	}
	const rounding = 1e-9
	off := speedMps - *t.SpeedMps
	return max(off, -off) <= *t.Acceptance.SpeedBandMps+rounding
}

func fixModeMin(node string, w wire.Window, records []wire.Record) *float64 {
	var lowest *float64
	for _, r := range records {
		g, ok := r.Body.(*wire.GPS)
		if !ok || r.Node != node || r.TBootNs < w.OpenBootNs || r.TBootNs > w.CloseBootNs {
			continue
		}
		if mode := float64(g.Mode); lowest == nil || mode < *lowest {
			lowest = &mode
		}
	}
	return lowest
}

// fixAgeMsMax takes the ages that the node saw and those that the gaps between
// fixes imply, so that missing ticks do not hide a stale fix. It is nil where there
// was no fix when the window opened.
func fixAgeMsMax(node string, w wire.Window, fixes []Fix, records []wire.Record) *float64 {
	var oldest *float64
	saw := func(ms float64) {
		if oldest == nil || ms > *oldest {
			oldest = &ms
		}
	}
	first := int64(math.MaxInt64)
	for _, r := range records {
		g, ok := r.Body.(*wire.GPS)
		if ok && r.Node == node && g.FixAgeMs != nil && r.TBootNs >= w.OpenBootNs && r.TBootNs <= w.CloseBootNs {
			saw(*g.FixAgeMs)
			first = min(first, r.TBootNs-int64(*g.FixAgeMs*1e6))
		}
	}
	for i, f := range fixes {
		first = min(first, f.BootNs)
		until := w.CloseBootNs
		if i+1 < len(fixes) {
			until = min(until, fixes[i+1].BootNs)
		}
		if until > w.OpenBootNs && f.BootNs <= w.CloseBootNs {
			saw(float64(until-f.BootNs) / 1e6)
		}
	}
	if first > w.OpenBootNs {
		return nil
	}
	return oldest
}

// GoUncertaintyNs is by how much the windows of two nodes may lie apart, as far as GO's
// round trips say; nil where none does.
func GoUncertaintyNs(records []wire.Record) (most *float64) {
	for _, r := range records {
		if w, ok := r.Body.(*wire.Window); ok && w.GoUncertaintyUs != nil {
			if ns := *w.GoUncertaintyUs * 1e3; most == nil || ns > *most {
				most = &ns
			}
		}
	}
	return most
}

// ApartNs is by how much times since their windows' openings may be wrong of two nodes whose
// clocks were not compared: they have GO in common, which was answered within its lead, or
// there is no window.
func ApartNs(t wire.Trial, w wire.Window, records []wire.Record) float64 {
	apart := t.Gate.LeadS * 1e9
	if told := GoUncertaintyNs(records); told != nil {
		apart = *told
	}
	return apart + float64(w.CloseBootNs-w.OpenBootNs)*clockfit.DriftMaxPpm/1e6
}

func latenessShare(records []wire.Record) *float64 {
	var worst *float64
	for _, r := range records {
		l, ok := r.Body.(*wire.Lateness)
		if !ok || l.Source != wire.LateMedium || l.WindowS <= 0 {
			continue
		}
		if share := l.SumS / l.WindowS; worst == nil || share > *worst {
			worst = &share
		}
	}
	return worst
}
