//go:build e2e

package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// perfetto gives the rows that Perfetto's own trace processor answers to queries.
func perfetto(t *testing.T, trace string, queries ...string) (answers [][][]any) {
	t.Helper()
	const folder = "../../.tools/perfetto"
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("Perfetto's page is not here: %v; `scripts/setup all` fetches it", err)
	}
	c := browser.Script(t.Context(), t, "testdata/perfetto.cjs", append([]string{folder, trace}, queries...)...)
	var problem bytes.Buffer
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		t.Fatalf("perfetto: %v\n%s", err, problem.String())
	}
	for line := range bytes.Lines(out) {
		var rows [][]any
		if err := json.Unmarshal(line, &rows); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, rows)
	}
	if len(answers) != len(queries) {
		t.Fatalf("%d answers to %d queries:\n%s", len(answers), len(queries), out)
	}
	return answers
}

// tracedRun is a compared run with what a connection meets: two routes, a
// retransmission of a known moment and one between two samples, and a lost frame.
func tracedRun(t *testing.T) *archive.Archive {
	t.Helper()
	a := comparedRun(t, 10)
	open := synthetic.OpenBootNs["car"]
	stream := 0
	for i, r := range []struct {
		atS  float64
		body wire.Body
	}{
		{1, &wire.RouteChange{Action: "set", AtBootNs: open + 1e9, Destination: "10.77.0.9/32",
			NextHops: []string{"10.77.0.2"}, Hops: new(2)}},
		{3, &wire.RouteChange{Action: "set", AtBootNs: open + 3e9, Destination: "10.77.0.9/32",
			NextHops: []string{"10.77.0.3"}}},
		{6, &wire.RouteChange{Action: "delete", AtBootNs: open + 6e9, Destination: "10.77.0.9/32"}},
		{4, &wire.TCPEvent{Flow: "bulk", Stream: &stream, Event: "rto", Source: "tracepoint", Count: 1,
			CwndSegments: new(uint32(1))}},
		{4.2, &wire.TCPEvent{Flow: "bulk", Stream: &stream, Event: "retransmission", Source: "tcp_info", Count: 2,
			FromBootNs: new(open + 4.1e9)}},
	} {
		appendRecord(t, a, wire.Record{Header: wire.Header{Node: "car", Epoch: "traced", Seq: uint64(i + 1),
			TBootNs: open + int64(r.atS*1e9), Run: a.Info().Run, Trial: 1, Attempt: 1}, Body: r.body})
	}
	// The field's clock is the controller's, which is the car's here.
	appendRecord(t, a, wire.Record{Header: wire.Header{Node: archive.FieldNode, Epoch: "traced", Seq: 1,
		TBootNs: open + 5e9, Run: a.Info().Run, Trial: 1, Attempt: 1},
		Body: &wire.Loss{Of: "car", Peer: "roadside", Seq: 7, Cause: "collision"}})
	return a
}

// Perfetto's own trace processor reads a trace without a complaint: each sample of
// each connection is there at its time, and what happened to the connection.
func TestE2EATraceIsReadByPerfetto(t *testing.T) {
	a := tracedRun(t)
	dir := filepath.Join(t.TempDir(), "export")
	if _, err := Run(a, dir, Options{Perfetto: true}); err != nil {
		t.Fatal(err)
	}
	const events = `select p.name, h.name, s.name, s.ts, s.dur from slice s join thread_track t on s.track_id = t.id
		join thread h using (utid) join process p using (upid) `
	got := perfetto(t, filepath.Join(dir, perfettoFile(wire.TrialKey{Trial: 1, Attempt: 1})),
		`select name, value from stats where severity = 'error' and value > 0`,
		`select p.name, c.ts, c.value from counter c join process_counter_track t on c.track_id = t.id
			join process p using (upid) where t.name = 'tcp bulk 0 bytes_received' order by p.name, c.ts`,
		events+`where s.name = 'window' and p.name = 'car'`,
		events+`where h.name like 'route%' or h.name like 'tcp_event%' or h.name like 'loss%' order by s.ts`)
	if len(got[0]) > 0 {
		t.Errorf("Perfetto complains of %v", got[0])
	}
	window := got[2]
	if len(window) != 1 || window[0][4].(float64) != windowOf(t, a)*1e9 {
		t.Fatalf("the car's window is %v, want one of %g s", window, windowOf(t, a))
	}
	opened := window[0][3].(float64)
	var samples [][]any
	for _, node := range []string{"car", "roadside"} {
		for r, err := range a.Records(1, 1) {
			if err != nil {
				t.Fatal(err)
			}
			s, ok := r.Body.(*wire.TCPSample)
			if ok && r.Node == node && s.Flow == "bulk" && s.Stream != nil && *s.Stream == 0 &&
				(len(samples) == 0 || samples[len(samples)-1][0] != node ||
					samples[len(samples)-1][2] != float64(s.BytesReceived)) {
				samples = append(samples, []any{node, float64(r.TBootNs - synthetic.OpenBootNs[node]),
					float64(s.BytesReceived)})
			}
		}
	}
	if len(samples) < 50 || len(got[1]) != len(samples) {
		t.Fatalf("%d samples of the window in Perfetto, %d in the archive", len(got[1]), len(samples))
	}
	const inexact = 2 * 1000 // ns: the comparisons' uncertainty, and that of a float of seconds
	for i, want := range samples {
		row := got[1][i]
		off := row[1].(float64) - opened - want[1].(float64)
		if row[0] != want[0] || row[2] != want[2] || off < -inexact || off > inexact {
			t.Fatalf("sample %d is %v, %g ns off %v", i, row, off, want)
		}
	}
	var met []string
	for _, row := range got[3] {
		met = append(met, fmt.Sprintf("%v %v: %v %.3f %.3f", row[0], row[1], row[2], (row[3].(float64)-opened)/1e9,
			row[4].(float64)/1e9))
	}
	if !reflect.DeepEqual(met, metByTheCar) {
		t.Errorf("the connection met\n%q, want\n%q", met, metByTheCar)
	}
}

