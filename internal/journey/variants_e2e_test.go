//go:build e2e

package journey

import (
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/testnet"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The variant asked for is the one in force on the sender's sockets, in both
// sections, with the knobs of the profile in force on every node; and nothing
// of it is left afterwards.
func TestVariantsAreInForceOnTheSender(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3")
	dir := testnet.Folder(t)
	file := variant(t, "velocity.yaml", "variants", "levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: [8.3]", "repetitions: 2", "repetitions: 1",
		"tcp: {variant: reno}", "tcp: {classic: on, delayed_ack: off}",
		"A: {sender: car, receiver: roadside}", "A: {sender: car, receiver: roadside, tcp: {variant: newreno}}",
		"B: {sender: roadside, receiver: car}", "B: {sender: roadside, receiver: car, tcp: {variant: reference}}",
		"lateness_share_max: 0.01", "lateness_share_max: 1")
	before := testnet.Snapshot(t, "", "lo", "eth")
	run := begin(t, "fieldmesh", "rehearse", file, "--runs", filepath.Join(dir, "runs"), "--name", "variants", "--world-dir", filepath.Join(dir, "worlds"))
	if err := run.wait(t.Context()); err != nil {
		t.Fatalf("fieldmesh rehearse: %v\n%s", err, run.said())
	}
	if after := testnet.Snapshot(t, "", "lo", "eth"); after != before {
		t.Errorf("the machine is not as it was:\n%s", lineDiff(before, after))
	}
	k := openRun(t, filepath.Join(dir, "runs", "variants"))
	sections := map[string]bool{}
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
				t.Fatalf("trial %d: a socket of the sender %s runs %q, want %s", trial.Number, r.Node, b.Congestion, trial.TCP.Variant)
			}
		case *wire.Provenance:
			nodes[r.Node] = true
			for key, want := range map[string]string{"tcp_sack": "0", "tcp_timestamps": "0", "tcp_recovery": "0"} {
				if got := b.Sysctls["net.ipv4."+key]; got != want {
					t.Errorf("trial %d: %s is %q on %s, want %s", trial.Number, key, got, r.Node, want)
				}
			}
			if b.TCP == nil || b.TCP.Provider != "bpf" || b.TCP.Program != trial.TCP.Variant || b.TCP.Kernel != b.Sysctls["net.ipv4.tcp_congestion_control"] {
				t.Errorf("trial %d: %s records %+v in force", trial.Number, r.Node, b.TCP)
			}
		}
	}
	if sockets == 0 || len(nodes) != len(trial.Nodes()) {
		t.Errorf("trial %d: %d samples of the sender's sockets, provenance of %v", trial.Number, sockets, nodes)
	}
}
