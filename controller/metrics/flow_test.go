package metrics

import (
	"math"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// receivedAt is an attempt whose receiver sampled one socket at the moments given,
// in ms of a window of 10 s.
func receivedAt(f wire.Flow, samples ...wire.Record) *set {
	w := wire.Window{OpenBootNs: 5 * second, CloseBootNs: 15 * second}
	records := append([]wire.Record{{Header: wire.Header{Node: f.To, TBootNs: w.OpenBootNs}, Body: &w}}, samples...)
	records = append(records, wire.Record{Header: wire.Header{Node: f.To, TBootNs: w.CloseBootNs + second},
		Body: &wire.TrialState{State: "kept"}})
	return &set{at: Attempt{trial: wire.Trial{Traffic: []wire.Flow{f}, DurationS: 10}, records: records}}
}

func sampled(ms float64, edge, state string, bytes uint64) wire.Record {
	return wire.Record{Header: wire.Header{Node: "r", TBootNs: 5*second + int64(ms*1e6)},
		Body: &wire.TCPSample{Flow: "main", Stream: new(0), Cookie: 7, Edge: edge, State: state, BytesReceived: bytes}}
}

func TestWhatComesAfterTheEdgeIsNoPartOfTheWindow(t *testing.T) {
	f := wire.Flow{Name: "main", Kind: "iperf3_tcp", From: "s", To: "r", DurationS: 10}
	for name, c := range map[string]struct {
		samples            []wire.Record
		wantMB, wantUnsure float64
	}{
		"a steady flow": {[]wire.Record{sampled(9900, "", "ESTABLISHED", 9_900_000),
			sampled(10_001, "close", "ESTABLISHED", 10_000_000)}, 10, 0.1},
		"it ended after the edge's sample": {[]wire.Record{sampled(9900, "", "ESTABLISHED", 9_900_000),
			sampled(10_001, "close", "ESTABLISHED", 10_000_000),
			sampled(10_030, "", "CLOSE", 10_900_000)}, 10, 0.1},
		"it ended before the edge's sample": {[]wire.Record{sampled(9900, "", "ESTABLISHED", 9_900_000),
			sampled(10_030, "", "CLOSE", 10_000_000)}, 10, 0.1},
		"the link came back at the close": {[]wire.Record{sampled(9900, "", "ESTABLISHED", 1_000_000),
			sampled(10_040, "close", "ESTABLISHED", 3_000_000)}, 3, 2},
		"it came with the close": {[]wire.Record{sampled(10_040, "close", "ESTABLISHED", 3_000_000)}, 3, 3},
		"it connected after the close": {[]wire.Record{sampled(10_600, "", "ESTABLISHED", 3000),
			sampled(12_060, "", "CLOSE", 5000)}, 0, 0},
		"from before the window": {[]wire.Record{sampled(-80, "", "ESTABLISHED", 400_000),
			sampled(1, "open", "ESTABLISHED", 500_000),
			sampled(9900, "", "ESTABLISHED", 9_000_000), sampled(10_001, "close", "ESTABLISHED", 9_000_000)}, 8.5, 0.1},
	} {
		s := receivedAt(f, c.samples...)
		s.delivered(f)
		for metric, want := range map[string]float64{TransferredMB: c.wantMB, TransferredUnsureMB: c.wantUnsure} {
			if got := Value(s.rows, "main", metric); got == nil || math.Abs(*got-want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %g", name, metric, got, want)
			}
		}
	}
}

// An edge may be late on a machine that is busy, and the socket gone by then: its sample right before the edge counts.
func TestASocketThatEndsBeforeALateEdgeCountsByTheSampleBefore(t *testing.T) {
	f := wire.Flow{Name: "main", Kind: "iperf3_tcp", From: "s", To: "r", DurationS: 10}
	edge := func(name string, ms, lateMs float64, earlyMs *float64) wire.Record {
		return wire.Record{Header: wire.Header{Node: "r", TBootNs: 5*second + int64(ms*1e6)},
			Body: &wire.Edge{Edge: name, LateMs: lateMs, EarlyMs: earlyMs}}
	}
	s := receivedAt(f, edge("open", 1, 1, nil), sampled(9993, "before_close", "ESTABLISHED", 9_000_000),
		sampled(10_252, "", "CLOSE", 9_100_000), edge("close", 10_252, 252, new(7.0)))
	s.delivered(f)
	for metric, want := range map[string]float64{TransferredMB: 9, TransferredUnsureMB: 0.1} {
		if got := Value(s.rows, "main", metric); got == nil || math.Abs(*got-want) > 1e-9 {
			t.Errorf("%s is %v, want %g", metric, got, want)
		}
	}
}

// iperf3 sends for whole seconds: what it sends in one is divided by one.
func TestThroughputIsByTheTimeThatIperf3Sends(t *testing.T) {
	for _, c := range []struct{ start, lasts, wantS float64 }{
		{0, 0.5, 1}, {0, 10, 10}, {0, 2.5, 3}, {8, 2, 2}, {7.5, 2.5, 2.5}, {-2, 12, 10}, {0, 0, 10},
	} {
		f := wire.Flow{Name: "main", Kind: "iperf3_tcp", From: "s", To: "r", StartS: c.start, DurationS: c.lasts}
		s := receivedAt(f, sampled(10_001, "close", "ESTABLISHED", 1_000_000))
		s.delivered(f)
		if got := Value(s.rows, "main", ThroughputBps); got == nil || math.Abs(*got-8e6/c.wantS) > 1e-6 {
			t.Errorf("from %g s for %g s: %v, want 1 MB in %g s", c.start, c.lasts, got, c.wantS)
		}
	}
}

// Flows together have a throughput over the time in which at least one of them is to send:
// those that send one after the other are no faster together than each.
func TestThroughputOfSeveralFlowsIsByTheTimeOfThemAll(t *testing.T) {
	flow := func(kind string, start, lasts float64) wire.Flow {
		return wire.Flow{Kind: kind, From: "s", To: "r", StartS: start, DurationS: lasts}
	}
	tcp := func(start, lasts float64) wire.Flow { return flow("iperf3_tcp", start, lasts) }
	udp, background := flow("iperf3_udp", 0, 0), tcp(0, 0)
	background.Background = true
	for name, c := range map[string]struct {
		flows []wire.Flow
		wantS float64
	}{
		"one after the other":         {[]wire.Flow{tcp(0, 5), tcp(5, 5)}, 10},
		"as the file does not order":  {[]wire.Flow{tcp(5, 5), tcp(0, 5)}, 10},
		"together":                    {[]wire.Flow{tcp(0, 10), tcp(0, 10)}, 10},
		"with a pause between":        {[]wire.Flow{tcp(0, 2), tcp(6, 0)}, 6},
		"one within the other":        {[]wire.Flow{tcp(1, 8), tcp(3, 2)}, 8},
		"from before the window":      {[]wire.Flow{tcp(-2, 4), tcp(1, 2)}, 3},
		"beside flows of another use": {[]wire.Flow{udp, tcp(0, 2), background}, 2},
	} {
		trial, rows := wire.Trial{DurationS: 10, Traffic: c.flows}, []Row(nil)
		for i := range c.flows {
			f := &c.flows[i]
			f.Name = string(rune('a' + i))
			s := receivedAt(*f, sampled(10_001, "close", "ESTABLISHED", 5_000_000))
			s.at.records[1].Body.(*wire.TCPSample).Flow = f.Name
			s.flow(*f)
			rows = append(rows, s.rows...)
		}
		n := float64(len(trial.Measured()))
		mb, mbps := Measured(trial, rows)
		if mb == nil || *mb != 5*n || mbps == nil || math.Abs(*mbps-5*n*8/c.wantS) > 1e-9 {
			t.Errorf("%s: %v MB, %v Mbit/s, want %g MB in %g s", name, show(mb), show(mbps), 5*n, c.wantS)
		}
	}
}

// What came before the window, to warm the network up, is not the window's first byte.
func TestTheFirstByteIsTheWindowsOwn(t *testing.T) {
	f := wire.Flow{Name: "main", Kind: "iperf3_tcp", From: "s", To: "r", StartS: -2, DurationS: 12}
	warm := []wire.Record{sampled(-500, "", "ESTABLISHED", 400_000), sampled(1, "open", "ESTABLISHED", 500_000),
		sampled(100, "", "ESTABLISHED", 500_000)}
	other := []wire.Record{sampled(3000, "", "ESTABLISHED", 1), sampled(10_001, "close", "ESTABLISHED", 1)}
	for _, r := range other {
		r.Body.(*wire.TCPSample).Cookie = 8
	}
	for name, c := range map[string]struct {
		then []wire.Record
		want *float64
	}{
		"something new":   {[]wire.Record{sampled(8100, "", "ESTABLISHED", 500_001)}, new(8.1)},
		"nothing new":     {nil, nil},
		"of a new socket": {append(other, sampled(8100, "", "ESTABLISHED", 500_001)), new(3.0)},
	} {
		closing := sampled(10_001, "close", "ESTABLISHED", 600_000)
		s := receivedAt(f, append(slices.Concat(warm, c.then), closing)...)
		s.delivered(f)
		got := Value(s.rows, "main", FirstByteS)
		if (got == nil) != (c.want == nil) || got != nil && math.Abs(*got-*c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, show(got), show(c.want))
		}
	}
}

