package metrics

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestBenchCapturesOfFiftyNodes prints how fast the captures of fifty nodes
// with twenty-five connections become the papers' metrics, and how long tshark
// takes to find retransmissions, reordering and round trips in the same files.
func TestBenchCapturesOfFiftyNodes(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	const pairs, segments = 25, 4000
	trial := wire.Trial{Number: 1, DurationS: 10}
	plan := wire.RunPlan{Run: "bench", Campaign: "bench"}
	for i := range 2 * pairs {
		name := fmt.Sprintf("n%02d", i+1)
		plan.Nodes = append(plan.Nodes, wire.PlanNode{Name: name, MeshPrefix: fmt.Sprintf("10.0.0.%d/24", i+1)})
		trial.Relays = append(trial.Relays, name)
	}
	at := Attempt{run: "bench", key: wire.TrialKey{Trial: 1, Attempt: 1}}
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), archive.RunInfo{Run: "bench", Campaign: "bench",
		Place: archive.PlaceRehearsal, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var bytes int
	for i := range pairs {
		from, to := trial.Relays[2*i], trial.Relays[2*i+1]
		trial.Traffic = append(trial.Traffic, wire.Flow{Name: fmt.Sprintf("f%02d", i), Kind: "iperf3_tcp", From: from,
			To: to, Port: 5000, Streams: 1, ClientPort: 20000})
		p := &path{t: t, ends: map[string][]seen{}}
		for k := range segments { // one in a hundred is lost
			delays := []int64{20 * msNs}
			if k%100 == 99 {
				delays = nil
			}
			p.send(int64(k)*2*msNs, packet{client: 20000, srv: 5000, seq: uint32(1 + 512*k), flags: 16, payload: 512},
				delays...)
		}
		for node, end := range map[string]string{from: "a", to: "b"} {
			for _, s := range p.ends[end] {
				s.data[29], s.data[33] = byte(2*i+1), byte(2*i+2) // the last bytes of both addresses
			}
			file := p.file(end)
			bytes += len(file)
			ahead := int64(0)
			if end == "b" {
				ahead = aheadNs
			}
			keep(t, a, &at, node, file, ahead)
		}
	}
	trial.Sender, trial.Receiver, trial.Initiator = trial.Relays[0], trial.Relays[1], trial.Relays[0]
	at.trial, at.plan = trial, plan
	began := time.Now()
	rows, unreadable := at.captured(a)
	took := time.Since(began)
	if unreadable != nil {
		t.Fatal(unreadable)
	}
	for _, f := range trial.Traffic {
		want(t, rows, f.Name, PacketLossPercent, 1)
		want(t, rows, f.Name, OneWayMeanMs, 20)
	}
	packets := float64(pairs * (2*segments - segments/100))
	t.Logf("50 nodes, %.0f captured packets, %.0f MB: %d numbers in %.2f s, %.0f packets/ms", packets,
		float64(bytes)/1e6, len(rows), took.Seconds(), packets/1e3/took.Seconds())
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Log("tshark is not installed: nothing to compare with")
		return
	}
	const looked = 10 // captures: tshark starts over with each
	began = time.Now()
	for _, node := range trial.Relays[:looked] {
		file := filepath.Join(a.Dir(), archive.CapturePath(at.key, node))
		if out, err := exec.Command("tshark", "-r", file, "-T", "fields", "-e", "tcp.analysis.retransmission", "-e",
			"tcp.analysis.out_of_order", "-e", "tcp.analysis.ack_rtt").CombinedOutput(); err != nil {
			t.Fatalf("tshark: %v\n%.500s", err, out)
		}
	}
	theirs := time.Since(began)
	t.Logf("tshark, %d of the 50 captures: %.1f s; here %.0f times as fast by the packet", looked, theirs.Seconds(),
		2*pairs/looked*theirs.Seconds()/took.Seconds())
}
