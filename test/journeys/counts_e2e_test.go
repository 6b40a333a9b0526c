//go:build e2e

package journeys

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/packets"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// On a chain whose middle goes away and comes back, delivery and latency of
// constant-bit-rate datagrams are those of iperf3's own numbers and stamps, the
// routing's packets those that the daemons say they sent, and the time to connect
// holds the daemon's search for a way.
func TestCountsAreTheApplications(t *testing.T) {
	testnet.Need(t, "ip", "iperf3", "tshark")
	countsAgree(t, "aodv, dsr, adv", "ready: daemon")
}

// TestSoakCountsAreTheApplications is the same with the other three protocols.
func TestSoakCountsAreTheApplications(t *testing.T) {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skip("takes minutes more: make soak, or set FIELDMESH_SOAK")
	}
	testnet.Need(t, "ip", "iperf3", "tshark")
	countsAgree(t, "aomdv, olsr, dsdv", "ready_s: 120")
}

func countsAgree(t *testing.T, protocols, routing string) {
	t.Helper()
	dir := testnet.Folder(t)
	file := variant(t, "variants-chain.yaml", "counts", "duration_s: 360", "duration_s: 20",
		"levels: [tahoe, reno, newreno, vegas, westwood]", "levels: [newreno]",
		"levels: [dsdv, dsr, aodv]", "levels: ["+protocols+"]", "      static: {still: true}\n", "", "repetitions: 3",
		"repetitions: 1", "attempts_max: 8", "attempts_max: 3",
		"  hops_min: 5 # from A to F there is no shorter way\n", "", "lateness_share_max: 0.01",
		"lateness_share_max: 1",
		"at_s: 50, x_m: 560, y_m: 1000, speed_mps: 10", "at_s: 4, x_m: 560, y_m: 130, speed_mps: 60",
		"at_s: 100, x_m: 740, y_m: 1000, speed_mps: 10", "at_s: 4, x_m: 740, y_m: 130, speed_mps: 60",
		"at_s: 250, x_m: 560, y_m: 0, speed_mps: 10", "at_s: 11, x_m: 560, y_m: 0, speed_mps: 60",
		"at_s: 250, x_m: 740, y_m: 0, speed_mps: 10", "at_s: 11, x_m: 740, y_m: 0, speed_mps: 60",
		"  capture: {snap_bytes: 128}\n", "  capture: {snap_bytes: 128}\n  routing: {"+routing+"}\n",
		"port: 5000}\n", "duration_s: 3, port: 5000}\n    steady: {kind: cbr, from: sender, to: receiver, start_s: "+
			"1, duration_s: 17, payload_bytes: 512, bitrate_bps: 40960, port: 6000}\n")
	fieldmesh(t, "rehearse", file, "--runs", filepath.Join(dir, "runs"), "--name", "counts", "--field-dir",
		filepath.Join(dir, "fields"))
	k := openRun(t, filepath.Join(dir, "runs", "counts"))
	for _, at := range k.attempts {
		if at.Verdict == nil || at.Verdict.Outcome != "accepted" {
			continue
		}
		trial, _ := k.Trial(at.Trial)
		t.Run(trial.Routing.Protocol, func(t *testing.T) {
			rows, err := metrics.Of(k.Archive, at.TrialKey)
			if err != nil {
				t.Fatal(err)
			}
			k.datagramsAgree(t, at.TrialKey, trial, rows)
			k.overheadAgrees(t, at.TrialKey, trial)
			k.connectingHoldsTheSearch(t, at.TrialKey, trial, rows)
		})
	}
}