// Of a radio that does not tell when it heard its peer the present signal is not
// known: it tells that of the last frame for ever.
func TestASignalWithoutATimeIsNotThePresentOne(t *testing.T) {
	for _, c := range []struct {
		inactive *float64
		known    bool
	}{{nil, false}, {new(20.0), true}, {new(301.0), false}} {
		if got := (&wire.Station{SignalDbm: new(-60.0), InactiveMs: c.inactive}).SignalNow(); (got != nil) != c.known {
			t.Errorf("last heard %v ms ago: %v", c.inactive, got)
		}
	}
}

func TestWhatDisturbsAnAttemptIsCounted(t *testing.T) {
	end := func(node string, refused, filtered *uint64, err string) wire.Record {
		return wire.Record{Header: wire.Header{Node: node},
			Body: &wire.Edge{Edge: "end", Refused: refused, Filtered: filtered, Error: err}}
	}
	late := func(node, source string, us float64) wire.Record {
		return wire.Record{Header: wire.Header{Node: node}, Body: &wire.Lateness{Source: source, WorstUs: us}}
	}
	for name, c := range map[string]struct {
		records []wire.Record
		want    map[string]float64
	}{
		"an older version's": {nil, map[string]float64{}},
		"quiet": {[]wire.Record{end("a", new(uint64(0)), new(uint64(0)), ""), end("b", nil, nil, ""),
			late("a", "agent", 20e3), late("a", "sampler", 3e6)},
			map[string]float64{RefusedPackets: 0, FilteredPackets: 0, SocketsLeft: 0, StandstillMaxMs: 20}},
		"not": {[]wire.Record{end("a", new(uint64(7)), new(uint64(2)), "operation not supported"),
			end("b", new(uint64(5)), new(uint64(0)), ""), late("a", "agent", 20e3), late("b", "agent", 90e3)},
			map[string]float64{RefusedPackets: 12, FilteredPackets: 2, SocketsLeft: 1, StandstillMaxMs: 90}},
	} {
		s := &set{at: Attempt{records: c.records}}
		s.disturbed()
		if len(s.rows) != len(c.want) {
			t.Errorf("%s: %+v", name, s.rows)
		}
		for metric, want := range c.want {
			if got := Value(s.rows, "", metric); got == nil || *got != want {
				t.Errorf("%s: %s is %v, want %g", name, metric, got, want)
			}
		}
	}
}

