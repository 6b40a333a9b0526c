package topology

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const second = int64(1e9)

func ptr[T any](v T) *T { return &v }

// record is one of a node whose window opens ten seconds after its clock began.
func record(node string, s float64, b wire.Body) wire.Record {
	return wire.Record{Header: wire.Header{Kind: b.Kind(), Node: node, TBootNs: boot(s)}, Body: b}
}

func boot(s float64) int64 { return 10*second + int64(s*1e9) }

func route(node string, s float64, action, to, via string) wire.Record {
	c := &wire.RouteChange{Action: action, AtBootNs: boot(s), Destination: to}
	if via != "" {
		c.NextHops = []string{via}
	}
	return record(node, s, c)
}

// square is a plan of a, b, c and d at 10.0.0.1 to 4, and a flow from a to d
// that goes over b until b loses d, and over c 1.5 s later.
func square() (wire.RunPlan, wire.Trial, []wire.Record) {
	plan := wire.RunPlan{Nodes: []wire.PlanNode{{Name: "a", MeshPrefix: "10.0.0.1/24"},
		{Name: "b", MeshPrefix: "10.0.0.2/24"},
		{Name: "c", MeshPrefix: "10.0.0.3/24"}, {Name: "d", MeshPrefix: "10.0.0.4/24"}}}
	t := wire.Trial{Sender: "a", Receiver: "d", Initiator: "a", Relays: []string{"b", "c"}, DurationS: 10,
		Routing: wire.Routing{Protocol: "aodv"},
		Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "d"}}}
	var out []wire.Record
	for _, n := range []string{"a", "b", "c", "d"} {
		out = append(out, record(n, 0, &wire.Window{OpenBootNs: boot(0), CloseBootNs: boot(10)}))
	}
	out = append(out,
		route("a", -3, "present", "10.0.0.4/32", "10.0.0.2"), route("b", -3, "present", "10.0.0.4/32", "10.0.0.4"),
		route("c", -3, "present", "10.0.0.4/32", "10.0.0.4"),
		route("b", 4, "delete", "10.0.0.4/32", ""), route("a", 4.1, "delete", "10.0.0.4/32", ""),
		route("a", 5.5, "set", "10.0.0.4/32", "10.0.0.3"),
		record("a", 5.5, &wire.RoutingEvent{Report: "discovery_us", AtBootNs: boot(5.5), Addr: "10.0.0.4",
			Value: ptr(12500.0)}))
	for s := -1.0; s <= 10; s++ {
		n := uint64(100 + 10*(s+1))
		out = append(out, record("a", s, &wire.RoutingCount{Protocol: "aodv", PacketsSent: ptr(n),
			BytesSent: ptr(50 * n), Messages: map[string]uint64{"RREQ": n},
			MessageBytes: map[string]uint64{"RREQ": 24 * n},
			Neighbors: []wire.RoutingNeighbor{{Addr: "10.0.0.2", Symmetric: true, Cost: ptr(1.5)},
				{Addr: "10.0.0.9", Symmetric: true}}}))
	}
	for i := range 101 {
		s := float64(i) / 10
		got := uint64(1000 * i)
		if s > 4 && s < 7 {
			got = 40_000
		}
		out = append(out, record("d", s, &wire.TCPSample{Flow: "bulk", Stream: ptr(0), BytesReceived: got}))
	}
	return plan, t, out
}

// Nodes of batman-adv tell a route only once its address was resolved: what they do not
// tell may have been there all the time.
func TestOutagesOfBatmanAreNotKnown(t *testing.T) {
	plan, trial, records := square()
	trial.Routing.Protocol = "batman-adv"
	if m := Read(plan, trial, records); m.OutagesKnown() {
		t.Errorf("an outage of %+v is known", m.RouteOutage())
	}
	for i := range records {
		if b, is := records[i].Body.(*wire.RouteChange); is && b.Action == "delete" {
			records[i].Body = &wire.RoutingEvent{Report: "none"}
		}
	}
	if m := Read(plan, trial, records); !m.OutagesKnown() {
		t.Errorf("a way that is told throughout is not known: %q", m.PathText())
	}
}

