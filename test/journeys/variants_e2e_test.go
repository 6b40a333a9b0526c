//go:build e2e

package journeys

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The variant asked for is the one in force on the sender's sockets, in both
// sections, as ss shows them too, with the knobs of the profile in force on every
// node and to be seen on the wire, also over a routing daemon's routes; what the
// senders did about losses is told by the kernel's tracepoints; and nothing of
// it is left afterwards.
func TestVariantsAreInForceOnTheSender(t *testing.T) {
	testnet.Need(t, "ip", "ss", "gpsd", "iperf3", "tshark")
	file := velocity(t, "variants", "[8.3]",
		"tcp: {variant: reno}", "tcp: {classic: on}\n  capture: {snap_bytes: 96}", "window_bytes: 65536, ", "",
		"A: {sender: car, receiver: roadside}", "A: {sender: car, receiver: roadside, tcp: {variant: newreno, sack: "+
			"off, delayed_ack: off, window_bytes: 16384}, routing: {protocol: olsr, hello_s: 0.5}}",
		"B: {sender: roadside, receiver: car}", "B: {sender: roadside, receiver: car, tcp: {variant: reference, "+
			"sack: on, delayed_ack: on, window_bytes: 65536}}")
	before := testnet.Snapshot(t, "", "lo", "eth")
	run := rehearse(t, file)
	fl := run.fleet(t)
	field, namespaces := strings.TrimSuffix(fl.Nodes["alpha"].Netns, "-ctl"), map[string]string{}
	for _, name := range deskNodes {
		namespaces[name] = field + "-" + name
	}
	seen := lookOn(t, run.Running, namespaces, 10*time.Minute)
	k := run.finish(t)
	if after := testnet.Snapshot(t, "", "lo", "eth"); after != before {
		t.Errorf("the machine is not as it was:\n%s", testnet.Diff(before, after))
	}
	sections, wires := map[string]bool{}, map[string]onWire{}
	for _, at := range k.attempts {
		trial, _ := k.Trial(at.Trial)
		var records []wire.Record
		for r, err := range k.Records(at.Trial, at.Attempt) {
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
		sections[trial.Factors["section"]+trial.TCP.Variant] = true
		inForce(t, trial, records)
		seen.agree(t, trial, records)
		tracedAsCounted(t, trial, records)
		withoutOffloads(t, trial, records)
		path := filepath.Join(k.Dir(), archive.CapturePath(at.TrialKey, trial.Receiver))
		wires[trial.Factors["section"]] = wireOf(t, path, trial.Traffic[0], at.Attempt)
	}
	visible(t, wires["A"], wires["B"])
	for _, name := range deskNodes {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(seen.routes)), func(r string) bool {
			return strings.HasPrefix(r, name+": ") && strings.Contains(r, "quickack 1")
		}) {
			t.Errorf("no route of the daemon's on %s acknowledges at once: %v", name, seen.routes)
		}
	}
	if !sections["Anewreno"] || !sections["Breference"] {
		t.Errorf("sections and variants %v", sections)
	}
}

// inForce checks a trial's records of the sender's sockets, and what each node
// read back while it was armed.
func inForce(t *testing.T, trial wire.Trial, records []wire.Record) {
	t.Helper()
	sockets, nodes := 0, map[string]bool{}
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.TCPSample:
			if r.Node != trial.Sender || b.Congestion == "" || !strings.HasSuffix(b.Remote, ":5000") {
				continue
			}
			sockets++
			if program, ours := tcpcc.ProgramOf(b.Congestion); !ours || program != trial.TCP.Variant {
				t.Fatalf("trial %d: a socket of the sender %s runs %q, want %s", trial.Number, r.Node, b.Congestion,
					trial.TCP.Variant)
			}
		case *wire.Provenance:
			nodes[r.Node] = true
			sack := map[string]string{"A": "0", "B": "1"}[trial.Factors["section"]]
			for key, want := range map[string]string{"tcp_sack": sack, "tcp_timestamps": "0", "tcp_recovery": "0"} {
				if got := b.Sysctls["net.ipv4."+key]; got != want {
					t.Errorf("trial %d: %s is %q on %s, want %s", trial.Number, key, got, r.Node, want)
				}
			}
			if b.TCP == nil || b.TCP.Provider != "bpf" || b.TCP.Program != trial.TCP.Variant || b.TCP.Kernel !=
				b.Sysctls["net.ipv4.tcp_congestion_control"] {
				t.Errorf("trial %d: %s records %+v in force", trial.Number, r.Node, b.TCP)
			}
		}
	}
	if sockets == 0 || len(nodes) != len(trial.Nodes()) {
		t.Errorf("trial %d: %d samples of the sender's sockets, provenance of %v", trial.Number, sockets, nodes)
	}
}

