//go:build e2e

package virtual

import (
	"cmp"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// DSR's header lies before TCP's on the air. The reference TCP is told all the same why its segments were lost: an
// error of the channel leaves its threshold as it was, of which NewReno makes half of what is under way.
func TestE2ECausesReachTheReferenceTCPOverDSR(t *testing.T) {
	d := newDesk(t, "[8.3]")
	d.write(t, "causes.yaml", []byte(testnet.Standing("causes", "a", "b", `  duration_s: 20
  gate: {after_s: 0.1, timeout_s: 20, lead_s: 0.3}
  radio: {mode: adhoc, standard: 802.11b, rate_mbps: 2, channel: 1, ssid: causes, bssid: "02:0a:5e:00:00:0b"}
  routing: {protocol: dsr-ns2, ready: daemon}
  tcp: {classic: on, window_packets: 20}
  traffic: {bulk: {kind: iperf3_tcp, from: sender, to: receiver, payload_bytes: 1000, port: 5000}}
factors:
  variant: {key: tcp.variant, levels: [newreno, reference]}
design: {repetitions: 3, order: as_listed, seed: 1}
acceptance: {attempts_max: 1}
field: {radio: ns2_wavelan, channel_error: {mean: 0.1, burst_frames: 10}, mobility: {model: chain, spacing_m: 100}}
`)))
	d.transferred(t, "causes.yaml", "causes", "")
	a := d.read(t, "causes")
	kept, changed := map[string]int{}, map[string]int{}
	for _, trial := range a.Info().Plan.Trials {
		var records []wire.Record
		for r, err := range a.Records(trial.Number, 1) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Node == "a" {
				records = append(records, r)
			}
		}
		slices.SortStableFunc(records, func(x, y wire.Record) int { return cmp.Compare(x.TBootNs, y.TBootNs) })
		thresholds := map[uint64]uint32{} // of each socket, as it was last
		for _, r := range records {
			switch b := r.Body.(type) {
			case *wire.TCPSample:
				if b.SsthreshSegments != nil {
					thresholds[b.Cookie] = *b.SsthreshSegments
				}
			case *wire.TCPEvent:
				if b.Event != "recovery" || b.SsthreshSegments == nil {
					continue
				}
				if was, told := thresholds[b.Cookie]; told && was == *b.SsthreshSegments {
					kept[trial.TCP.Variant]++
				} else {
					changed[trial.TCP.Variant]++
				}
				thresholds[b.Cookie] = *b.SsthreshSegments
			}
		}
	}
	t.Logf("recoveries that kept the threshold: %v, that changed it: %v", kept, changed)
	if changed["newreno"] < 10 || kept["newreno"]*2 > changed["newreno"] {
		t.Errorf("NewReno kept its threshold in %d recoveries and changed it in %d", kept["newreno"],
			changed["newreno"])
	}
	if kept["reference"] < 10 || changed["reference"]*2 > kept["reference"] {
		t.Errorf("the reference TCP kept its threshold in %d recoveries and changed it in %d", kept["reference"],
			changed["reference"])
	}
}