// Where the field did not tell all its losses, a way that the kernels still had may have been none.
func TestUntoldLossesLeaveWaysUnknown(t *testing.T) {
	plan, trial, records := square()
	records = slices.DeleteFunc(records, func(r wire.Record) bool { // a way throughout
		c, is := r.Body.(*wire.RouteChange)
		return is && c.Action == "delete"
	})
	for untold, known := range map[uint64]bool{0: true, 5: false} {
		m := Read(plan, trial, append(slices.Clone(records), record("field", 10,
			&wire.MediumCount{Of: "b", LossesUntold: untold})))
		if m.WaysKnown() != known || m.OutagesKnown() != known {
			t.Errorf("%d losses untold: ways known %v, outages known %v", untold, m.WaysKnown(), m.OutagesKnown())
		}
	}
}

func TestThePathFollowsTheKernelsRoutes(t *testing.T) {
	m := Read(square())
	var got []string
	for _, p := range m.PathsInWindow() {
		got = append(got, p.String())
	}
	want := []string{"a → b → d (2 hops)", "a → b → no route", "a → no route", "a → c → d (2 hops)"}
	if !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
	if p := m.PathAt(4.05); p.Whole || p.String() != want[1] {
		t.Errorf("at 4.05 s %s", p)
	}
	if o := m.RouteOutage(); math.Abs(o.FromS-4) > 1e-9 || math.Abs(o.Seconds-1.5) > 1e-9 {
		t.Errorf("route outage %+v", o)
	}
	if o, ok := m.TCPOutage(); !ok || math.Abs(o.FromS-4) > 1e-9 || math.Abs(o.Seconds-3) > 1e-9 {
		t.Errorf("TCP outage %+v", o)
	}
}

// A node that stands still has no samples; that nothing arrived meanwhile nobody knows.
func TestAStalledSamplerTellsNoOutage(t *testing.T) {
	plan, trial, records := square()
	late := record("d", 10, &wire.Lateness{Source: "sampler", WindowS: 10, WorstUs: 1.2e6})
	if o, ok := Read(plan, trial, append(records, late)).TCPOutage(); ok {
		t.Errorf("TCP outage %+v of a sampler that was 1.2 s late", o)
	}
}

// A receiver whose sockets were looked at, and which had none, got nothing.
func TestWithoutAConnectionTheOutageIsTheWindow(t *testing.T) {
	plan, trial, records := square()
	records = slices.DeleteFunc(records, func(r wire.Record) bool { return r.Body.Kind() == "tcp" })
	if o, ok := Read(plan, trial, records).TCPOutage(); ok {
		t.Errorf("TCP outage %+v of a receiver that was not sampled", o)
	}
	records = append(records, record("d", 0, &wire.Edge{Edge: "open"}), record("d", 10, &wire.Edge{Edge: "close"}))
	if o, ok := Read(plan, trial, records).TCPOutage(); !ok || o.Seconds != trial.DurationS {
		t.Errorf("TCP outage %+v, %v; want the window's %g s", o, ok, trial.DurationS)
	}
}

// A stream that ends takes its bytes with it; the others go on. Another flow to
// the same node is not the measured one.
func TestTheOutageIsOfTheMeasuredFlowsStreams(t *testing.T) {
	plan, trial, records := square()
	records = slices.DeleteFunc(records, func(r wire.Record) bool { return r.Body.Kind() == "tcp" })
	trial.Traffic = append(trial.Traffic, wire.Flow{Name: "other", From: "b", To: "d", Background: true})
	got := func(s float64, flow string, cookie, bytes uint64) {
		records = append(records, record("d", s, &wire.TCPSample{Flow: flow, Stream: ptr(0), Cookie: cookie,
			BytesReceived: bytes}))
	}
	for i := range 101 {
		s, n := float64(i)/10, uint64(i+1)
		if i <= 20 {
			got(s, "bulk", 1, 1000*n)
		}
		if i <= 20 || i >= 50 {
			got(s, "bulk", 2, 10*n)
		}
		got(s, "other", 3, 1000*n)
	}
	if o, ok := Read(plan, trial, records).TCPOutage(); !ok || math.Abs(o.FromS-2) > 1e-9 || math.Abs(o.Seconds-3) >
		1e-9 {
		t.Errorf("TCP outage %+v, %v; want 3 s from 2 s", o, ok)
	}
}

func TestALoopIsNoPath(t *testing.T) {
	plan, trial, records := square()
	m := Read(plan, trial, append(records, route("c", 8, "set", "10.0.0.4/32", "10.0.0.1")))
	if p := m.PathAt(9); p.Whole || !slices.Equal(p.Nodes, []string{"a", "c"}) {
		t.Errorf("a path in a loop: %s", p)
	}
}

