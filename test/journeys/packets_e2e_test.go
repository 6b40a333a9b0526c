//go:build e2e

package journeys

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A trial's captures come into the archive, and what fieldmesh metrics makes of
// them is what tshark makes of them and what the kernels counted.
func TestCapturesAgreeWithTsharkAndTheKernel(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3", "tshark")
	file := velocity(t, "captured", "[8.3]", "  traffic:\n",
		"  sample_hz: 50\n  capture: {snap_bytes: 96}\n  traffic:\n")
	k := rehearse(t, file).finish(t)
	t.Logf("%s", fieldmesh(t, "metrics", k.Dir()))
	k.everyTrialOnce(t)
	for _, at := range k.attempts {
		if at.Verdict != nil && at.Verdict.Outcome == wire.Accepted {
			compareWithTshark(t, k, at.TrialKey)
		}
	}
	compareCut(t, k)
}

// compareWithTshark holds an attempt's numbers against tshark's analysis of the
// sender's capture and against both kernels' counts.
func compareWithTshark(t *testing.T, k kept, key wire.TrialKey) {
	t.Helper()
	trial, _ := k.Trial(key.Trial)
	records := k.records(t, key)
	rows, err := metrics.Of(k.Archive, key)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		v := metrics.Value(rows, trial.Traffic[0].Name, name)
		if v == nil {
			t.Fatalf("trial %d: no %s", key.Trial, name)
		}
		return *v
	}
	if dropped := metrics.Value(rows, "", "capture_dropped"); dropped == nil || *dropped != 0 {
		t.Logf("trial %d: the captures dropped packets: nothing to compare", key.Trial)
		return
	}
	var told *wire.Capture
	for _, r := range records {
		if c, ok := r.Body.(*wire.Capture); ok && r.Node == trial.Sender {
			told = c
		}
	}
	w := windowOf(t, records, trial.Sender)
	seen := tshark(t, filepath.Join(k.Dir(), archive.CapturePath(key, trial.Sender)), trial.Traffic[0], key.Attempt,
		float64(w.OpenBootNs+told.WallOffsetOpen)/1e9, float64(w.CloseBootNs+told.WallOffsetOpen)/1e9)
	about := func(what string, got, want, share float64) {
		t.Helper()
		t.Logf("trial %d: %s: %.6g here, %.6g there", key.Trial, what, got, want)
		if math.Abs(got-want) > share*math.Abs(want) {
			t.Errorf("trial %d: %s: %g and %g differ by more than %g", key.Trial, what, got, want, share)
		}
	}
	about("packets and tshark's", value("packets_sent"), float64(seen.packets), 0.0005)
	about("retransmissions and tshark's", value("packets_retransmitted"), float64(seen.again), 0.01)
	about("mean round trip and tshark's (ms)", value("round_trip_mean_ms"), seen.rttSum/float64(seen.rtts)*1e3, 0.0002)
	about("least round trip and tshark's (ms)", value("round_trip_min_ms"), seen.rttMin*1e3, 0.0002)
	// The kernels' counts are of the moment of the sample at the close, which
	// may come a little late.
	about("MB and the receiver's tcp_info", value("packets_delivered_mb"), value("transferred_mb"), 0.02)
	if got, want := value("packets_retransmitted"), value("retransmits"); math.Abs(got-want) > 0.05*want+5 {
		t.Errorf("trial %d: %g retransmissions, the sender's tcp_info has %g", key.Trial, got, want)
	}
}

// analysed is what tshark finds of a flow in a sender's capture.
type analysed struct {
	packets, again, rtts int
	rttSum, rttMin       float64
}

// tshark analyses a sender's capture. A sender sends nothing out of order: what
// tshark takes for that is a retransmission too. It gives round trips of
// segments that were sent twice, of which nobody can tell whose ACK came; these
// are left out, and those of segments that were not sent within the window.
func tshark(t *testing.T, path string, f wire.Flow, attempt int, open, closed float64) analysed {
	t.Helper()
	data := clientPorts(f, attempt)
	type acked struct {
		frame string
		rtt   float64
	}
	var out analysed
	var acks []acked
	segment, times := map[string]string{}, map[string]int{} // frame → stream and number; how often that was sent
	within := map[string]bool{}                             // frame → it was sent in the window
	for _, v := range dissected(t, path, "tcp", "frame.number", "frame.time_epoch", "tcp.srcport", "tcp.dstport",
		"tcp.seq", "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.ack_rtt",
		"tcp.analysis.acks_frame", "tcp.flags.syn") {
		at, _ := strconv.ParseFloat(v[1], 64)
		switch {
		case data(v[2]) && v[5] != "0" && v[5] != "":
			segment[v[0]] = v[2] + " " + v[4]
			times[segment[v[0]]]++
			if within[v[0]] = at >= open && at < closed; within[v[0]] {
				out.packets++
				if v[6] != "" || v[7] != "" {
					out.again++
				}
			}
		case data(v[3]) && v[8] != "" && (v[10] == "0" || v[10] == "False"):
			rtt, err := strconv.ParseFloat(v[8], 64)
			if err != nil {
				t.Fatal(err)
			}
			acks = append(acks, acked{v[9], rtt})
		}
	}
	out.rttMin = math.Inf(1)
	for _, a := range acks {
		if within[a.frame] && times[segment[a.frame]] == 1 {
			out.rtts, out.rttSum, out.rttMin = out.rtts+1, out.rttSum+a.rtt, min(out.rttMin, a.rtt)
		}
	}
	return out
}

// clientPorts reports whether a port is one of a flow's data connections, at its client.
func clientPorts(f wire.Flow, attempt int) func(port string) bool {
	first := f.ClientPort + (attempt-1)*f.Streams
	return func(port string) bool {
		n, _ := strconv.Atoi(port) // 0 is not a client's
		return n >= first && n < first+f.Streams
	}
}

// dissected are fields of a capture's packets that pass a filter, as tshark reads them.
func dissected(t *testing.T, path, filter string, fields ...string) (packets [][]string) {
	t.Helper()
	args := []string{"-r", path, "-Y", filter, "-T", "fields", "-E", "occurrence=l"}
	for _, name := range fields {
		args = append(args, "-e", name)
	}
	text, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		v := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(v) != len(fields) {
			t.Fatalf("tshark printed %q", line)
		}
		packets = append(packets, v)
	}
	return packets
}

// compareCut cuts a capture, and wants to be told where.
func compareCut(t *testing.T, k kept) {
	t.Helper()
	key := k.attempts[0].TrialKey
	path := filepath.Join(k.Dir(), archive.CapturePath(key, deskNodes[1]))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)/2+1], 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(programs, "fieldmesh"), "metrics", k.Dir()).CombinedOutput()
	want := fmt.Sprintf("trial %d attempt %d: read capture of %s: corrupt pcapng: block at byte ", key.Trial,
		key.Attempt, deskNodes[1])
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("metrics of a capture that was cut: %v\n%s", err, out)
	}
	t.Logf("metrics of a capture that was cut: %s", out)
}