// datagramsAgree holds the flow of datagrams against what iperf3's client says
// it sent and what tshark finds at the receiver, by the stamps in the datagrams.
func (k kept) datagramsAgree(t *testing.T, key wire.TrialKey, trial wire.Trial, rows []metrics.Row) {
	t.Helper()
	value := func(name string) float64 {
		v := metrics.Value(rows, "steady", name)
		if v == nil {
			t.Fatalf("no %s", name)
		}
		return *v
	}
	var said struct {
		End struct {
			Sum struct{ Packets float64 }
		}
	}
	client := k.iperf3(t, key, "steady", "client")
	if client.Cause == wire.CauseUnreachable || client.Cause == wire.CauseTimeout {
		if v := metrics.Value(rows, "steady", metrics.DeliveryFraction); v != nil {
			t.Errorf("delivery is %g, and iperf3 sent nothing: %s", *v, client.Error)
		}
		return
	}
	if err := json.Unmarshal(client.Output, &said); err != nil {
		t.Fatalf("iperf3 said %s: %v", client.Output, err)
	}
	// Not the sum of its intervals: one that is interrupted leaves its last out.
	sent := said.End.Sum.Packets
	stamped := k.stampedDelays(t, key, trial.Receiver)
	w, ahead := windowOf(t, k.records(t, key), trial.Sender), k.wallAhead(t, key, trial.Sender)
	var delays []float64
	var last uint32 // number of the last that was sent in the window and arrived
	for number, d := range stamped {
		if d.stampNs-ahead < w.CloseBootNs {
			delays = append(delays, d.ms)
			last = max(last, number)
		}
	}
	// A client that connected late sends beyond the window's close; those are
	// not the window's. It sends evenly.
	if last > 0 {
		const perS = 40960 / (8 * 512)
		rest := float64(w.CloseBootNs-(stamped[last].stampNs-ahead)) / 1e9
		sent = min(sent, float64(last)+math.Floor(rest*perS))
	}
	mean := 0.0
	for _, ms := range delays {
		mean += ms / float64(len(delays))
	}
	delivery := float64(len(delays)) / sent
	t.Logf("sent %g by iperf3, %g here (%g on the link); delivery %.4f and %.4f; latency %.2f ms and %.2f ms (%.2f "+
		"on the link)", sent, value("packets_sent"),
		value(metrics.LinkSent), delivery, value(metrics.DeliveryFraction), mean, value(metrics.OneWayMeanMs),
		value("link_one_way_delay_mean_ms"))
	if len(delays) == 0 || sent == 0 || len(delays) == int(sent) {
		t.Fatalf("%d of %g datagrams arrived: nothing to compare", len(delays), sent)
	}
	if got := value(metrics.DeliveryFraction); math.Abs(got-delivery) > 0.01*delivery {
		t.Errorf("delivery is %g, by iperf3's numbers %g", got, delivery)
	}
	if got := value(metrics.OneWayMeanMs); math.Abs(got-mean) > 5 {
		t.Errorf("latency is %g ms, by iperf3's stamps %g ms", got, mean)
	}
}

// wallAhead is how far a node's wall clock was ahead of its boot clock.
func (k kept) wallAhead(t *testing.T, key wire.TrialKey, node string) int64 {
	t.Helper()
	for _, r := range k.records(t, key) {
		if c, ok := r.Body.(*wire.Capture); ok && r.Node == node {
			return c.WallOffsetOpen
		}
	}
	t.Fatalf("%s reported no capture", node)
	return 0
}

// stampedDelay is how long a datagram took, and when iperf3 stamped it by the wall clock.
type stampedDelay struct {
	ms      float64
	stampNs int64
}

// stampedDelays reads a receiver's capture by tshark: of each datagram's first
// copy the time since iperf3 stamped it, in ms. All nodes share the machine's clocks.
func (k kept) stampedDelays(t *testing.T, key wire.TrialKey, node string) map[uint32]stampedDelay {
	t.Helper()
	var real, mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &real); err != nil {
		t.Fatal(err)
	}
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("tshark", "-r", filepath.Join(k.Dir(), archive.CapturePath(key, node)), "-Y",
		"udp.dstport == 6000",
		"-T", "fields", "-E", "occurrence=l", "-e", "frame.time_epoch", "-e", "udp.payload").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	out := map[uint32]stampedDelay{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		epoch, payload, _ := strings.Cut(lines.Text(), "\t")
		at, err := strconv.ParseFloat(epoch, 64)
		if err != nil {
			t.Fatal(err)
		}
		head, err := hex.DecodeString(payload)
		if err != nil || len(head) < 12 {
			continue // iperf3's connecting
		}
		stamp := float64(binary.BigEndian.Uint32(head)) + float64(binary.BigEndian.Uint32(head[4:]))/1e6
		if stamp < 1e9 { // of the monotonic clock
			stamp += float64(real.Nano()-mono.Nano()) / 1e9
		}
		number := binary.BigEndian.Uint32(head[8:])
		if first, known := out[number]; !known || (at-stamp)*1e3 < first.ms {
			out[number] = stampedDelay{(at - stamp) * 1e3, int64(stamp * 1e9)}
		}
	}
	return out
}