// tracedAsCounted holds the events of the sender's connections against what the
// kernel counted: they come from its tracepoints, none is missing.
func tracedAsCounted(t *testing.T, trial wire.Trial, records []wire.Record) {
	t.Helper()
	// What failed before it was a segment is not among those that are counted.
	type socket struct{ told, failed, counted, rtosTold, rtosCounted uint32 }
	sockets := map[uint64]*socket{}
	of := func(cookie uint64) *socket {
		if sockets[cookie] == nil {
			sockets[cookie] = &socket{}
		}
		return sockets[cookie]
	}
	for _, r := range records {
		if r.Node != trial.Sender {
			continue
		}
		switch b := r.Body.(type) {
		case *wire.TCPSample:
			if b.Stream != nil {
				s := of(b.Cookie)
				s.counted, s.rtosCounted = max(s.counted, b.Retransmits), max(s.rtosCounted, *b.RTOsTotal)
			}
		case *wire.TCPEvent:
			if b.Source != "tracepoint" || b.FromBootNs != nil {
				t.Errorf("trial %d: an event is seen by %s: %+v", trial.Number, b.Source, b)
			}
			switch b.Event {
			case "retransmission":
				of(b.Cookie).told += b.Count
			case "failed_retransmission":
				of(b.Cookie).failed += b.Count
			case "rto":
				of(b.Cookie).rtosTold += b.Count
			}
		}
	}
	told := uint32(0)
	for cookie, s := range sockets {
		told += s.told
		if s.told > s.counted || s.told+s.failed < s.counted || s.rtosTold != s.rtosCounted {
			t.Errorf("trial %d: of connection %d %d retransmissions and %d time-outs are told, the kernel counted "+
				"%d and %d",
				trial.Number, cookie, s.told, s.rtosTold, s.counted, s.rtosCounted)
		}
	}
	t.Logf("trial %d: %d connections, %d retransmissions told as counted", trial.Number, len(sockets), told)
}

// withoutOffloads checks that the captures were made without offloads, and that
// these were put back.
func withoutOffloads(t *testing.T, trial wire.Trial, records []wire.Record) {
	t.Helper()
	captured, undone := 0, 0
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Capture:
			captured++
			for _, name := range []string{"gro", "gso", "tso"} {
				if on, known := b.Offloads[name]; on || !known {
					t.Errorf("trial %d: %s of %s was on, or is not told: %v", trial.Number, name, r.Node, b.Offloads)
				}
			}
		case *wire.HostChange:
			if b.Action == "undone" && strings.HasPrefix(b.What, "offloads of ") {
				undone++
			}
		}
	}
	if nodes := len(trial.Nodes()); captured != nodes || undone != nodes {
		t.Errorf("trial %d: %d captures, offloads put back on %d nodes, of %d", trial.Number, captured, undone, nodes)
	}
}

// onWire is what a receiver's capture shows of a flow's data connections, as
// tshark reads it.
type onWire struct {
	syns, sackSYNs int // connections' first segments, and those that permit SACK
	segments, acks int // with data; without
	window         int // largest that the receiver told, in bytes
}

func wireOf(t *testing.T, path string, f wire.Flow, attempt int) onWire {
	t.Helper()
	data := clientPorts(f, attempt)
	var out onWire
	for _, v := range dissected(t, path, "tcp", "tcp.srcport", "tcp.dstport", "tcp.len", "tcp.flags.syn",
		"tcp.options.sack_perm", "tcp.window_size") {
		window, _ := strconv.Atoi(v[5])
		switch syn := v[3] == "1" || v[3] == "True"; {
		case syn && data(v[0]):
			out.syns++
			if v[4] != "" {
				out.sackSYNs++
			}
		case syn:
		case data(v[0]) && v[2] != "0":
			out.segments++
		case data(v[1]) && v[2] == "0":
			out.acks++
			out.window = max(out.window, window)
		}
	}
	return out
}

// visible compares section A (no SACK, every segment acknowledged, a window of
// 16 KiB) with section B (SACK, delayed ACKs, 64 KiB). A delayed ACK answers
// every second full segment (RFC 5681, section 4.2), so that half as many ACKs
// as segments are its least.
func visible(t *testing.T, a, b onWire) {
	t.Helper()
	t.Logf("A: %+v, B: %+v", a, b)
	if a.syns == 0 || a.sackSYNs != 0 || b.syns == 0 || b.sackSYNs != b.syns {
		t.Errorf("SACK is permitted by %d of %d SYNs of A, %d of %d of B; want none, all", a.sackSYNs, a.syns,
			b.sackSYNs, b.syns)
	}
	perSegment := func(w onWire) float64 { return float64(w.acks) / float64(max(w.segments, 1)) }
	if a.segments < 1000 || b.segments < 1000 || perSegment(a) < 0.9 || perSegment(b) > 0.75 {
		t.Errorf("ACKs a segment: %.2f of %d in A, %.2f of %d in B; want about 1 and about a half", perSegment(a),
			a.segments, perSegment(b), b.segments)
	}
	// SO_RCVBUF also bounds what the window may grow to; both ends round it.
	if a.window == 0 || a.window > 2*16384 || b.window <= a.window || b.window > 2*65536 {
		t.Errorf("the largest windows told are %d and %d bytes, of 16384 and 65536", a.window, b.window)
	}
}
