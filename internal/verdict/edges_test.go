package verdict

import (
	"math"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// sampledAt is a node's edge, so many milliseconds late.
func sampledAt(node, edge string, ms float64) wire.Record {
	s := map[string]float64{"close": 10}[edge]
	return at(node, s+ms/1e3, &wire.Edge{Edge: edge, LateMs: ms, Sockets: 6, DueBootNs: openNs + int64(s*1e9)})
}

func started(node string, ms float64) wire.Record {
	return at(node, ms/1e3, &wire.Edge{Edge: "start", Flow: "main", LateMs: ms})
}

func stranger(edge string, s float64, bytes uint64) wire.Record {
	return at("roadside", s, &wire.TCPSample{Flow: "main", Edge: edge, Remote: "10.77.0.66:50000", BytesReceived: bytes,
		Stranger: true})
}

// The edges of the window are those of a result only if every node at the end
// of a flow of TCP sampled its sockets there and then.
//
//attack:air a stranger on the mesh who talks to a flow's server
func TestEdges(t *testing.T) {
	inTime := []wire.Record{sampledAt("car", "open", 1), started("car", 99), sampledAt("car", "close", 15),
		sampledAt("roadside", "open", 2), sampledAt("roadside", "close", 49), sampledAt("relay", "open", 900),
		sampledAt("relay", "close", 900)}
	but := func(node, edge string, more ...wire.Record) []wire.Record {
		return append(without(inTime, func(r wire.Record) bool {
			return r.Node == node && r.Body.(*wire.Edge).Edge == edge
		}), more...)
	}
	unknown := sampledAt("roadside", "close", 1)
	unknown.Body.(*wire.Edge).Unknown = 2
	resetUnnoticed := sampledAt("car", "close", 1)
	resetUnnoticed.Body.(*wire.Edge).Unknown = 1
	crowd := sampledAt("roadside", "close", 1)
	crowd.Body.(*wire.Edge).Unwatched = 7
	between := func(edge string, earlyMs, ms float64) wire.Record {
		r := sampledAt("roadside", edge, ms)
		r.Body.(*wire.Edge).EarlyMs = &earlyMs
		return r
	}
	for name, c := range map[string]struct {
		edges       []wire.Record
		provisional string
		final       string
	}{
		"in time":                 {inTime, "", ""},
		"a version without edges": {nil, "", ""},
		"the receiver late at the end": {but("roadside", "close", sampledAt("roadside", "close", 250)), "",
			"edge: roadside sampled its sockets at the window's close 250 ms late, limit 50"},
		"the sender late at the end": {but("car", "close", sampledAt("car", "close", 51)), "edge: car",
			"edge: car sampled its sockets at the window's close 51 ms late, limit 50"},
		"the receiver late to open": {but("roadside", "open", sampledAt("roadside", "open", 60)), "",
			"edge: roadside sampled its sockets at the window's open"},
		"late, and sampled just before": {but("roadside", "close", between("close", 25, 250)), "", ""},
		"held up over the edge": {but("roadside", "close", between("close", 26, 250)), "",
			"edge: roadside sampled its sockets 26 ms before the window's close, and then 250 ms late, limit 25"},
		"sampled before, and late": {but("roadside", "open", between("open", 40, 30)), "",
			"edge: roadside sampled its sockets at the window's open 30 ms late, limit 25"},
		"no edge of the receiver's at all": {without(inTime, func(r wire.Record) bool { return r.Node == "roadside" }),
			"",
			"edge: roadside has not sampled its sockets at the window's open"},
		"no edge at the close": {but("roadside", "close"), "",
			"edge: roadside has not sampled its sockets at the window's close"},
		"an end that is not known": {but("roadside", "close", unknown), "",
			"edge: roadside does not know the end of 2 sockets at the window's close"},
		"an end of a sender's socket that is not known": {but("car", "close", resetUnnoticed), "", ""},
		"a client started late": {but("car", "start", started("car", 2000)), "edge: car started",
			"edge: car started the client of flow main 2000 ms late"},
		"more strangers than are told": {but("roadside", "close", crowd), "stranger: 7",
			"stranger: 7 connections more than are watched reached the flows' ports on roadside"},
		"a background flow late": {append(inTime,
			at("roadside", 6, &wire.Edge{Edge: "start", Flow: "load", LateMs: 6000})), "",
			"edge: roadside started the client of flow load 6000 ms late, limit 100"},
		"a firewall at the receiver": {append(inTime,
			at("roadside", 12, &wire.Edge{Edge: "end", Filtered: new(uint64(5)), FilteredFlow: "main"})), "",
			"firewall: roadside stopped all of flow main (port 5000) by its own packet filter: let its port"},
		"a firewall at the sender": {append(inTime,
			at("car", 12, &wire.Edge{Edge: "end", Filtered: new(uint64(5)), FilteredFlow: "load"})), "firewall: car",
			"firewall: car stopped all of flow load by its own"},
		"a filter that drops a packet": {append(inTime,
			at("roadside", 12, &wire.Edge{Edge: "end", Filtered: new(uint64(1))})), "", ""},
		"a stranger at its close": {append(inTime, stranger("close", 10, 28_835_877)), "stranger:",
			"stranger: 10.77.0.66:50000 reached the port of flow main on roadside, and sent 28835877 bytes"},
		"a stranger that came and left": {append(inTime, stranger("", 4, 80)), "stranger:",
			"stranger: 10.77.0.66:50000"},
		"a stranger before the window": {append(inTime, stranger("", -1, 80), stranger("open", 0, 80)), "", ""},
		"a stranger who says nothing":  {append(inTime, stranger("close", 10, 0)), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tr, records := relayed(c.edges)
			tr.Traffic[0].Port, tr.Traffic[0].Streams = 5000, 6
			failsFor(t, tr, records, c.provisional, c.final)
		})
	}
}

