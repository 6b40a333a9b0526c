//go:build e2e

package journeys

import (
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// leastMs is what every level of everyVariant has as its least RTO: the least
// that the reference TCP can have.
const leastMs = 1000

var everyVariant = testnet.Standing("least-rto", "alpha", "bravo", `  duration_s: 1
  gate: {after_s: 0.2, timeout_s: 30, lead_s: 0.3}
  radio: {mode: adhoc, standard: 802.11b, rate_mbps: 2, channel: 1, ssid: least, bssid: "02:0a:5e:00:00:09"}
  routing: {protocol: none}
  tcp: {rto_min_ms: 1000}
  traffic:
    bulk: {kind: iperf3_tcp, from: sender, to: receiver, payload_bytes: 1460, port: 5000}
factors:
  tcp:
    levels:
      tahoe: {tcp: {variant: tahoe, classic: on}}
      reno: {tcp: {variant: reno}}
      reno_classic: {tcp: {variant: reno, classic: on}}
      newreno: {tcp: {variant: newreno, classic: on, rto_max_ms: 30000}}
      sack: {tcp: {variant: sack}}
      fack: {tcp: {variant: fack}}
      vegas: {tcp: {variant: vegas}}
      westwood: {tcp: {variant: westwood}}
      vegas1995: {tcp: {variant: vegas1995}}
      westwood2001: {tcp: {variant: westwood2001}}
      fixed_rto: {tcp: {variant: reno, fixed_rto: on}}
      reference: {tcp: {variant: reference}}
design: {repetitions: 1, order: as_listed, seed: 1}
acceptance: {attempts_max: 20}
field: {propagation: disc, range_m: 250, mobility: {model: chain, spacing_m: 100}}
`)

// With rto_min_ms the levels of a factor have one least RTO, as the kernel tells
// it on every node, and no socket that has measured a round trip has a shorter timer.
func TestLevelsWithOneLeastRTOHaveIt(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3")
	file := filepath.Join(t.TempDir(), "least-rto.yaml")
	if err := os.WriteFile(file, []byte(everyVariant), 0o600); err != nil {
		t.Fatal(err)
	}
	k := rehearse(t, file).finish(t)
	k.everyTrialOnce(t)
	told := map[string]int{} // level → nodes that told it
	for _, at := range k.attempts {
		trial, _ := k.Trial(at.Trial)
		level, shortest := trial.Factors["tcp"], ^uint32(0)
		for _, r := range k.records(t, at.TrialKey) {
			switch b := r.Body.(type) {
			case *wire.Provenance:
				if b.TCP == nil || b.TCP.RTOMinUs == nil || *b.TCP.RTOMinUs != leastMs*1000 {
					t.Errorf("%s: in force on %s is %+v, want a least RTO of %d ms", level, r.Node, b.TCP, leastMs)
				}
				if level == "newreno" && (b.TCP.RTOMaxMs == nil || *b.TCP.RTOMaxMs != 30_000) {
					t.Errorf("%s: in force on %s is %+v, want a largest RTO of 30 s", level, r.Node, b.TCP)
				}
				told[level]++
			case *wire.TCPSample:
				if b.RTTUs > 0 && b.Stream != nil {
					shortest = min(shortest, b.RTOUs)
				}
			}
		}
		if shortest == ^uint32(0) && !accepted(at) { // there was no socket, or none was seen
			continue
		}
		if shortest < leastMs*1000 || shortest == ^uint32(0) {
			t.Errorf("%s: the shortest RTO of a data socket is %d µs", level, shortest)
		}
		t.Logf("%s: least RTO %d ms on %d nodes, shortest RTO of a data socket %d µs", level, leastMs, told[level],
			shortest)
	}
	if len(told) != 12 {
		t.Errorf("levels with provenance: %v", told)
	}
}
