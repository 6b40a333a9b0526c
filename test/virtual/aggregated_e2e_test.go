//go:build e2e

package virtual

import (
	"fmt"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Two nodes in reach with radios of 802.11n and 802.11ac. TCP, whose ACKs take airtime
// too, comes near to what datagrams of 1,500 bytes reach by the standard's arithmetic
// (TestAMPDUSaturationAgainstArithmetic of
// rehearsal/medium), and never beyond it.
func TestE2ETCPOverAggregates(t *testing.T) {
	d := newDesk(t, "[8.3]")
	for _, c := range []struct {
		radio, standard          string
		rateMbps, saturationMbps float64
	}{
		{"ht20", "802.11n", 65, 60.9},
		{"ht40", "802.11n", 135, 124.8},
		{"vht80", "802.11ac", 390, 344.9},
	} {
		d.write(t, c.radio+".yaml", []byte(testnet.Standing(c.radio, "a", "b", fmt.Sprintf(`  duration_s: 5
  gate: {after_s: 1, timeout_s: 30, lead_s: 0.5}
  radio: {mode: adhoc, standard: %s, rate_mbps: %g, channel: 36, ssid: n, bssid: "02:0a:5e:00:00:06"}
  routing: {protocol: none}
  tcp: {variant: reno}
  traffic: {bulk: {kind: iperf3_tcp, from: sender, to: receiver, payload_bytes: 1460, port: 5000}}
design: {repetitions: 1, order: as_listed, seed: 1}
acceptance: {attempts_max: 1}
field: {radio: %s, mobility: {model: chain, spacing_m: 5}}
`, c.standard, c.rateMbps, c.radio))))
		mbps := d.transferred(t, c.radio+".yaml", c.radio, "")[1] * 8 / 5
		t.Logf("%s: %.1f Mbit/s of %.1f", c.radio, mbps, c.saturationMbps)
		if mbps < 0.8*c.saturationMbps || mbps > c.saturationMbps {
			t.Errorf("%s: TCP reached %.1f Mbit/s, want 80 to 100 %% of %.1f", c.radio, mbps, c.saturationMbps)
		}
	}
}