// What comes between the samples on either side of an edge may be the window's or
// not: a burst of 27 segments was 1.3 % of what a window had.
func TestABurstAtAnEdge(t *testing.T) {
	sample := func(edge string, stream int, bytes uint64) wire.Record {
		s := map[string]float64{"close": 10, "before_close": 9.997, "before_open": -0.002}[edge]
		return at("roadside", s, &wire.TCPSample{Flow: "main", Edge: edge, Stream: &stream, BytesReceived: bytes})
	}
	samples := func(beforeOpen, open, beforeClose, close uint64) []wire.Record {
		out := []wire.Record{sampledAt("car", "open", 1), started("car", 1),
			sampledAt("car", "close", 1)}
		for _, edge := range []string{"open", "close"} {
			e := sampledAt("roadside", edge, 2)
			e.Body.(*wire.Edge).EarlyMs = new(3.0)
			out = append(out, e)
		}
		return append(out, sample("before_open", 0, beforeOpen), sample("open", 0, open),
			sample("before_close", 0, beforeClose), sample("close", 0, close))
	}
	notBefore := samples(0, 0, 0, 3_000_000) // a connection that is new at the close
	for _, r := range notBefore {
		if e, ok := r.Body.(*wire.Edge); ok {
			e.EarlyMs = nil
		}
	}
	notKept := slices.DeleteFunc(samples(0, 0, 3_000_000, 3_050_000), func(r wire.Record) bool {
		s, ok := r.Body.(*wire.TCPSample)
		return ok && s.Before()
	})
	for name, c := range map[string]struct {
		records []wire.Record
		want    string
	}{
		"samples before that nobody kept": {notKept, ""},
		"a few segments":                  {samples(0, 0, 3_075_000, 3_083_400), ""},
		"27 segments": {samples(0, 0, 3_083_400, 3_122_496),
			"edge: 39096 bytes of flow main, 1.3 % of all, came to roadside around the window's edges, most between " +
				"its samples 3 ms before and 2 ms after the close: nobody knows which of them are the window's, " +
				"limit 1 %"},
		"at both edges": {samples(100_000, 120_000, 3_083_400, 3_103_400),
			"edge: 40000 bytes of flow main, 1.3 % of all, came to roadside around the window's edges, most between " +
				"its samples 3 ms before and 2 ms after the open"},
		"a slow flow's one segment":       {samples(0, 0, 14_480, 15_928), ""},
		"a slow flow's three":             {samples(0, 0, 14_480, 18_824), "edge: 4344 bytes"},
		"warm, and cut off at the open":   {samples(2_990_000, 3_000_000, 3_000_000, 3_000_000), ""},
		"no sample shortly before either": {notBefore, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tr, records := relayed(c.records)
			failsFor(t, tr, records, "", c.want)
		})
	}
}

func TestEdgeLimitIsAShareOfTheWindow(t *testing.T) {
	for seconds, want := range map[float64]float64{0.1: math.Inf(1), 1: 10, 3: 21, 5: 35, 10: 50, 60: 50} {
		if got := EdgeLateMsMax(wire.Window{OpenBootNs: 5, CloseBootNs: 5 + int64(seconds*1e9)}); got != want {
			t.Errorf("window of %g s: %g ms, want %g", seconds, got, want)
		}
	}
}

func TestANodesReasonNamesItOnce(t *testing.T) {
	for reason, want := range map[string]string{
		"edge: car sampled its sockets late": "edge: car sampled its sockets late",
		"gps_gone: gpsd went":                "gps_gone: on car: gpsd went",
	} {
		if got := nodeReason(wire.ParseReason(reason), "car").String(); got != want {
			t.Errorf("%q became %q, want %q", reason, got, want)
		}
	}
}
