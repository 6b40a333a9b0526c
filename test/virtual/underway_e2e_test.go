//go:build e2e

package virtual

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Of a chain on which nothing is lost, the captures have nothing lost either: what is under way when the
// window closes arrives, because the relays go on until then.
func TestE2EWhatIsUnderWayAtTheCloseArrives(t *testing.T) {
	d := newDesk(t, "[8.3]")
	text := strings.NewReplacer("rate_mbps: 11", "rate_mbps: 1", "window_packets: 1", "window_packets: 8",
		"duration_s: 10", "duration_s: 4\n  capture: {snap_bytes: 128}\n  routing: {protocol: static}",
		"repetitions: 4", "repetitions: 3").Replace(string(chain("abcd", "      three: {}\n")))
	d.write(t, "underway.yaml", []byte(text))
	d.transferred(t, "underway.yaml", "underway", "")
	a := d.read(t, "underway")
	for _, trial := range a.Info().Plan.Trials {
		rows, err := metrics.Of(a, wire.TrialKey{Trial: trial.Number, Attempt: 1})
		if err != nil {
			t.Fatal(err)
		}
		value := func(name string) *float64 { return metrics.Value(rows, "bulk", name) }
		sent, lost, truth := value("packets_sent"), value(metrics.PacketLossPercent), value(metrics.TrueLossPercent)
		if sent == nil || lost == nil || truth == nil || *sent < 50 {
			t.Fatalf("trial %d: %v packets, lost %v, in truth %v", trial.Number, sent, lost, truth)
		}
		t.Logf("trial %d: %g packets, lost %.3g %% by captures, %.3g %% by the field", trial.Number, *sent, *lost,
			*truth)
		if *truth != 0 || *lost != 0 {
			t.Errorf("trial %d: want none lost by either", trial.Number)
		}
	}
}