// metByTheCar is what the car's connection meets in tracedRun, and when, in seconds
// of its window.
var metByTheCar = []string{
	"car route to 10.77.0.9/32: via 10.77.0.2, 2 hops 1.000 2.000",
	"car route to 10.77.0.9/32: via 10.77.0.3 3.000 3.000",
	"car tcp_event bulk 0 rto: rto 4.000 0.000",
	"car tcp_event bulk 0 retransmission: retransmission 4.100 0.100",
	"car loss collision roadside: loss 5.000 0.000",
}

// A trace has the format's parts, and the same without Perfetto.
func TestE2EATraceIsTheFormats(t *testing.T) {
	a := tracedRun(t)
	dir := filepath.Join(t.TempDir(), "export")
	if _, err := Run(a, dir, Options{Perfetto: true}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, perfettoFile(wire.TrialKey{Trial: 1, Attempt: 1})))
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			Ts, Dur  float64
			Pid, Tid int
			Args     map[string]any
		}
		OtherData map[string]any
	}
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatal(err)
	}
	names, opened := map[int]string{}, -1.0
	for _, e := range trace.TraceEvents {
		if e.Ph == "M" {
			names[e.Pid+1000*e.Tid], _ = e.Args["name"].(string)
		}
		if e.Name == "window" && names[e.Pid] == "car" {
			opened = e.Ts
		}
	}
	var met []string
	for _, e := range trace.TraceEvents {
		track := names[e.Pid+1000*e.Tid]
		if e.Ph != "M" && (strings.HasPrefix(track, "route") || strings.HasPrefix(track, "tcp_event") ||
			strings.HasPrefix(track, "loss")) {
			met = append(met, fmt.Sprintf("%s %s: %s %.3f %.3f", names[e.Pid], track, e.Name, (e.Ts-opened)/1e6,
				e.Dur/1e6))
		}
	}
	slices.Sort(met)
	if want := slices.Sorted(slices.Values(metByTheCar)); !reflect.DeepEqual(met, want) {
		t.Errorf("the trace has\n%q, want\n%q", met, want)
	}
	if trace.OtherData["records_undated"] != 0.0 || trace.OtherData["trial"] != 1.0 {
		t.Errorf("it says of itself %v", trace.OtherData)
	}
}

// A redacted trace has no word of a person's, and no place outside the windows.
func TestE2EARedactedTraceSaysNoMoreThanTheOtherFiles(t *testing.T) {
	a := tracedRun(t)
	const secret = "left at the church of St. Mary"
	appendRecord(t, a, wire.Record{Header: wire.Header{Node: "car", Epoch: "own", Seq: 1,
		TBootNs: synthetic.OpenBootNs["car"], Run: a.Info().Run, Trial: 1, Attempt: 1},
		Body: &wire.Event{Level: "warning", Text: secret}})
	trace := func(o Options) string {
		dir := filepath.Join(t.TempDir(), "export")
		if _, err := Run(a, dir, o); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, perfettoFile(wire.TrialKey{Trial: 1, Attempt: 1})))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	whole, redacted := trace(Options{Perfetto: true}), trace(Options{Perfetto: true, Redact: true})
	if !strings.Contains(whole, secret) || strings.Contains(redacted, secret) {
		t.Errorf("the secret is in the whole trace: %v, in the redacted: %v", strings.Contains(whole, secret),
			strings.Contains(redacted, secret))
	}
	if trace(Options{Perfetto: true}) != whole {
		t.Error("the same attempt gives another trace")
	}
	places := func(text string) int { return strings.Count(text, "lat_deg") }
	if places(redacted) == 0 || places(redacted) >= places(whole) {
		t.Errorf("%d places in the redacted trace, %d in the whole", places(redacted), places(whole))
	}
}