// A client that was cut off prints 0 for what the other end counted: that is not known.
func TestWhatTheOtherEndCountedIsKnownAfterAGoodEndOnly(t *testing.T) {
	const output = `{"end": {"sum_sent": {"bytes": 2000000, "bits_per_second": 1600000, "retransmits": 3},
		"sum_received": {"bytes": 0, "bits_per_second": 0}}}`
	all := []string{Iperf3MB, "iperf3_received_bps", "iperf3_sent_mb", "iperf3_retransmits"}
	for _, c := range []struct {
		fault   string
		reverse bool
		want    []string
	}{
		{"", false, all},
		{"interrupt - the client has terminated", false, all[2:]},
		{"interrupt - the client has terminated", true, all[:2]},
	} {
		f := wire.Flow{Name: "main", Kind: "iperf3_tcp", From: "a", To: "b", Reverse: c.reverse}
		s := &set{at: measured(wire.Trial{Traffic: []wire.Flow{f}}, sender("main", 10, output, c.fault))}
		s.iperf3(f)
		for _, name := range all {
			if got := Value(s.rows, "main", name); (got != nil) != slices.Contains(c.want, name) {
				t.Errorf("error %q, reverse %v: %s is %v", c.fault, c.reverse, name, got)
			}
		}
	}
}

// An ordinary sample bears the time before the kernel was asked. One that was answered
// after an edge does not take the place of the sample right before it.
func TestATickThatIsAnsweredLateIsNoSampleBeforeAnEdge(t *testing.T) {
	w := wire.Window{OpenBootNs: 1, CloseBootNs: 10e9}
	early := &wire.TCPSample{Edge: wire.BeforeEdge + "close", BytesReceived: 9_990_000}
	own := &wire.TCPSample{Edge: "close", BytesReceived: 10_050_000}
	k := socket{atClose: own, edged: true}
	k.before(early, w.CloseBootNs-3e6, w)
	k.before(&wire.TCPSample{BytesReceived: 10_050_000}, w.CloseBootNs-1e6, w)
	unsure := k.unsure(received)
	k.nearest(map[string]bool{"close": true})
	if k.atClose != early || unsure != 60_000 {
		t.Errorf("took %+v, and %g bytes are unsure", k.atClose, unsure)
	}
}
