package metrics

import (
	"math"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/packets"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const tenS = int64(10e9)

// measured is an attempt of ten seconds whose windows open ten seconds after
// the nodes' clocks began.
func measured(t wire.Trial, records ...wire.Record) Attempt {
	t.Sender, t.Receiver, t.Initiator, t.DurationS = "a", "b", "a", 10
	at := Attempt{trial: t, plan: wire.RunPlan{Nodes: []wire.PlanNode{{Name: "a", MeshPrefix: "10.0.0.1/24"},
		{Name: "b", MeshPrefix: "10.0.0.2/24"}}}}
	for _, n := range []string{"a", "b"} {
		at.records = append(at.records, told(n, 0, &wire.Window{OpenBootNs: tenS, CloseBootNs: 2 * tenS}))
	}
	at.records = append(at.records, records...)
	return at
}

func told(node string, s float64, b wire.Body) wire.Record {
	return wire.Record{Header: wire.Header{Kind: b.Kind(), Node: node, TBootNs: tenS + int64(s*1e9)}, Body: b}
}

func (at Attempt) wantRow(t *testing.T, name string, want float64) {
	t.Helper()
	s := &set{at: at}
	s.routing()
	if got := Value(s.rows, "", name); got == nil || math.Abs(*got-want) > 1e-9 {
		t.Errorf("%s: %v in %+v, want %g", name, got, s.rows, want)
	}
}

func TestProbesTellTheirLossAndOutage(t *testing.T) {
	var records []wire.Record
	for i := range 20 {
		if s := float64(i) / 2; s < 3 || s >= 7 {
			records = append(records, told("a", s, &wire.Probe{Peer: "b", ProbeSeq: uint64(i + 1), RTTUs: 2000}))
		}
	}
	at := measured(wire.Trial{Routing: wire.Routing{Protocol: "none", ProbeHz: new(2.0)}}, records...)
	at.wantRow(t, "probe_loss_percent", 40)
	at.wantRow(t, "ping_outage_s", 4.5)
	at.wantRow(t, "probe_rtt_median_ms", 2)
	none := measured(wire.Trial{Routing: wire.Routing{Protocol: "none", ProbeHz: new(2.0)}})
	none.wantRow(t, "probe_loss_percent", 100)
	none.wantRow(t, "ping_outage_s", 10)
	told18 := measured(at.trial, append(records[:12:12], told("a", 12, &wire.ProbeEnd{Peer: "b", Sent: 18}))...)
	told18.wantRow(t, "probe_loss_percent", 100*6./18) // two beats were missed
	untold := records[:0:0]
	for i := range 31 { // 333,333,333 ns apart, as before the number sent was told
		untold = append(untold, told("a", float64(i)/3, &wire.Probe{Peer: "b", ProbeSeq: uint64(i + 1), RTTUs: 2000}))
	}
	measured(wire.Trial{Routing: wire.Routing{Protocol: "none", ProbeHz: new(3.0)}}, untold...).
		wantRow(t, "probe_loss_percent", 0)
	stalled := &set{at: measured(at.trial,
		append(records, told("a", 10, &wire.Lateness{Source: "sampler", WorstUs: 900e3}))...)}
	stalled.routing()
	if Value(stalled.rows, "", "probe_loss_percent") != nil || Value(stalled.rows, "", "ping_outage_s") != nil {
		t.Error("probes that a stalled node did not send count as lost")
	}
}

// A field that did not tell all its losses may not have told the one that ended a way.
func TestWaysAreNoNumbersWhereLossesAreUntold(t *testing.T) {
	for untold, want := range map[uint64]bool{0: true, 5: false} {
		s := &set{at: measured(wire.Trial{Routing: wire.Routing{Protocol: "aodv"}},
			told("a", -3, &wire.RouteChange{Action: "present", AtBootNs: tenS - 3e9, Destination: "10.0.0.2/32",
				NextHops: []string{"10.0.0.2"}}),
			told("field", 10, &wire.MediumCount{Of: "a", LossesUntold: untold}))}
		s.routing()
		for _, name := range []string{"route_outage_s", "routed_share", "way_changes", "hops_mean", "hops_max"} {
			if got := Value(s.rows, "", name); (got != nil) != want {
				t.Errorf("%d losses untold: %s is %v", untold, name, show(got))
			}
		}
	}
}

// What a real radio put on the air is what its interface sent, and its retries.
func TestFramesOfRealRadios(t *testing.T) {
	var records []wire.Record
	for i := range 101 {
		n, s := uint64(i), float64(i)/10
		records = append(records, told("a", s, &wire.Interface{Name: "wlan0", TxPackets: 100 + 50*n}),
			told("b", s, &wire.Interface{Name: "wlan0", TxPackets: 7}),
			told("a", s, &wire.Station{Peer: "02:b", TxRetries: new(4 * n)}),
			told("a", s, &wire.Station{Peer: "02:c", TxRetries: new(n)}))
	}
	at := measured(wire.Trial{}, records...)
	s := &set{at: at}
	if s.routing(); Value(s.rows, "", "radio_frames_per_s") != nil {
		t.Error("an emulated radio's frames are told by the field, and better")
	}
	at.records = append(at.records, told("a", 0, &wire.Provenance{Radio: &wire.Caps{Driver: "ath9k_htc"}}))
	at.wantRow(t, "radio_frames_per_s", 550)
	// What was sent after the last sample is not known.
	at.records = slices.DeleteFunc(at.records, func(r wire.Record) bool { return r.TBootNs > tenS+9e9 })
	s = &set{at: at}
	if s.routing(); Value(s.rows, "", "radio_frames_per_s") != nil {
		t.Error("frames of a window whose end was not sampled")
	}
}

// A peer that a radio first knows within the window has all of its retries from it, and one
// that it loses has those until then; of a radio that nobody asked at an edge neither is known.
func TestFramesToAPeerThatComesOrGoes(t *testing.T) {
	for name, c := range map[string]struct {
		retries   func(s float64) *uint64 // of the second peer; nil: the radio does not know it
		asked     func(s float64) bool
		untelling bool
		want      *float64
	}{
		"comes":         {func(s float64) *uint64 { return after(s >= 1, 400*(s-1)) }, nil, false, new(860.0)},
		"goes":          {func(s float64) *uint64 { return after(s <= 9, 7000+400*s) }, nil, false, new(860.0)},
		"comes at last": {func(s float64) *uint64 { return after(s >= 10, 3600) }, nil, false, new(860.0)},
		"comes back": {func(s float64) *uint64 {
			return after(s <= 1 || s >= 9, 100+350*math.Mod(s, 8)+2450*math.Floor(s/8)) // 100 to 450, 2900 to 3250
		}, nil, false, new(860.0)},
		"misses a beat": {func(s float64) *uint64 { return after(s != 5, 90+360*s) }, nil, false, new(860.0)},
		"never comes":   {func(float64) *uint64 { return nil }, nil, false, new(500.0)},
		"not asked at the open": {func(s float64) *uint64 { return after(s >= 1, 400*s) },
			func(s float64) bool { return s >= 1 }, false, nil},
		"not asked at the close": {func(s float64) *uint64 { return after(s >= 1 && s <= 9, 400*s) },
			func(s float64) bool { return s <= 9 }, false, nil},
		"does not tell": {func(float64) *uint64 { return nil }, nil, true, nil},
	} {
		records := []wire.Record{told("a", 0, &wire.Provenance{Radio: &wire.Caps{Driver: "ath9k_htc"}})}
		for i := range 101 {
			s := float64(i) / 10
			records = append(records, told("a", s, &wire.Interface{Name: "wlan0", TxPackets: uint64(50 * i)}),
				told("b", s, &wire.Interface{Name: "wlan0"}))
			if c.asked == nil || c.asked(s) {
				records = append(records, told("a", s, &wire.Survey{Channel: 1}))
			}
			if n := c.retries(s); n != nil || c.untelling {
				records = append(records, told("a", s, &wire.Station{Peer: "02:b", TxRetries: n}))
			}
		}
		s := &set{at: measured(wire.Trial{}, records...)}
		s.routing()
		got := Value(s.rows, "", "radio_frames_per_s")
		if (got == nil) != (c.want == nil) || got != nil && math.Abs(*got-*c.want) > 1e-9 {
			t.Errorf("a peer %s: %v, want %v", name, show(got), show(c.want))
		}
	}
}

// after is a count where a peer is known.
func after(known bool, n float64) *uint64 {
	if !known {
		return nil
	}
	return new(uint64(math.Round(n)))
}

func TestMessagesOfCapturesAreAMeanOfNodes(t *testing.T) {
	s := &set{at: measured(wire.Trial{})}
	s.messages([]packets.EndResult{{Messages: map[string]packets.MessageCount{"Route Request": {N: 20, Bytes: 400}}},
		{RoutingCut: 3}}, 10)
	for name, want := range map[string]float64{"captured_messages_route-request_per_s": 1,
		"captured_messages_route-request_bytes_per_s": 20, "routing_packets_cut": 3} {
		if got := Value(s.rows, "", name); got == nil || *got != want {
			t.Errorf("%s: %v, want %g", name, got, want)
		}
	}
}