// DSR's packets hold their route, and no kernel has a route.
func TestThePathIsWhatPacketsHold(t *testing.T) {
	plan, trial, records := square()
	records = slices.DeleteFunc(records, func(r wire.Record) bool { return r.Body.Kind() == "route" })
	way := func(node string, s float64, note string, hops *float64) wire.Record {
		return record(node, s, &wire.RoutingEvent{Report: "source_route", AtBootNs: boot(s), Addr: "10.0.0.4",
			Note: note, Value: hops})
	}
	m := Read(plan, trial, append(records, way("a", -1, "10.0.0.2", ptr(2.0)), way("a", 4, "", nil),
		way("b", 5, "", ptr(1.0)), way("a", 6, "10.0.0.2 10.0.0.3", ptr(3.0))))
	var got []string
	for _, p := range m.PathsInWindow() {
		got = append(got, p.String())
	}
	if want := []string{"a → b → d (2 hops)", "a → no route", "a → b → c → d (3 hops)"}; !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
	if o := m.RouteOutage(); math.Abs(o.FromS-4) > 1e-9 || math.Abs(o.Seconds-2) > 1e-9 {
		t.Errorf("route outage %+v", o)
	}
	if n := m.Cost().RouteChanges; n != 2 { // neither before the window, nor of b's route
		t.Errorf("%d changes of routes, want the sender's two", n)
	}
}

// A daemon that changes a route in the kernel deletes it first. That is one change, and no
// moment without a way.
func TestAReRouteIsOneChange(t *testing.T) {
	const to = "10.0.0.4/32"
	gone := func(s float64) wire.Record { return route("a", s, "delete", to, "") }
	other := func(s float64) wire.Record { return route("a", s, "set", to, "10.0.0.3") }
	rerouted := []string{"a → b → d (2 hops)", "a → c → d (2 hops)"}
	lost := []string{"a → b → d (2 hops)", "a → no route", "a → c → d (2 hops)"}
	for name, c := range map[string]struct {
		protocol string
		changes  []wire.Record
		want     []string
		routes   int
	}{
		"another next hop": {"batman-adv", []wire.Record{other(3)}, rerouted, 1},
		"deleted and set":  {"olsrd", []wire.Record{gone(3), other(3.00005)}, rerouted, 1},
		// With an unreachable route in between, of which the end is told.
		"by way of none": {"babeld", []wire.Record{gone(3), gone(3.00008), other(3.0001)}, rerouted, 1},
		"told late": {"babeld", []wire.Record{gone(3), route("a", 3.01, "delete", "10.0.0.2/32", ""), gone(3.012),
			other(3.015)}, rerouted, 1},
		"lost, and back":         {"babeld", []wire.Record{gone(3), gone(5), other(5.00005)}, lost, 2},
		"lost for good":          {"babeld", []wire.Record{gone(3), gone(60)}, lost[:2], 1},
		"a discovery took 15 ms": {"aodv", []wire.Record{gone(3), other(3.015)}, lost, 2},
	} {
		plan, trial, records := square()
		trial.Routing.Protocol = c.protocol
		records = slices.DeleteFunc(records, func(r wire.Record) bool {
			b, is := r.Body.(*wire.RouteChange)
			return is && b.Action != "present"
		})
		m := Read(plan, trial, append(records, c.changes...))
		var got []string
		for _, p := range m.PathsInWindow() {
			got = append(got, p.String())
		}
		if n := m.Cost().RouteChanges; n != c.routes || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d changes of routes and the paths %q, want %d and %q", name, n, got, c.routes, c.want)
		}
	}
}

// A kernel keeps a route to a node that has left until its daemon finds out.
func TestAWayOverALostLinkIsNone(t *testing.T) {
	plan, trial, records := square()
	records = slices.DeleteFunc(records, func(r wire.Record) bool { // b keeps its route, and a finds out at 5.5 s
		c, is := r.Body.(*wire.RouteChange)
		return is && c.Action == "delete"
	})
	lose := func(s float64, of, peer, cause string) wire.Record {
		return record("field", s, &wire.Loss{Of: of, Peer: peer, Cause: cause, RetryLimit: true})
	}
	m := Read(plan, trial, append(records, lose(2, "b", "d", "out_of_range"), // of the moment: data came after it
		lose(4.1, "b", "d", "collision"), lose(4.2, "c", "d", "out_of_range"), lose(4.5, "b", "d", "out_of_range"),
		lose(5, "b", "d", "out_of_range")))
	var got []string
	for _, p := range m.PathsInWindow() {
		got = append(got, p.String())
	}
	if want := []string{"a → b → d (2 hops)", "a → b → d is out of reach", "a → c → d (2 hops)"}; !slices.Equal(got,
		want) {
		t.Errorf("paths %q, want %q", got, want)
	}
	if o := m.RouteOutage(); math.Abs(o.FromS-4.5) > 1e-9 || math.Abs(o.Seconds-1) > 1e-9 {
		t.Errorf("route outage %+v", o)
	}
}

