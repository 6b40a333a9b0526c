package metrics

import (
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/metrics/series"
	"fieldmesh.dev/fieldmesh/controller/metrics/wifi"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// macs are the addresses of the nodes' radios, from their provenance, as far as they are known.
func (at Attempt) macs() map[string]string {
	out := map[string]string{}
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Provenance); ok && b.MAC != "" {
			out[r.Node] = b.MAC
		}
	}
	return out
}

// heard is a sample of a peer, at a moment of its node's boot clock.
type heard struct {
	*wire.Station
	bootNs int64
}

// stations yields a node's samples of a peer in the window.
func (at Attempt) stations(node, peer string) []heard {
	w := verdict.WindowOf(node, at.records)
	if w == nil {
		return nil
	}
	return at.heard(node, peer, *w)
}

// heard yields a node's samples of a peer in w.
func (at Attempt) heard(node, peer string, w wire.Window) []heard {
	mac := at.macs()[peer]
	var out []heard
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Station); ok && r.Node == node && inside(w, r.TBootNs) && b.Peer == mac {
			out = append(out, heard{b, r.TBootNs})
		}
	}
	return out
}

func (s *set) radio() {
	t := s.at.trial
	var signal, rate mean
	var lowest *float64
	for _, b := range s.at.stations(t.Receiver, t.Sender) {
		dbm := b.SignalNow()
		if dbm == nil {
			continue
		}
		signal.add(*dbm)
		if lowest == nil || *dbm < *lowest {
			lowest = dbm
		}
	}
	s.put("", signalMean, signal.value())
	s.put("", signalMin, lowest)
	s.put("", wifiReceiver, wifi.MeanDbm(t.Receiver, s.at.records))
	s.put("", wifiSender, wifi.MeanDbm(t.Sender, s.at.records))

	for _, b := range s.at.stations(t.Sender, t.Receiver) {
		if b.TxBitrateMbps != nil {
			rate.add(*b.TxBitrateMbps)
		}
	}
	s.put("", bitrate, rate.value())
	w := verdict.WindowOf(t.Sender, s.at.records)
	if w == nil {
		return
	}
	gapNs, asked, forgets := s.at.edgeMaxNs(t.Sender), s.at.radioTold(t.Sender), s.at.isReal(t.Sender)
	rise := func(count func(*wire.Station) *uint64) *float64 {
		told := s.at.stationCounts(t.Sender, t.Receiver, count)
		if forgets {
			told = series.UnknownIsNone(told, asked, gapNs)
		}
		return series.Rise(told, *w, gapNs)
	}
	s.put("", txRetries, rise(func(b *wire.Station) *uint64 { return b.TxRetries }))
	s.put("", txFailed, rise(func(b *wire.Station) *uint64 { return b.TxFailed }))
	s.put("", queueDrops, series.Rise(s.at.queueDrops(t.Sender), *w, gapNs))
}

// stationCounts returns a count that a node's radio keeps of a peer, over all
// of the attempt; nil where the peer's address is not known and it could be
// one of several.
func (at Attempt) stationCounts(node, peer string, count func(*wire.Station) *uint64) []series.Count {
	var out []series.Count
	for _, h := range at.heard(node, peer, wire.Window{OpenBootNs: math.MinInt64, CloseBootNs: math.MaxInt64}) {
		if n := count(h.Station); n != nil {
			out = append(out, series.Count{BootNs: h.bootNs, N: *n})
		}
	}
	return out
}

// isReal reports whether a node's radio is one of the kernel's, which forgets peers. Of an
// emulated one the provenance says nothing.
func (at Attempt) isReal(node string) bool {
	return slices.ContainsFunc(at.records, func(r wire.Record) bool {
		p, ok := r.Body.(*wire.Provenance)
		return ok && r.Node == node && p.Radio != nil
	})
}

// radioTold are the moments at which a node's radio told whom it knows.
func (at Attempt) radioTold(node string) (out []int64) {
	for _, r := range at.records {
		switch r.Body.(type) {
		case *wire.Survey, *wire.Station:
			if r.Node == node {
				out = append(out, r.TBootNs)
			}
		}
	}
	return out
}

func (at Attempt) queueDrops(node string) []series.Count {
	var out []series.Count
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Survey); ok && r.Node == node && b.QueueDrops != nil {
			out = append(out, series.Count{BootNs: r.TBootNs, N: *b.QueueDrops})
		}
	}
	return out
}

// edgeMaxNs is how old a node's newest sample at an edge of the window may be: three beats.
func (at Attempt) edgeMaxNs(node string) int64 { return 3 * at.beatNs(node) }

// beatNs is the period of a node's sampler: 10 Hz, or what the plan says of relays.
func (at Attempt) beatNs(node string) int64 {
	hz := wire.SampleHzMin
	if at.trial.RelaySampleHz != nil && at.trial.OnlyRelays(node) {
		hz = *at.trial.RelaySampleHz
	}
	return 1e9 / int64(hz)
}
