package metrics

import (
	"cmp"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Trace is what one connection's sender did over the window.
type Trace struct {
	Flow   string
	Stream int
	Points []TracePoint
	Marks  []TraceMark
}

// TracePoint is one sample of tcp_info.
type TracePoint struct {
	S                float64 // since the window opened
	CwndSegments     float64
	SsthreshSegments *float64 // absent while infinite
	RTTMs            *float64 // smoothed; absent before the first
	AckedMB          float64  // the sequence number: payload acknowledged since the connection began
}

// TraceMark is an event; it lies in (FromS, S] when it was told from samples,
// and is of the moment S when the kernel told it.
type TraceMark struct {
	S     float64
	FromS *float64
	Event string // retransmission | failed_retransmission | rto | recovery | recovery_end
	Count int
}

// Traces gives every data connection of the measured flows that the trial's sender
// sends, as its samples and events have it, within the window; none without a window.
func (at Attempt) Traces() []Trace {
	w := verdict.WindowOf(at.trial.Sender, at.records)
	if w == nil {
		return nil
	}
	measured := map[string]bool{}
	for _, f := range at.trial.Traffic {
		measured[f.Name] = !f.Background && f.From == at.trial.Sender
	}
	known := map[uint64]*Trace{}
	of := func(flow string, stream *int, cookie uint64) *Trace {
		if stream == nil || !measured[flow] {
			return nil
		}
		if known[cookie] == nil {
			known[cookie] = &Trace{Flow: flow, Stream: *stream}
		}
		return known[cookie]
	}
	for _, r := range at.records {
		if r.Node != at.trial.Sender || !inside(*w, r.TBootNs) {
			continue
		}
		s := float64(r.TBootNs-w.OpenBootNs) / 1e9
		switch b := r.Body.(type) {
		case *wire.TCPSample:
			if t := of(b.Flow, b.Stream, b.Cookie); t != nil && !b.Unconnected() {
				t.Points = append(t.Points, tracePoint(s, b))
			}
		case *wire.TCPEvent:
			if t := of(b.Flow, b.Stream, b.Cookie); t != nil {
				m := TraceMark{S: s, Event: b.Event, Count: int(b.Count)}
				if b.FromBootNs != nil {
					m.FromS = new(float64(*b.FromBootNs-w.OpenBootNs) / 1e9)
				}
				t.Marks = append(t.Marks, m)
			}
		}
	}
	out := make([]Trace, 0, len(known))
	for _, t := range known {
		slices.SortStableFunc(t.Points, func(a, b TracePoint) int { return cmp.Compare(a.S, b.S) })
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Trace) int {
		return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Stream, b.Stream))
	})
	return out
}

func tracePoint(s float64, b *wire.TCPSample) TracePoint {
	p := TracePoint{S: s, CwndSegments: float64(b.CwndSegments), AckedMB: float64(b.BytesAcked) / 1e6}
	if b.SsthreshSegments != nil {
		p.SsthreshSegments = new(float64(*b.SsthreshSegments))
	}
	if b.RTTUs > 0 {
		p.RTTMs = new(float64(b.RTTUs) / 1e3)
	}
	return p
}

// MovingSpanS is the span over which P3 averages the congestion window.
const MovingSpanS = 5

// MovingCwnd is the mean of the connections' congestion windows over the last
// MovingSpanS seconds, or since the first sample, at each of the moments; absent
// where there is no sample in that span.
func MovingCwnd(traces []Trace, moments []float64) []*float64 {
	type sample struct{ s, v float64 }
	var all []sample
	for _, t := range traces {
		for _, p := range t.Points {
			all = append(all, sample{p.S, p.CwndSegments})
		}
	}
	slices.SortFunc(all, func(a, b sample) int { return cmp.Compare(a.s, b.s) })
	out := make([]*float64, len(moments))
	var sum float64
	from, to := 0, 0
	for i, at := range moments { // in order, so that each sample comes and goes once
		for ; to < len(all) && all[to].s <= at; to++ {
			sum += all[to].v
		}
		for ; from < to && all[from].s <= at-MovingSpanS; from++ {
			sum -= all[from].v
		}
		if to > from {
			out[i] = new(sum / float64(to-from))
		}
	}
	return out
}