func TestThePingOutageIsBetweenAnswers(t *testing.T) {
	plan, trial, records := square()
	if _, ok := Read(plan, trial, records).PingOutage(); ok {
		t.Error("a ping outage without probes")
	}
	trial.Routing = wire.Routing{Protocol: "none", ProbeHz: ptr(10.0)}
	records = slices.DeleteFunc(records, func(r wire.Record) bool { return strings.HasPrefix(r.Body.Kind(), "rout") })
	for i := range 100 {
		if s := float64(i) / 10; s < 4 || s > 6.45 {
			records = append(records, record("a", s, &wire.Probe{Peer: "d", ProbeSeq: uint64(i + 1),
				SentBootNs: boot(s), RTTUs: 900}))
		}
	}
	m := Read(plan, trial, records)
	if o, ok := m.PingOutage(); !ok || math.Abs(o.FromS-3.9) > 1e-9 || math.Abs(o.Seconds-2.6) > 1e-9 || m.HasDaemon() {
		t.Errorf("ping outage %+v", o)
	}
	late := record("a", 10, &wire.Lateness{Source: "sampler", WindowS: 10, WorstUs: 1.2e6}) // a sends
	if o, ok := Read(plan, trial, append(records, late)).PingOutage(); ok {
		t.Errorf("ping outage %+v of a sender whose sampler was 1.2 s late", o)
	}
}

func TestFramesOnTheAirAreSummedOverNodes(t *testing.T) {
	plan, trial, records := square()
	for _, n := range []string{"a", "b"} {
		records = append(records, record("field", 10,
			&wire.MediumCount{Of: n, FramesPerS: map[string]float64{"routing": 2, "traffic": 100}}))
	}
	if c := Read(plan, trial, records).Cost(); c.FramesPerS["routing"] != 4 || c.FramesPerS["traffic"] != 200 {
		t.Errorf("frames %v", c.FramesPerS)
	}
}

func TestCostIsOfTheWindow(t *testing.T) {
	c := Read(square()).Cost()
	if c.Nodes != 1 || *c.PacketsPerS != 10 || *c.BytesPerS != 500 || c.RouteChanges != 3 ||
		!slices.Equal(c.DiscoveryMs, []float64{12.5}) {
		t.Errorf("cost %+v", c)
	}
	if len(c.Messages) != 1 || c.Messages[0] != (MessageCost{"RREQ", 10, 240, 1}) {
		t.Errorf("messages %+v", c.Messages)
	}
}

// What a daemon sent while nobody asked it nobody knows, nor what it sent before it
// began to count from 0 again.
func TestCostIsOfTheWholeWindow(t *testing.T) {
	count := func(s float64, n uint64) wire.Record {
		return record("a", s, &wire.RoutingCount{Protocol: "aodv", PacketsSent: &n, BytesSent: ptr(50 * n)})
	}
	for name, c := range map[string]struct {
		counts  []wire.Record
		packets *float64
	}{
		"throughout":          {[]wire.Record{count(-0.5, 0), count(4, 40), count(9.5, 100)}, ptr(10.0)},
		"mute from 2 s on":    {[]wire.Record{count(-0.5, 0), count(2, 100)}, nil},
		"mute at first":       {[]wire.Record{count(-8, 0), count(6, 50), count(9.5, 100)}, nil},
		"later only":          {[]wire.Record{count(1, 0), count(9.5, 100)}, nil},
		"counts from 0 again": {[]wire.Record{count(-0.5, 90), count(4, 120), count(5, 0), count(9.5, 40)}, nil},
	} {
		plan, trial, records := square()
		records = slices.DeleteFunc(records, func(r wire.Record) bool { return r.Body.Kind() == "routing" })
		got := Read(plan, trial, append(records, c.counts...)).Cost().PacketsPerS
		if (got == nil) != (c.packets == nil) || got != nil && *got != *c.packets {
			t.Errorf("%s: %v packets/s, want %v", name, got, c.packets)
		}
	}
}

