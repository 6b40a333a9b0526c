package metrics

import (
	"fieldmesh.dev/fieldmesh/protocols/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// mac is the address of a node's radio, from its provenance; empty when it is
// not known.
func (at Attempt) mac(node string) string {
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Provenance); ok && r.Node == node {
			return b.MAC
		}
	}
	return ""
}

// stations yields a node's samples of a peer in the window. Where the peer's
// address is not known, a node that sees only one peer must mean that one.
func (at Attempt) stations(node, peer string) []*wire.Station {
	w := verdict.WindowOf(node, at.records)
	if w == nil {
		return nil
	}
	mac := at.mac(peer)
	var out []*wire.Station
	seen := map[string]bool{}
	for _, r := range at.records {
		b, ok := r.Body.(*wire.Station)
		if !ok || r.Node != node || !inside(*w, r.TBootNs) || (mac != "" && b.Peer != mac) {
			continue
		}
		seen[b.Peer] = true
		out = append(out, b)
	}
	if len(seen) > 1 {
		return nil
	}
	return out
}

// heardMs is how long ago a peer may have been heard for its signal to be the
// present one. A radio tells the signal of the last frame for as long as it
// knows the peer, however long that has been silent.
const heardMs = 300

func signalNow(b *wire.Station) *float64 {
	if b.InactiveMs != nil && *b.InactiveMs > heardMs {
		return nil
	}
	return b.SignalDbm
}

func (s *set) radio() {
	t := s.at.trial
	var signal, rate mean
	var lowest *float64
	for _, b := range s.at.stations(t.Receiver, t.Sender) {
		dbm := signalNow(b)
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

	sender := s.at.stations(t.Sender, t.Receiver)
	for _, b := range sender {
		if b.TxBitrateMbps != nil {
			rate.add(*b.TxBitrateMbps)
		}
	}
	s.put("", bitrate, rate.value())
	s.put("", txRetries, rise(sender, func(b *wire.Station) *uint64 { return b.TxRetries }))
	s.put("", txFailed, rise(sender, func(b *wire.Station) *uint64 { return b.TxFailed }))
	s.put("", queueDrops, rise(s.at.surveys(t.Sender), func(b *wire.Survey) *uint64 { return b.QueueDrops }))
}

func (at Attempt) surveys(node string) []*wire.Survey {
	w := verdict.WindowOf(node, at.records)
	if w == nil {
		return nil
	}
	var out []*wire.Survey
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Survey); ok && r.Node == node && inside(*w, r.TBootNs) {
			out = append(out, b)
		}
	}
	return out
}

// rise is how much a cumulative count grew over samples, absent with fewer than
// two. A count that fell was reset: what it then reached is added.
func rise[T any](samples []*T, count func(*T) *uint64) *float64 {
	var total float64
	var before *uint64
	n := 0
	for _, b := range samples {
		now := count(b)
		if now == nil {
			continue
		}
		n++
		if before != nil && *now >= *before {
			total += float64(*now - *before)
		} else if before != nil {
			total += float64(*now)
		}
		before = now
	}
	if n < 2 {
		return nil
	}
	return &total
}
