package metrics

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var (
	controlSYN = packet{client: 41000, srv: 5000, seq: 6, flags: 2}
	dataSYN    = packet{client: 20000, srv: 5000, seq: 6, flags: 2}
)

func answered(k packet) packet { k.back, k.flags = true, 18; return k }

func bulkTrial() wire.Trial {
	return wire.Trial{Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Port: 5000,
		Streams: 1, ClientPort: 20000}}}
}

// started is a's record of the start of the flow's client.
func started(s float64) wire.Record {
	return told("a", s, &wire.Edge{Edge: "start", Flow: "bulk", DueBootNs: tenS, LateMs: s * 1e3})
}

// gaveUp is that of a client without a connection, without its own start.
func gaveUp(endedS float64) wire.Record {
	r := sender("bulk", endedS, neverStood, "unable to connect to server: No route to host")
	r.Body.(*wire.Iperf3).StartedBootNs = nil
	return r
}

// The first SYN of the control connection is lost, the second comes and is
// answered; the data's connection stands at once.
func TestConnectTimeOfAKnownPath(t *testing.T) {
	p := &path{t: t, ends: map[string][]seen{}}
	p.send(500*msNs, controlSYN)
	p.send(1500*msNs, controlSYN, 20*msNs)
	p.send(1541*msNs, answered(controlSYN))
	p.send(1600*msNs, dataSYN, 20*msNs)
	p.send(1640*msNs, answered(dataSYN))
	p.send(1640*msNs, packet{client: 20000, srv: 5000, seq: 7, flags: 16, payload: 1460}, 21*msNs)
	rows := p.rows(bulkTrial(), started(0.49))
	want(t, rows, "bulk", ConnectTimeMs, 1041)
	want(t, rows, "bulk", "connect_time_uncertainty_ms", 10)
	want(t, rows, "bulk", "handshake_ms", 40)
	want(t, rows, "bulk", "first_segment_ms", 61)
	absent(t, rows, "bulk", TrueLossPercent, ConnectCensoredMs)
	// When the client asked nobody knows without the record of its start.
	absent(t, p.rows(bulkTrial()), "bulk", ConnectTimeMs, ConnectCensoredMs)
	// Without an answer it had asked for as long as the window was open still.
	p = &path{t: t, ends: map[string][]seen{}}
	p.send(500*msNs, controlSYN)
	p.send(1500*msNs, controlSYN)
	rows = p.rows(bulkTrial(), started(0.49), gaveUp(12))
	want(t, rows, "bulk", ConnectCensoredMs, 9500)
	absent(t, rows, "bulk", ConnectTimeMs)
	// What a daemon hides from an older agent's capture nobody knows.
	trial := bulkTrial()
	trial.Routing.Protocol = "aodv"
	rows = p.rows(trial, started(0.49), gaveUp(12))
	absent(t, rows, "bulk", "packets_sent", ConnectCensoredMs, ConnectTimeMs)
	want(t, rows, "bulk", LinkSent, 0)
}

// A SYN that leaves long after its client's start waited for the neighbour.
func TestConnectTimeHoldsTheSearchForTheNeighbour(t *testing.T) {
	p := &path{t: t, ends: map[string][]seen{}}
	p.send(7000*msNs, controlSYN, 5*msNs)
	p.send(7010*msNs, answered(controlSYN))
	p.send(7020*msNs, dataSYN, 5*msNs)
	rows := p.rows(bulkTrial(), started(0.002))
	want(t, rows, "bulk", ConnectTimeMs, 7008)
	want(t, rows, "bulk", "connect_time_uncertainty_ms", 500)
}

// A client that is answered after the close had no connection at the close, and
// one that gave up before asked no longer than until then.
func TestConnectionsAreCensoredWhenTheyWereNoLongerAskedFor(t *testing.T) {
	p := &path{t: t, ends: map[string][]seen{}}
	p.send(500*msNs, controlSYN)
	p.send(9900*msNs, controlSYN, 150*msNs)
	p.send(10_200*msNs, answered(controlSYN))
	p.send(10_300*msNs, dataSYN, 20*msNs)
	p.send(10_350*msNs, answered(dataSYN))
	p.send(10_400*msNs, packet{client: 20000, srv: 5000, seq: 7, flags: 16, payload: 1460}, 21*msNs)
	stood := sender("bulk", 12, printed(20000, nil, "{}", ""), "")
	rows := p.rows(bulkTrial(), started(0.49), stood)
	want(t, rows, "bulk", ConnectCensoredMs, 9500)
	absent(t, rows, "bulk", ConnectTimeMs)

	for endedS, ms := range map[float64]float64{3.1: 3000, 0.1: 0} {
		none := &path{t: t, ends: map[string][]seen{}}
		rows = none.rows(bulkTrial(), started(0.1), gaveUp(endedS))
		want(t, rows, "bulk", ConnectCensoredMs, ms)
		want(t, rows, "bulk", "connect_time_uncertainty_ms", 500)
	}
}

// A capture without a handshake is no sign that there was none.
func TestAConnectionThatTheCaptureMissedIsNotCensored(t *testing.T) {
	stood := sender("bulk", 12, printed(20000, nil, "{}", ""), "")
	for _, cut := range []bool{false, true} {
		p := &path{t: t, ends: map[string][]seen{}}
		if cut { // behind its first packet
			p.send(500*msNs, controlSYN, 5*msNs)
		}
		for _, record := range []wire.Record{stood, sender("bulk", 12, "", "")} {
			absent(t, p.rows(bulkTrial(), started(0.49), record), "bulk", ConnectTimeMs, ConnectCensoredMs)
		}
	}
	// One whose end nobody recorded gave up nobody knows when.
	silent := gaveUp(3)
	silent.Body.(*wire.Iperf3).EndedBootNs = nil
	absent(t, (&path{t: t, ends: map[string][]seen{}}).rows(bulkTrial(), started(0), silent), "bulk", ConnectCensoredMs)
}
