package metrics

import (
	"math"
	"sort"

	"fieldmesh.dev/fieldmesh/controller/metrics/series"
	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Place is a position on a plane that touches the Earth at some origin; within
// the few kilometres of a campaign it is as good as the fixes are.
type Place struct{ EastM, NorthM float64 }

// Heard is what one node's radio reported about another at a moment of the
// window, and where the two were by GPS.
type Heard struct {
	S         float64 // since the window opened
	Of, At    Place   // of the node that was heard, and of the one that heard
	SignalDbm *float64
}

// Origin is where a plane touches the Earth.
type Origin struct{ LatDeg, LonDeg float64 }

// place is a position on the plane.
func (o Origin) place(latDeg, lonDeg float64) Place {
	const rad = math.Pi / 180
	return Place{EastM: earth.MeanRadiusM * earth.EastDeg(o.LonDeg, lonDeg) * rad * math.Cos(o.LatDeg*rad),
		NorthM: earth.MeanRadiusM * (latDeg - o.LatDeg) * rad}
}

// Origin is the attempt's first position; false when it has none.
func (at Attempt) Origin() (Origin, bool) {
	for _, r := range at.records {
		if g, ok := r.Body.(*wire.GPS); ok && g.LatDeg != nil && g.LonDeg != nil {
			return Origin{*g.LatDeg, *g.LonDeg}, true
		}
	}
	return Origin{}, false
}

// Trial is the attempt's trial, as it was planned.
func (at Attempt) Trial() wire.Trial { return at.trial }

// tickS is how coarsely a driver may tell how long ago it heard a frame: a jiffy at the
// kernel's lowest HZ, 100.
const tickS = 0.01

// heardS is for how long what a radio told is the present.
const heardS = wire.HeardMs / 1e3

// Hears are the moments of the window, at most 10 a second, at which it is known
// where both nodes were. Each frame counts once, at the moment at which it was
// heard; the signal is absent at those at which nothing had been heard for 300 ms:
// the silence of a radio that listened. At moments at which the node's radio was
// not sampled there is none, nor at those at which it listed the other without its
// signal or without when it was heard, nor at those of a silence in which the other had
// lost no frame: it had sent none, as TCP does after a loss, and what would have been
// heard is not known. By a radio that never tells both there is nothing.
func (at Attempt) Hears(node, of string, o Origin) []Heard {
	w := verdict.WindowOf(node, at.records)
	if w == nil || at.Untold(node, of) {
		return nil
	}
	signal, sampled, untold := at.signalOf(node, of, *w)
	lost, counts := at.lostTo(node, of)
	here, there := at.track(node), at.track(of)
	var out []Heard
	newest, newestLost := math.Inf(-1), math.Inf(-1)
	for i := range Ticks(at.windowSeconds()) {
		h := Heard{S: float64(i) / TickHz}
		if sampled.Last(h.S, heardS) == nil {
			continue
		}
		if k := sort.SearchFloat64s(signal.S, h.S+1e-9) - 1; k >= 0 && h.S-signal.S[k] <= heardS {
			if signal.S[k]-newest < tickS {
				continue
			}
			newest = signal.S[k]
			h.S, h.SignalDbm = newest, &signal.V[k]
		} else if untold.Last(h.S, heardS) != nil {
			continue
		} else if counts {
			told := lost.Last(h.S, 1/float64(TickHz))
			if told == nil || *told == newestLost {
				continue
			}
			newestLost = *told
		}
		a, okA := there.Place(h.S)
		b, okB := here.Place(h.S)
		if okA && okB {
			h.Of, h.At = o.place(a.Lat, a.Lon), o.place(b.Lat, b.Lon)
			out = append(out, h)
		}
	}
	return out
}

// lostTo are the moments at which a node's peer told that attempts at frames to it had failed
// since the moment before. False when it never reported any: not every driver counts them.
func (at Attempt) lostTo(node, of string) (lost series.Series, counts bool) {
	w := verdict.WindowOf(of, at.records)
	var before uint64
	for i, b := range at.stations(of, node) {
		failed := b.failed()
		if i > 0 && failed > before {
			s := float64(b.bootNs-w.OpenBootNs) / 1e9
			lost.Add(s, s)
		}
		before = failed
		counts = counts || failed > 0
	}
	return lost, counts
}

// failed counts the attempts at frames to a peer that have failed so far.
func (h heard) failed() (n uint64) {
	for _, told := range []*uint64{h.TxRetries, h.TxFailed} {
		if told != nil {
			n += *told
		}
	}
	return n
}

// Untold reports whether nothing is known of what a node's radio heard of another: its
// address is not known, or the radio lists it, but never with both its signal and when
// it was heard: not every driver tells them. Of a peer's first frame mac80211 does not tell
// the signal either, so that one frame, which counts as heard for HeardMs, shows nothing.
func (at Attempt) Untold(node, of string) bool {
	signal, _, untold := at.signalOf(node, of, wire.Window{})
	n := len(untold.S)
	return at.macs()[of] == "" || len(signal.S) == 0 && n > 0 && untold.S[n-1]-untold.S[0] > heardS+0.01
}

// signalOf is a node's signal of another by the moments at which it was heard; the
// moments at which its radio was sampled at all; and those at which it listed the other
// without when it was heard, or without the signal of a frame just heard. An emulated
// radio tells both, and lists with neither whom it only sent to: that is a silence.
func (at Attempt) signalOf(node, of string, w wire.Window) (signal, sampled, untold series.Series) {
	mac, kernels := at.macs()[of], at.isReal(node)
	for _, r := range at.records {
		s := float64(r.TBootNs-w.OpenBootNs) / 1e9
		if r.Node != node {
			continue
		}
		switch b := r.Body.(type) {
		case *wire.Survey:
			sampled.Add(s, 0)
		case *wire.Station:
			sampled.Add(s, 0)
			if b.Peer != mac {
				continue
			}
			switch dbm, ms := b.SignalNow(), b.InactiveMs; {
			case dbm != nil:
				signal.Add(s-*ms/1e3, *dbm)
			case ms == nil && (kernels || b.SignalDbm != nil), ms != nil && *ms <= wire.HeardMs:
				untold.Add(s, 0)
			}
		}
	}
	return signal, sampled, untold
}
