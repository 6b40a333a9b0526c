package metrics

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A capture that is not of the whole window tells no figure that needs it: what
// it lacks would be taken for lost, or never sent.
func TestIncompleteCapturesTellNothing(t *testing.T) {
	of := func(change func(*wire.Capture)) func(*Attempt) {
		return func(at *Attempt) {
			for _, r := range at.records {
				if b, is := r.Body.(*wire.Capture); is && r.Node == "b" {
					change(b)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(*Attempt)
		lacks string // of b; empty: nothing
	}{
		"whole":             {of(func(*wire.Capture) {}), ""},
		"the file was full": {of(func(b *wire.Capture) { b.FileDrops = 120 }), "120 packets"},
		"the disk failed": {of(func(b *wire.Capture) { b.Error = "write: no space left on device" }),
			"no space left"},
		"began late": {of(func(b *wire.Capture) { b.OpenBootNs = tenS + aheadNs + 1 }), "after the window opened"},
		"ended early": {of(func(b *wire.Capture) { b.CloseBootNs = 2*tenS + aheadNs - 5e8 }),
			"0.5 s before the window closed"},
		"never reported": {func(at *Attempt) {
			at.records = slices.DeleteFunc(at.records, func(r wire.Record) bool {
				return r.Body.Kind() == "capture" && r.Node == "b"
			})
		}, "no record"},
		"no window at the node": {func(at *Attempt) {
			at.records = slices.DeleteFunc(at.records, func(r wire.Record) bool {
				return r.Body.Kind() == "window" && r.Node == "b"
			})
		}, "no window"},
	} {
		a, at := captured(t, "a", "b")
		c.spoil(&at)
		rows, lacks := at.Captured(a), at.Lacks(a)
		if c.lacks == "" {
			if len(lacks) != 0 || Value(rows, "bulk", DeliveryFraction) == nil ||
				Value(rows, "", RoutingPacketsPS) == nil || Value(rows, "", "captures_incomplete") != nil {
				t.Errorf("%s: lacks %v, rows %+v", name, lacks, rows)
			}
			continue
		}
		if len(lacks) != 1 || lacks[0].Node != "b" || !strings.Contains(lacks[0].What, c.lacks) {
			t.Errorf("%s: lacks %v, want %q", name, lacks, c.lacks)
		}
		for _, absent := range []string{DeliveryFraction, PacketLossPercent, "packets_sent", LinkSent} {
			if v := Value(rows, "bulk", absent); v != nil {
				t.Errorf("%s: %s is %g", name, absent, *v)
			}
		}
		for _, absent := range []string{RoutingPacketsPS, RoutingBytesPS, "routing_header_bytes_per_s",
			"arp_packets_per_s"} {
			if v := Value(rows, "", absent); v != nil {
				t.Errorf("%s: %s is %g", name, absent, *v)
			}
		}
		want(t, rows, "", "captures_incomplete", 1)
	}
}

// A capture that its node reported and that did not come is incomplete, too.
func TestACaptureThatDidNotComeIsIncomplete(t *testing.T) {
	a, at := captured(t, "a")
	at.records = append(at.records, at.records[0], at.records[1])
	for i, b := range []wire.Body{&wire.Window{OpenBootNs: tenS, CloseBootNs: 2 * tenS},
		&wire.Capture{CloseBootNs: 3 * tenS}} {
		at.records[len(at.records)-2+i] = wire.Record{Header: wire.Header{Kind: b.Kind(), Node: "b"}, Body: b}
	}
	rows, lacks := at.Captured(a), at.Lacks(a)
	if len(lacks) != 1 || lacks[0].Node != "b" || !strings.Contains(lacks[0].What, "not in the archive") ||
		Value(rows, "", RoutingPacketsPS) != nil {
		t.Errorf("lacks %v, rows %+v", lacks, rows)
	}
}

// What the file had no room for is told.
func TestFileDropsAreTold(t *testing.T) {
	a, at := captured(t, "a", "b")
	for _, r := range at.records {
		if b, is := r.Body.(*wire.Capture); is {
			b.FileDrops = 60
		}
	}
	want(t, at.Captured(a), "", "capture_file_dropped", 120)
}

// Without a plan to capture, or without a window, nothing is lacking.
func TestWhatWasNotToBeCapturedIsNotLacking(t *testing.T) {
	a, at := captured(t)
	if lacks := at.Lacks(a); len(lacks) != 2 {
		t.Errorf("of two nodes that were to capture, and opened no window although one did, lack %v", lacks)
	}
	at.records = nil
	if lacks := at.Lacks(a); len(lacks) != 0 {
		t.Errorf("no window opened, and there lack %v", lacks)
	}
	_, at = captured(t)
	at.trial.Capture = nil
	if lacks := at.Lacks(a); len(lacks) != 0 {
		t.Errorf("nothing was to be captured, and there lack %v", lacks)
	}
}

// captured is an attempt of which some nodes' captures are held.
func captured(t *testing.T, nodes ...string) (*archive.Archive, Attempt) {
	t.Helper()
	p := &path{t: t, ends: map[string][]seen{}}
	for i := range 100 {
		p.send(int64(i)*50*msNs, packet{udp: true, client: 30001, srv: 5002, seq: uint32(i + 1), payload: 512}, 10*msNs)
		p.send(int64(i)*50*msNs+msNs, packet{udp: true, client: 654, srv: 654, payload: 20})
	}
	trial := wire.Trial{Number: 1, Sender: "a", Receiver: "b", Initiator: "a", DurationS: 10,
		Capture: &wire.CapturePlan{SnapBytes: 96},
		Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_udp", From: "a", To: "b", Port: 5002, Streams: 1,
			BitrateBps: new(20.0 * 8 * 512)}}}
	plan := wire.RunPlan{Run: "known", Campaign: "known",
		Nodes:  []wire.PlanNode{{Name: "a", MeshPrefix: "10.0.0.1/24"}, {Name: "b", MeshPrefix: "10.0.0.2/24"}},
		Trials: []wire.Trial{trial}}
	at := Attempt{run: "known", key: wire.TrialKey{Trial: 1, Attempt: 1}, trial: trial, plan: plan}
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"),
		archive.RunInfo{Run: "known", Campaign: "known", Place: archive.PlaceRehearsal, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if len(nodes) == 0 {
		w := &wire.Window{OpenBootNs: tenS, CloseBootNs: 2 * tenS}
		at.records = append(at.records, wire.Record{Header: wire.Header{Kind: w.Kind(), Node: "a"}, Body: w})
	}
	for _, n := range nodes {
		keep(t, a, &at, n, p.file(n), map[string]int64{"a": 0, "b": aheadNs}[n])
	}
	at.records = append(at.records, sender("bulk", 5.1, seconds(30001, 20, 5), ""))
	return a, at
}