// overheadAgrees holds what the captures have of routing between a daemon's first
// and last word against what it says it sent in between.
func (k kept) overheadAgrees(t *testing.T, key wire.TrialKey, trial wire.Trial) {
	t.Helper()
	type word struct {
		atNs           int64
		packets, bytes uint64
	}
	first, last, captures := map[string]word{}, map[string]word{}, map[string]*wire.Capture{}
	for _, r := range k.records(t, key) {
		switch b := r.Body.(type) {
		case *wire.Capture:
			captures[r.Node] = b
		case *wire.RoutingCount:
			w := word{r.TBootNs, *b.PacketsSent, *b.BytesSent}
			if _, known := first[r.Node]; !known {
				first[r.Node] = w
			}
			last[r.Node] = w
		}
	}
	var seen packets.EndResult
	var told word
	for node, c := range captures {
		f, err := k.OpenCapture(key, node)
		if err != nil {
			t.Fatal(err)
		}
		end, err := packets.Scan(packets.End{Name: node, Capture: f, OpenNs: first[node].atNs, CloseNs: last[node].atNs,
			Common: func(wallNs int64) int64 { return wallNs - c.WallOffsetOpen }})
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		seen.RoutingPackets, seen.RoutingBytes, seen.RoutingHeaders = seen.RoutingPackets+end.RoutingPackets,
			seen.RoutingBytes+end.RoutingBytes, seen.RoutingHeaders+end.RoutingHeaders
		told.packets, told.bytes = told.packets+last[node].packets-first[node].packets, told.bytes+last[node].bytes-
			first[node].bytes
	}
	t.Logf("routing: %d packets and %d bytes (%d in headers of data) by captures, %d and %d by the daemons",
		seen.RoutingPackets, seen.RoutingBytes, seen.RoutingHeaders, told.packets, told.bytes)
	off := func(got, want uint64, slack float64) bool {
		return math.Abs(float64(got)-float64(want)) > max(0.01*float64(want), slack)
	}
	if told.packets == 0 || off(seen.RoutingPackets, told.packets, 2) || off(seen.RoutingBytes, told.bytes, 200) {
		t.Errorf("%s: captures and daemons disagree by more than 1 %%", trial.Routing.Protocol)
	}
}

// connectingHoldsTheSearch holds the time to connect against the searches of the
// sender's daemon while its first packet waited.
func (k kept) connectingHoldsTheSearch(t *testing.T, key wire.TrialKey, trial wire.Trial, rows []metrics.Row) {
	t.Helper()
	v := metrics.Value(rows, "bulk", metrics.ConnectTimeMs)
	if v == nil {
		t.Fatalf("no %s", metrics.ConnectTimeMs)
	}
	records, search := k.records(t, key), 0.0
	w := windowOf(t, records, trial.Sender)
	for _, r := range records {
		b, ok := r.Body.(*wire.RoutingEvent)
		if ok && r.Node == trial.Sender && b.Report == "discovery_us" && b.AtBootNs >= w.OpenBootNs && search == 0 {
			search = *b.Value / 1e3
		}
	}
	text := fmt.Sprintf("connected after %.1f ms, the daemon's search took %.1f ms", *v, search)
	if first := metrics.Value(rows, "bulk", "first_segment_ms"); first != nil {
		text += fmt.Sprintf("; from the data's SYN on %.1f ms", *first)
	}
	t.Log(text)
	if onDemand := trial.Routing.Protocol == "aodv" || trial.Routing.Protocol == "dsr" || trial.Routing.Protocol ==
		"aomdv"; onDemand && search == 0 || *v < search {
		t.Errorf("%s: the time to connect does not hold the search for a way", trial.Routing.Protocol)
	}
}

// Where the nodes do not reach each other, connections are told as censored, for
// as long as they were asked for, and not left out.
func TestConnectionsThatNeverComeAreCensored(t *testing.T) {
	testnet.Need(t, "ip", "iperf3")
	dir := testnet.Folder(t)
	file := variant(t, "variants-chain.yaml", "censored", "duration_s: 360", "duration_s: 4",
		"levels: [tahoe, reno, newreno, vegas, westwood]", "levels: [newreno]",
		"levels: [dsdv, dsr, aodv]", "levels: [aodv, dsr]", "      mobile: {still: false}\n", "", "repetitions: 3",
		"repetitions: 1",
		"  hops_min: 5 # from A to F there is no shorter way\n", "", "lateness_share_max: 0.01",
		"lateness_share_max: 1", "spacing_m: 180", "spacing_m: 210")
	fieldmesh(t, "rehearse", file, "--runs", filepath.Join(dir, "runs"), "--name", "censored", "--field-dir",
		filepath.Join(dir, "fields"))
	run := filepath.Join(dir, "runs", "censored")
	k := openRun(t, run)
	k.everyTrialOnce(t)
	for _, at := range k.attempts {
		rows, err := metrics.Of(k.Archive, at.TrialKey)
		if err != nil {
			t.Fatal(err)
		}
		trial, _ := k.Trial(at.Trial)
		v := metrics.Value(rows, "bulk", metrics.ConnectCensoredMs)
		if v == nil || *v < 3500 || *v > 4000 || metrics.Value(rows, "bulk", metrics.ConnectTimeMs) != nil {
			t.Errorf("%s: a connection that never was is told as %v", trial.Routing.Protocol, v)
			continue
		}
		t.Logf("%s: not connected after %.0f ms", trial.Routing.Protocol, *v)
	}
}