// A data packet with DSR's header is none of routing's, but the header is. Daemons
// count data apart; older ones had it among routing's packets, and did not say so.
func TestDataPacketsWithTheirWayAreNoRoutingPackets(t *testing.T) {
	for name, c := range map[string]struct{ packets, apart, headers uint64 }{
		"data apart":                     {2, 100, 100},
		"data apart, little of it":       {2, 1, 1},
		"data apart, before it was said": {2, 0, 100},
		"data among routing's":           {102, 0, 100},
		"data with other options":        {2, 100, 60}, // it has no header of the kind SR
	} {
		plan, trial, records := square()
		records = slices.DeleteFunc(records, func(r wire.Record) bool { return r.Body.Kind() == "routing" })
		for s := range 11 {
			n := uint64(s)
			b := &wire.RoutingCount{Protocol: "dsr", PacketsSent: ptr(c.packets * n), BytesSent: ptr(1400 * n),
				Messages:     map[string]uint64{"SR": c.headers * n, "RREQ": 2 * n},
				MessageBytes: map[string]uint64{"SR": 1200 * n, "RREQ": 20 * n}}
			if c.apart > 0 {
				b.DataPacketsSent = ptr(c.apart * n)
			}
			records = append(records, record("a", float64(s), b))
		}
		if c := Read(plan, trial, records).Cost(); *c.PacketsPerS != 2 || *c.BytesPerS != 1400 || len(c.Messages) != 2 {
			t.Errorf("%s: %g packets/s, %g B/s, %+v", name, *c.PacketsPerS, *c.BytesPerS, c.Messages)
		}
	}
}

// What one node's counts show of its daemon holds for the trial's others: an idle
// minute shows nothing.
func TestDaemonsOfATrialCountAlike(t *testing.T) {
	plan, trial, records := square()
	records = slices.DeleteFunc(records, func(r wire.Record) bool { return r.Body.Kind() == "routing" })
	for s := range 11 {
		n := uint64(s)
		for node, headers := range map[string]uint64{"a": 100, "b": 3} {
			records = append(records, record(node, float64(s),
				&wire.RoutingCount{Protocol: "dsr", PacketsSent: ptr(5 * n), BytesSent: ptr(1400 * n),
					Messages: map[string]uint64{"SR": headers * n}}))
		}
	}
	if c := Read(plan, trial, records).Cost(); *c.PacketsPerS != 5 {
		t.Errorf("%g packets/s", *c.PacketsPerS)
	}
}

func TestLinksAreTheDaemons(t *testing.T) {
	m := Read(square())
	links := m.Links(2)
	if len(links) != 1 || links[0].From != "a" || links[0].To != "b" || !links[0].Symmetric || *links[0].Cost != 1.5 {
		t.Errorf("links %+v", links)
	}
	if len(m.Links(-5)) != 0 || len(m.Links(60)) != 0 {
		t.Error("links that nobody has told, or long ago")
	}
	svg := m.SVG("a <run>", 2)
	for _, want := range []string{"a &lt;run&gt;", "ETX 1.50", "a → b → d (2 hops)", "not known"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

// A radio tells a silent peer's last signal for as long as it knows the peer: it is not
// the link's present one. Of a radio that does not say when it heard the peer, it is not known.
func TestASilentPeersSignalIsNotThePresentOne(t *testing.T) {
	for inactiveMs, want := range map[*float64]*float64{ptr(120.0): ptr(-45.0), ptr(25_000.0): nil, nil: nil} {
		plan, trial, records := square()
		records = append(records, record("b", 0, &wire.Provenance{MAC: "02:00:00:00:00:02"}),
			record("a", 2, &wire.Station{Peer: "02:00:00:00:00:02", SignalDbm: ptr(-45.0), InactiveMs: inactiveMs}))
		links := Read(plan, trial, records).Links(2)
		if len(links) != 1 || (links[0].SignalDbm == nil) != (want == nil) ||
			want != nil && *links[0].SignalDbm != *want {
			t.Errorf("links %+v, want the signal %v", links, want)
		}
	}
}

func TestNothingRecordedIsNoMesh(t *testing.T) {
	plan, trial, records := square()
	records = slices.DeleteFunc(records, func(r wire.Record) bool { return strings.HasPrefix(r.Body.Kind(), "rout") })
	if m := Read(plan, trial, records); m != nil {
		t.Errorf("a mesh of nothing: %+v", m)
	}
}
