package verdict

import (
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// aheadNs is how long before the window's close the sender's counts are taken that the receiver's at the close are held
// to: more than the edges' samples are off, and than the clocks of nodes that can be accepted differ.
const aheadNs = 5e8

// uncounted says of which flow the receiver counted less up to the window's close than its sender was told half a
// second before that it has (RFC 9293, 3.4: what is acknowledged was received). The receiver's counts are then not all
// there is, and a result would be too small. Of a socket that was reset the last sample is known, so a hundredth and
// two segments may be missing.
func uncounted(t wire.Trial, records []wire.Record) wire.Reason {
	for _, f := range t.Measured() {
		from, to := WindowOf(f.From, records), WindowOf(f.To, records)
		if from == nil || to == nil {
			continue
		}
		acked := counted(f, f.From, from.CloseBootNs-aheadNs, records,
			func(s *wire.TCPSample) uint64 { return s.BytesAcked })
		received := counted(f, f.To, to.CloseBootNs+aheadNs, records,
			func(s *wire.TCPSample) uint64 { return s.BytesReceived })
		if acked-received > max(unsureBytesLeast, unsureShare*acked) {
			return edgeFault("%s counted %.0f bytes of flow %s up to the window's close, and %s had %.0f acknowledged "+
				"%g s before: not all of its sockets were read", f.To, received, f.Name, f.From, acked, aheadNs/1e9)
		}
	}
	return wire.Reason{}
}

// counted is the sum over a flow's sockets on a node of the most that its samples had of a count until a moment.
func counted(f wire.Flow, node string, untilNs int64, records []wire.Record,
	count func(*wire.TCPSample) uint64) (sum float64) {
	type socket struct {
		cookie uint64
		stream int
	}
	most := map[socket]uint64{}
	for _, r := range records {
		s, ok := r.Body.(*wire.TCPSample)
		if ok && r.Node == node && r.TBootNs <= untilNs && s.Flow == f.Name && s.Stream != nil && !s.Stranger {
			k := socket{s.Cookie, *s.Stream}
			most[k] = max(most[k], count(s))
		}
	}
	for _, n := range most {
		sum += float64(n)
	}
	return sum
}

// last holds of each socket the newest sample up to half a second before the window's close, and after.
type last struct {
	closes  map[string]int64 // of each node's window, once it is known
	samples map[lastKey]wire.Record
}

type lastKey struct {
	node   string
	cookie uint64
	stream int
	until  int64 // in ns, from the window's close
}

func newLast() last { return last{closes: map[string]int64{}, samples: map[lastKey]wire.Record{}} }

func (l *last) take(r wire.Record, s *wire.TCPSample) {
	closeNs, known := l.closes[r.Node]
	for _, until := range []int64{-aheadNs, aheadNs} {
		if !known || r.TBootNs <= closeNs+until {
			l.samples[lastKey{r.Node, s.Cookie, *s.Stream, until}] = r
		}
	}
}
