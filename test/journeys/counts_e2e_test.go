//go:build e2e

package journeys

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
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
	countsAgree(t, []string{"aodv", "dsr"}, "ready: daemon", false)
}

// TestRoutingCountsAreTheDaemons is the part about routing, with those of the protocols
// that may find no way from end to end in so short a time, and ADV.
func TestRoutingCountsAreTheDaemons(t *testing.T) {
	testnet.Need(t, "ip", "iperf3")
	countsAgree(t, []string{"dsdv", "olsr", "aomdv", "adv"}, "ready: daemon", true)
}

// TestSoakCountsAreTheApplications is the whole with these, some of which take time to converge.
func TestSoakCountsAreTheApplications(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "takes minutes more")
	testnet.Need(t, "ip", "iperf3", "tshark")
	countsAgree(t, []string{"olsr", "dsdv", "aomdv", "adv"}, "ready_s: 120", false)
}

func countsAgree(t *testing.T, protocols []string, routing string, onlyOverhead bool) {
	t.Helper()
	file := variant(t, "variants-chain.yaml", "counts", ", rto_max_ms: 60000", "", "duration_s: 360", "duration_s: 26",
		"levels: [tahoe, reno, newreno, vegas1995, westwood2001]", "levels: [newreno]",
		"levels: [dsdv, dsr-ns2, aodv-ns2]",
		"levels: ["+strings.Join(protocols, ", ")+"]", "      static: {still: true}\n", "", "repetitions: 3",
		"repetitions: 1",
		"  hops_min: 5 # from A to F there is no shorter way\n", "", "lateness_share_max: 0.01",
		"lateness_share_max: 1",
		"rate_mbps: 1,", "rate_mbps: 11,", "spacing_m: 105", "spacing_m: 180",
		"at_s: 50, x_m: 410, y_m: 300, speed_mps: 10", "at_s: 10, x_m: 560, y_m: 130, speed_mps: 60",
		"at_s: 100, x_m: 515, y_m: 300, speed_mps: 10", "at_s: 10, x_m: 740, y_m: 130, speed_mps: 60",
		"at_s: 250, x_m: 410, y_m: 0, speed_mps: 10", "at_s: 17, x_m: 560, y_m: 0, speed_mps: 60",
		"at_s: 250, x_m: 515, y_m: 0, speed_mps: 10", "at_s: 17, x_m: 740, y_m: 0, speed_mps: 60",
		"  capture: {snap_bytes: 128}\n", "  capture: {snap_bytes: 128}\n  routing: {"+routing+"}\n",
		"port: 5000}\n", "duration_s: 3, port: 5000}\n    steady: {kind: iperf3_udp, background: true, from: sender, "+
			"to: receiver, start_s: 4, duration_s: 20, payload_bytes: 512, bitrate_bps: 40960, port: 6000}\n"+
			"    constant: {kind: cbr, from: sender, to: receiver, start_s: 4.05, duration_s: 20, payload_bytes: 512, "+
			"bitrate_bps: 40960, port: 6001}\n")
	k := rehearse(t, file).finish(t)
	k.everyTrialOnce(t)
	for _, at := range k.attempts {
		if !accepted(at) {
			continue
		}
		trial, _ := k.Trial(at.Trial)
		t.Run(trial.Routing.Protocol, func(t *testing.T) {
			rows, err := metrics.Of(k.Archive, at.TrialKey)
			if err != nil {
				t.Fatal(err)
			}
			k.overheadAgrees(t, at.TrialKey, trial, rows)
			if onlyOverhead {
				return
			}
			cause := k.iperf3(t, at.TrialKey, "steady", "client").Cause
			if cause != wire.CauseUnreachable && cause != wire.CauseTimeout {
				k.datagramsAgree(t, at.TrialKey, trial, rows)
				k.constantRateAgrees(t, at.TrialKey, trial, rows)
				k.connectingHoldsTheSearch(t, at.TrialKey, trial, rows)
				return
			}
			// The protocol found no way for the flow, which those that search when asked must.
			v := metrics.Value(rows, "steady", metrics.DeliveryFraction)
			if v != nil || trial.Routing.Protocol != "dsdv" && trial.Routing.Protocol != "olsr" {
				t.Errorf("iperf3 sent nothing, and delivery is told: %t", v != nil)
			}
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

// constantRateAgrees holds the flow of kind cbr against the datagrams that tshark finds in both ends' captures, each by
// its number: those that were due are the plan's. All nodes share the machine's clocks.
func (k kept) constantRateAgrees(t *testing.T, key wire.TrialKey, trial wire.Trial, rows []metrics.Row) {
	t.Helper()
	first := func(node string) map[uint32]float64 {
		out := map[uint32]float64{}
		for _, v := range dissected(t, filepath.Join(k.Dir(), archive.CapturePath(key, node)), "udp.dstport == 6001",
			"frame.time_epoch", "udp.payload") {
			at, err := strconv.ParseFloat(v[0], 64)
			head, hexErr := hex.DecodeString(v[1])
			if err != nil || hexErr != nil || len(head) < 12 {
				t.Fatalf("tshark printed %q", v)
			}
			number := binary.BigEndian.Uint32(head[8:])
			if was, known := out[number]; !known || at < was {
				out[number] = at
			}
		}
		return out
	}
	const due = 200 // 20 s, ten a second
	left, came := first(trial.Sender), first(trial.Receiver)
	mean := 0.0
	for number, at := range came {
		mean += 1e3 * (at - left[number]) / float64(len(came))
	}
	value := func(name string) float64 {
		v := metrics.Value(rows, "", name)
		if v == nil {
			t.Fatalf("no %s", name)
		}
		return *v
	}
	t.Logf("constant rate: of %d datagrams %d left and %d came by captures, %g were not sent; delivery %.4f, latency "+
		"%.2f ms and %.2f ms", due, len(left), len(came), value("cbr_packets_unsent"), value(metrics.CBRDelivery), mean,
		value(metrics.CBRLatencyMs))
	if len(came) == 0 || len(came) == due {
		t.Fatalf("%d of %d datagrams came: nothing to compare", len(came), due)
	}
	if got := value(metrics.CBRDelivery); math.Abs(got-float64(len(came))/due) > 1e-9 {
		t.Errorf("delivery is %g, and %d of %d were captured", got, len(came), due)
	}
	if got := value(metrics.CBRLatencyMs); math.Abs(got-mean) > 5 {
		t.Errorf("latency is %g ms, by captures %g ms", got, mean)
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
	out := map[uint32]stampedDelay{}
	for _, v := range dissected(t, filepath.Join(k.Dir(), archive.CapturePath(key, node)), "udp.dstport == 6000",
		"frame.time_epoch", "udp.payload") {
		at, err := strconv.ParseFloat(v[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		head, err := hex.DecodeString(v[1])
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

// sent is what nodes sent for routing, and in what time together.
type sent struct{ packets, bytes, seconds float64 }

func (s sent) String() string { return fmt.Sprintf("%.0f packets (%.0f bytes)", s.packets, s.bytes) }

func (s sent) and(o sent) sent {
	return sent{s.packets + o.packets, s.bytes + o.bytes, s.seconds + o.seconds}
}

const (
	// besideNs is how far a daemon's count may lie from the time of its record: it
	// is asked at a sampler's tick, and what it answers late has the next one's.
	besideNs = 120e6
	// clockNs is how far the clocks of a rehearsal's nodes are compared amiss at most.
	clockNs = 5e6
)

// overheadAgrees holds the daemons' counts, from the first that each gave to the
// last, against the captures, and what is reported of either. All agree within 1 %,
// but for packets that left so near to such a moment that they may be on either
// side of it.
func (k kept) overheadAgrees(t *testing.T, key wire.TrialKey, trial wire.Trial, rows []metrics.Row) {
	t.Helper()
	records := k.records(t, key)
	var told, seen, beside, counted, window, edges sent
	nodes := 0.
	for node, counts := range daemonsCounts(records) {
		nodes++
		first, last := counts[0], counts[len(counts)-1]
		told = told.and(between(first, last))
		seen = seen.and(k.captured(t, key, node, first.TBootNs, last.TBootNs))
		for _, atNs := range []int64{first.TBootNs, last.TBootNs} {
			beside = beside.and(k.captured(t, key, node, atNs-besideNs, atNs+besideNs))
		}
		w := windowOf(t, records, node)
		counted = counted.and(between(lastBefore(counts, w.OpenBootNs), lastBefore(counts, w.CloseBootNs)))
		window = window.and(k.captured(t, key, node, w.OpenBootNs, w.CloseBootNs))
		for _, atNs := range []int64{w.OpenBootNs, w.CloseBootNs} {
			edges = edges.and(k.captured(t, key, node, atNs-clockNs, atNs+clockNs))
		}
	}
	value := func(name string) float64 {
		v := metrics.Value(rows, "", name)
		if v == nil {
			t.Fatalf("no %s", name)
		}
		return *v
	}
	t.Logf("routing: in %.1f s of all nodes the daemons sent %v, by captures %v (%v beside the counts); in the "+
		"window %v (%v beside its edges)", told.seconds, told, seen, beside, window, edges)
	if int(nodes) != len(trial.Nodes()) || seen.packets < 20 {
		t.Errorf("%.0f of %d daemons told, and %.0f packets were captured: too little to compare", nodes,
			len(trial.Nodes()), seen.packets)
	}
	near := func(what string, got, want, slack float64) {
		if math.Abs(got-want) > 0.01*want+slack {
			t.Errorf("%s: %.2f, want %.2f within 1 %% and %.0f", what, got, want, slack)
		}
	}
	near("packets that the daemons count", told.packets, seen.packets, beside.packets)
	near("bytes that the daemons count", told.bytes, seen.bytes, beside.bytes)
	// The daemons' rates are means of the nodes, the captures' are sums.
	near("daemon_packets_per_s", value("daemon_packets_per_s")*counted.seconds, counted.packets, 0)
	near("daemon_bytes_per_s", value("daemon_bytes_per_s")*counted.seconds, counted.bytes, 0)
	near(metrics.RoutingPacketsPS, value(metrics.RoutingPacketsPS)*window.seconds/nodes, window.packets,
		edges.packets)
	near(metrics.RoutingBytesPS, value(metrics.RoutingBytesPS)*window.seconds/nodes, window.bytes,
		edges.bytes)
}

// between is what a daemon counted from one record to another.
func between(first, last wire.Record) sent {
	a, b := first.Body.(*wire.RoutingCount), last.Body.(*wire.RoutingCount)
	return sent{float64(*b.PacketsSent - *a.PacketsSent), float64(*b.BytesSent - *a.BytesSent),
		float64(last.TBootNs-first.TBootNs) / 1e9}
}

func daemonsCounts(records []wire.Record) map[string][]wire.Record {
	out := map[string][]wire.Record{}
	for _, r := range records {
		if _, is := r.Body.(*wire.RoutingCount); is {
			out[r.Node] = append(out[r.Node], r)
		}
	}
	return out
}

// lastBefore is the last record before a moment, or the first of all.
func lastBefore(counts []wire.Record, atNs int64) wire.Record {
	out := counts[0]
	for _, r := range counts {
		if r.TBootNs <= atNs {
			out = r
		}
	}
	return out
}

// captured is what a node's capture has of routing between two moments of its boot clock.
func (k kept) captured(t *testing.T, key wire.TrialKey, node string, fromNs, toNs int64) sent {
	t.Helper()
	f, err := k.OpenCapture(key, node)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ahead := k.wallAhead(t, key, node)
	end, err := packets.Scan(packets.End{Name: node, Capture: f, OpenNs: fromNs, CloseNs: toNs,
		Common: func(wallNs int64) int64 { return wallNs - ahead }})
	if err != nil {
		t.Fatal(err)
	}
	return sent{float64(end.RoutingPackets), float64(end.RoutingBytes), float64(toNs-fromNs) / 1e9}
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
	onDemand := slices.Contains([]string{"aodv", "aodv-ns2", "dsr", "aomdv"}, trial.Routing.Protocol)
	if onDemand && search == 0 || *v < search {
		t.Errorf("%s: the time to connect does not hold the search for a way", trial.Routing.Protocol)
	}
}

// Where the nodes do not reach each other, connections are told as censored, for
// as long as they were asked for, and not left out.
func TestConnectionsThatNeverComeAreCensored(t *testing.T) {
	testnet.Need(t, "ip", "iperf3")
	file := variant(t, "variants-chain.yaml", "censored", ", rto_max_ms: 60000", "", "duration_s: 360", "duration_s: 4",
		"levels: [tahoe, reno, newreno, vegas1995, westwood2001]", "levels: [newreno]",
		"levels: [dsdv, dsr-ns2, aodv-ns2]", "levels: [aodv-ns2, dsr]", "      mobile: {still: false}\n", "",
		"repetitions: 3", "repetitions: 1",
		"  hops_min: 5 # from A to F there is no shorter way\n", "", "lateness_share_max: 0.01",
		"lateness_share_max: 1", "spacing_m: 105", "spacing_m: 210")
	k := rehearse(t, file).finish(t)
	k.everyTrialOnce(t)
	for _, at := range k.attempts {
		if !accepted(at) {
			continue
		}
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
