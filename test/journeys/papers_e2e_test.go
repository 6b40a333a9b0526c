//go:build e2e

package journeys

import (
	"math"
	"net/netip"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/packets"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Over two lossy hops, the loss that captures tell is the one that the emulated
// field has counted, and their one-way delay is right within what it states: all
// nodes of a rehearsal share the machine's boot clock, so that the true delay is
// known, and metrics must come to it by the comparison of clocks. The flows begin
// and end inside of the window: the field counts what it loses in it, captures
// what was sent in it and lost at any time.
func TestCapturesAgreeWithTheField(t *testing.T) {
	testnet.Need(t, "ip", "iperf3")
	unlessLate(t, capturesAgree)
}

// capturesAgree takes the first attempt: another may begin within a burst of errors.
func capturesAgree(t *testing.T, mayBeLate bool) (late bool) {
	file := variant(t, "variants-chain.yaml", "agree", ", rto_max_ms: 60000", "", "receiver: f", "receiver: c",
		"relays: [b, c, d, e]",
		"relays: [b]", "duration_s: 360", "duration_s: 12", "rate_mbps: 1,", "rate_mbps: 11,",
		"levels: [tahoe, reno, newreno, vegas1995, westwood2001]", "levels: [newreno]",
		"levels: [dsdv, dsr-ns2, aodv-ns2]", "levels: [static]", "      mobile: {still: false}\n", "",
		"repetitions: 3", "repetitions: 1", "  hops_min: 5 # from A to F there is no shorter way\n", "",
		"lateness_share_max: 0.01", "lateness_share_max: 1",
		"  capture: {snap_bytes: 128}\n", "  capture: {snap_bytes: 128}\n  conditions: {channel_error: {mean: 0.1, "+
			"burst_frames: 30}}\n",
		"port: 5000}\n", "start_s: 0.5, duration_s: 9, port: 5000}\n    steady: {kind: iperf3_udp, "+
			"background: true, from: sender, to: receiver, start_s: 0.5, duration_s: 9, payload_bytes: 512, "+
			"bitrate_bps: 800000, port: 6000}\n")
	k := rehearse(t, file).finish(t)
	if first := k.Decisions()[0]; mayBeLate && testnet.Late(first.Reason) {
		return true
	}
	key := k.attempts[0].TrialKey
	trial, _ := k.Trial(key.Trial)
	rows, err := metrics.Of(k.Archive, key)
	if err != nil {
		t.Fatal(err)
	}
	if dropped := metrics.Value(rows, "", "capture_dropped"); dropped == nil || *dropped != 0 {
		t.Fatal("the captures dropped packets: nothing to compare")
	}
	for _, f := range trial.Traffic {
		value := func(name string) float64 {
			t.Helper()
			v := metrics.Value(rows, f.Name, name)
			if v == nil {
				t.Fatalf("%s has no %s", f.Name, name)
			}
			return *v
		}
		seen, truth := value(metrics.PacketLossPercent), value(metrics.TrueLossPercent)
		t.Logf("%s: %g packets, lost %.4g %% by captures, %.4g %% by the field", f.Name, value("packets_sent"), seen,
			truth)
		if seen == 0 || math.Abs(seen-truth) > 0.1 {
			t.Errorf("%s: captures have %g %% lost, the field %g %%: want some, and the same within 0.1 "+
				"percentage points", f.Name, seen, truth)
		}
		delay, stated, exact := value(metrics.OneWayMeanMs), value("one_way_delay_uncertainty_ms"),
			trueDelayMs(t, k, key, trial, f)
		t.Logf("%s: delayed %.4f ± %.4f ms by captures, in truth %.4f ms", f.Name, delay, stated, exact)
		if math.Abs(delay-exact) > stated {
			t.Errorf("%s: one-way delay is %g ± %g ms, and in truth %g ms", f.Name, delay, stated, exact)
		}
	}
	return false
}

// trueDelayMs is a flow's mean one-way delay by the boot clock that its ends share.
func trueDelayMs(t *testing.T, k kept, key wire.TrialKey, trial wire.Trial, f wire.Flow) float64 {
	t.Helper()
	records := k.records(t, key)
	end := func(node string) packets.End {
		file, err := k.OpenCapture(key, node)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		w := windowOf(t, records, node)
		for _, r := range records {
			if c, ok := r.Body.(*wire.Capture); ok && r.Node == node {
				return packets.End{Name: node, Capture: file, OpenNs: w.OpenBootNs, CloseNs: w.CloseBootNs,
					Common: func(wallNs int64) int64 { return wallNs - c.WallOffsetOpen }}
			}
		}
		t.Fatalf("%s reported no capture", node)
		return packets.End{}
	}
	address := func(node string) netip.Addr {
		for _, n := range k.Info().Plan.Nodes {
			if n.Name == node {
				return netip.MustParsePrefix(n.MeshPrefix).Addr()
			}
		}
		t.Fatalf("the plan has no node %q", node)
		return netip.Addr{}
	}
	flow := packets.Flow{Name: f.Name, UDP: f.Kind == "iperf3_udp", From: address(f.From), To: address(f.To),
		Port: uint16(f.Port), Reverse: f.Reverse, Streams: f.Streams}
	if !flow.UDP {
		flow.ClientFirst = uint16(f.ClientPort + (key.Attempt-1)*max(f.Streams, 1))
	}
	out, _, err := packets.Analyse(end(trial.Sender), end(trial.Receiver), []packets.Flow{flow})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].OneWay.MeanNs() / 1e6
}
