//go:build e2e

package influx

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// busyScript is a run as large as a real one: per trial two nodes, each with
// seven sockets sampled for 15 s.
func busyScript(trials int) []step {
	s := &scripted{seq: map[string]uint64{}, nowNs: 1000 * second}
	var out []step
	for k := 1; k <= trials; k++ {
		out = append(out, s.clocks(k), s.sockets("car", k, 150), s.sockets("roadside", k, 150), s.decide(k))
	}
	return out
}

func (s *scripted) sockets(node string, trial, ticks int) step {
	var rs []wire.Record
	for tick := range ticks {
		for stream := range 7 {
			b := &wire.TCPSample{
				Flow: "main", Stream: new(stream), Local: "10.77.0.1:40001", Remote: "10.77.0.2:5000",
				Cookie: uint64(stream), State: "ESTABLISHED",
				Congestion: "reno", CwndSegments: uint32(10 + tick%40), SsthreshSegments: new(uint32(20)),
				MSSBytes: 1448, RTTUs: uint32(20000 + 37*tick),
				RTTVarUs: 900, RTOUs: 220000, Retransmits: uint32(tick / 9), BytesAcked: uint64(tick) * 31000,
				BytesReceived: uint64(tick) * 31000,
				BytesSent:     new(uint64(tick) * 32000), BytesRetrans: new(uint64(tick) * 900),
				DeliveryRateBps: new(2.4e6 + float64(tick)), PacingRateBps: new(5e6),
			}
			rs = append(rs, wire.Record{Header: s.header(node, trial), Body: b})
		}
	}
	return func(t testing.TB, a *archive.Archive) { t.Helper(); appendAll(t, a, node, rs) }
}
