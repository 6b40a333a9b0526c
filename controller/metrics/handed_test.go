package metrics

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// sender is a's record of the iperf3 client of a flow.
func sender(flow string, endedS float64, output, fault string) wire.Record {
	var whole json.RawMessage
	if output != "" {
		whole = json.RawMessage(output)
	}
	return told("a", endedS, &wire.Iperf3{Flow: flow, Side: "client", Ended: wire.EndedItself, Error: fault,
		Output: whole, StartedBootNs: new(tenS), EndedBootNs: new(tenS + int64(endedS*1e9))})
}

// seconds is what iperf3 prints of a stream that sends evenly for n seconds.
func seconds(port, perS, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = interval(i, perS)
	}
	return printed(port, list, fmt.Sprintf(`{"streams": [{"udp": {"socket": 5, "packets": %d}}]}`, perS*n), "")
}

func interval(i, packets int) string {
	return fmt.Sprintf(`{"streams": [{"socket": 5, "start": %d.0001, "end": %d.0001, "packets": %d}]}`, i, i+1, packets)
}

func printed(port int, seconds []string, end, fault string) string {
	return fmt.Sprintf(`{"start": {"connected": [{"socket": 5, "local_port": %d}], "cookie": "c"},
		"intervals": [%s], "end": %s, "error": %q}`, port, strings.Join(seconds, ","), end, fault)
}

// neverStood is what iperf3 prints whose kernel has no way.
const neverStood = `{"start": {"connected": [], "version": "iperf 3.12"}, "intervals": [], "end": {},
	"error": "unable to connect to server: Network is unreachable"}`

func steady() wire.Flow {
	return wire.Flow{Name: "steady", Kind: "iperf3_udp", From: "a", To: "b", Port: 5001, Streams: 1,
		DurationS: 10, PayloadBytes: new(512), BitrateBps: new(10.0 * 8 * 512)}
}

// numbered is a datagram of the steady flow's.
func numbered(n int) packet {
	return packet{udp: true, client: 30000, srv: 5001, seq: uint32(n), payload: 512}
}

// first sends a steady flow's first n datagrams, 10 a second from 0.05 s on.
func (p *path) first(n int) {
	for i := range n {
		p.send(50*msNs+int64(i)*100*msNs, numbered(i+1), 10*msNs)
	}
}

func absent(t *testing.T, rows []Row, flow string, names ...string) {
	t.Helper()
	for _, name := range names {
		if v := Value(rows, flow, name); v != nil {
			t.Errorf("%s of %q is %g, and nobody knows", name, flow, *v)
		}
	}
}

// The neighbour vanishes: iperf3 sends on, and nothing of it comes to the link.
func TestWhatNeverCameToTheLinkWasSent(t *testing.T) {
	trial := wire.Trial{Traffic: []wire.Flow{steady()}}
	p := &path{t: t, ends: map[string][]seen{}}
	p.first(40)
	rows := p.rows(trial, sender("steady", 10.2, seconds(30000, 10, 10), ""))
	want(t, rows, "steady", LinkSent, 40)
	want(t, rows, "steady", "packets_sent", 100)
	want(t, rows, "steady", DeliveryFraction, 0.4)
	// One that was interrupted leaves its last second out.
	list := []string{}
	for i := range 9 {
		list = append(list, interval(i, 10))
	}
	list = append(list, `{"streams": [{"socket": 5, "start": 10.0001, "end": 12, "packets": 0}]}`)
	cut := printed(30000, list, `{"streams": [{"udp": {"socket": 5, "packets": 100}}]}`, "interrupt")
	rows = p.rows(trial, sender("steady", 12, cut, "interrupt"))
	want(t, rows, "steady", "packets_sent", 100)
	// Without iperf3's word nobody knows how many there were.
	for _, silent := range [][]wire.Record{nil, {sender("steady", 12, "", "")}} {
		rows = p.rows(trial, silent...)
		absent(t, rows, "steady", "packets_sent", DeliveryFraction, PacketLossPercent, GoodputRatio)
		want(t, rows, "steady", LinkSent, 40)
	}
	// The captures alone tell it where they have a datagram behind the close.
	p = &path{t: t, ends: map[string][]seen{}}
	p.first(101)
	rows = p.rows(trial)
	want(t, rows, "steady", "packets_sent", 100)
	want(t, rows, "steady", DeliveryFraction, 1)
}

// An iperf3 that the network ended has sent what it says, and prints its last second
// twice. Its flow is none of kind cbr, whose figures are of all that was due.
func TestWhatAnEndedIperf3SentIsKnown(t *testing.T) {
	trial := wire.Trial{Traffic: []wire.Flow{steady()}}
	p := &path{t: t, ends: map[string][]seen{}}
	p.first(34)
	fault := "unable to write to stream socket: Network is unreachable"
	died := printed(30000, []string{interval(0, 10), interval(1, 10), interval(2, 10), interval(2, 10)}, "{}", fault)
	rows := p.rows(trial, sender("steady", 3.45, died, fault))
	want(t, rows, "steady", "packets_sent", 34)
	want(t, rows, "steady", DeliveryFraction, 1)
	absent(t, rows, "", "cbr_flows", "cbr_packets_unsent", CBRDelivery, CBRLatencyMs)
	// One that never had a connection has sent nothing at all.
	p = &path{t: t, ends: map[string][]seen{}}
	rows = p.rows(trial, sender("steady", 0.01, neverStood, "unable to connect to server: Network is unreachable"))
	want(t, rows, "steady", "packets_sent", 0)
	absent(t, rows, "steady", DeliveryFraction)
	// One that came to send after 4 s has lost those.
	p = &path{t: t, ends: map[string][]seen{}}
	for i := range 70 {
		p.send((4000+int64(i)*100)*msNs, numbered(i+1), 10*msNs)
	}
	rows = p.rows(trial, sender("steady", 12, seconds(30000, 10, 6), "interrupt"))
	want(t, rows, "steady", DeliveryFraction, 1)
}

// What waited for the neighbour's address is late by that, and belongs to the
// window in which it was handed on.
func TestWhatWaitedBelowTheSocketIsLate(t *testing.T) {
	p := &path{t: t, ends: map[string][]seen{}}
	flow := steady()
	flow.StartS = -1
	flow.DurationS = 11
	for i := range 110 { // from 1 s before the window's open on; 50 to 59 leave together
		k := numbered(i + 1)
		at := int64(i-10)*100*msNs + msNs
		if i >= 50 && i < 60 {
			k.held = 5000*msNs - at
		}
		p.send(at, k, 10*msNs)
	}
	rows := p.rows(wire.Trial{Traffic: []wire.Flow{flow}}, sender("steady", 10.2, seconds(30000, 10, 11), ""))
	want(t, rows, "steady", "packets_sent", 100)
	want(t, rows, "steady", DeliveryFraction, 1)
	want(t, rows, "steady", OneWayMeanMs, 10+(999+899+799+699+599+499+399+299+199+99)/100.0)
	want(t, rows, "steady", "link_one_way_delay_mean_ms", 10)
}
