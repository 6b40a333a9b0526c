//go:build e2e

package virtual

import (
	"math"
	"os"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// P3's campaign with a node out of reach of all others, for longer than iperf3 would ask for it. The flow of kind cbr
// to it sends from its beginning to its end, as the simulator's, and loses; the one beside it arrives. Figures are of
// both.
func TestE2EAFlowWithoutAWayIsCounted(t *testing.T) {
	d := newDesk(t, "[8.3]")
	text, err := os.ReadFile(testnet.Campaign(t, "../../campaigns/fixed-rto.yaml", "away",
		"  receiver: n02\n", "  receiver: n03\n", `  relays: ["n[03-50]"]`+"\n", "",
		"    tcp: {kind: iperf3_tcp, unique_ends: true, from: random, to: random, flows: 1,",
		"    tcp: {kind: iperf3_tcp,",
		"    cbr: {kind: cbr, from: random, to: random, flows: 10, payload_bytes: 512, total_bps: 50000, "+
			"start_within_s: 3.5, port: 6000}\n",
		"    near: {kind: cbr, from: n02, to: n05, payload_bytes: 512, bitrate_bps: 5000, port: 6000}\n"+
			"    away: {kind: cbr, from: n02, to: n06, payload_bytes: 512, bitrate_bps: 5000, port: 6001}\n",
		"trial: {duration_s: 4, warmup_s: 2, relays: [\"n[03-06]\"]}",
		"trial: {duration_s: 36, warmup_s: 2, relays: [n02, n04, n05, n06]}",
		"      tcp: {only: [reno, fixed_rto]}\n", "      tcp: {only: [reno]}\n",
		"      load: {only: [tcp1_cbr10_50], levels: {tcp1_cbr10_50: {traffic: {cbr: {flows: 3, total_bps: "+
			"15000}}}}}\n",
		"      load: {only: [tcp1_cbr10_50]}\n",
		"tcp1_cbr10_50: {traffic: {tcp: {flows: 1}, cbr: {flows: 10, total_bps: 50000}}}",
		"tcp1_cbr10_50: {duration_s: 36}",
		"n06: {x_m: 900, y_m: 500}", "n06: {x_m: 990, y_m: 0}"))
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "away.yaml", text)
	if out, err := d.rehearse("away.yaml", "--scale", "smoke", "--clock", "virtual", "--name",
		"away").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a := d.read(t, "away")
	acceptedAtOnce(t, a, 1)
	trial := a.Info().Plan.Trials[0]
	sent, arrived := map[string]float64{}, map[string]float64{}
	for r, err := range a.Records(trial.Number, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := r.Body.(*wire.DelayEnd); ok {
			sent[b.Flow] += float64(b.Sent)
			arrived[b.Flow] += float64(b.Received)
		}
	}
	rows, err := metrics.Table(a)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		v := metrics.Value(rows, "", name)
		if v == nil {
			t.Fatalf("no %s", name)
		}
		return *v
	}
	const all, inWindow = 47, 44 // 38 s and the last 36 s, one every 819.2 ms
	t.Logf("sent %v, arrived %v; delivery %.4f, latency %.2f ms, at most %g ms too long", sent, arrived,
		value(metrics.CBRDelivery), value(metrics.CBRLatencyMs), value(metrics.CBRLatencyExcessMs))
	if sent["away"] != all || arrived["away"] != 0 || sent["near"] != all || arrived["near"] < all-3 {
		t.Errorf("sent %v of %d, arrived %v", sent, all, arrived)
	}
	if got := value(metrics.CBRFlows); got != 2 || value(metrics.CBRUnsent) != 0 {
		t.Errorf("%g flows, %g unsent", got, value(metrics.CBRUnsent))
	}
	if got, least := value(metrics.CBRDelivery), (inWindow-3)/(2.*inWindow); got > 0.5 || got < least ||
		math.Abs(got*2*inWindow-math.Round(got*2*inWindow)) > 1e-9 {
		t.Errorf("delivery is %g; want at least %g, of %d datagrams", got, least, 2*inWindow)
	}
}
