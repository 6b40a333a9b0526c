//go:build e2e

package virtual

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A receiver drives out of reach for longer than iperf3 waits for data by itself, 120 s,
// and comes back. The connection lives on, whichever end is iperf3's client, and what
// arrives after the outage is counted.
func TestE2EALongOutageDoesNotEndAFlow(t *testing.T) {
	d := newDesk(t, "[8.3]")
	text := string(chain("ab", "      sender_asks: {initiator: a}\n      receiver_asks: {initiator: b}\n"))
	for _, change := range [][2]string{
		{"duration_s: 10", "duration_s: 280"},
		{"  initiator: a\n", ""},
		{"window_packets: 1}", "window_packets: 1, rto_max_ms: 10000}"},
		{"repetitions: 4", "repetitions: 1"},
		{"{model: chain, spacing_m: 34}", "{model: chain, spacing_m: 34, moves: [" +
			"{node: b, at_s: 20, x_m: 34, y_m: 1000, speed_mps: 60}, " +
			"{node: b, at_s: 190, x_m: 34, y_m: 0, speed_mps: 60}]}"},
	} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("the campaign has no %q", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	d.write(t, "outage.yaml", []byte(text))
	d.transferred(t, "outage.yaml", "outage", "")
	a := d.read(t, "outage")
	for _, trial := range a.Info().Plan.Trials {
		var window *wire.Window
		var away, end uint64
		outageS := 0.0
		last := 0.0
		for r, err := range a.Records(trial.Number, 1) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Node != "b" {
				continue
			}
			switch b := r.Body.(type) {
			case *wire.Window:
				window = b
			case *wire.TCPSample:
				if window == nil || b.Stream == nil {
					continue
				}
				s := float64(r.TBootNs-window.OpenBootNs) / 1e9
				if b.BytesReceived > end {
					outageS, last = max(outageS, s-last), s
				}
				if end = b.BytesReceived; s < 100 {
					away = end
				}
			}
		}
		t.Logf("trial %d: %d B before the outage of %.0f s, %d B at the end", trial.Number, away, outageS, end)
		// As long after it as before: less what the timer, of 10 s at most, waits.
		if outageS < 150 || away < 100_000 || end < 2*away {
			t.Errorf("trial %d, asked by %s: %d B before the outage of %.0f s and %d B in all", trial.Number,
				trial.Initiator, away, outageS, end)
		}
	}
}

// A client that finds no way at first asks on until there is one, though that is later than its kernel
// would ask by itself: six times more, with a wait of 10 s at most.
func TestE2EAClientAsksUntilThereIsAWay(t *testing.T) {
	d := newDesk(t, "[8.3]")
	text := string(chain("ab", "      late: {routing: {protocol: aodv, host_unreachable: off}}\n"))
	for _, change := range [][2]string{
		{"duration_s: 10", "duration_s: 140"},
		{"window_packets: 1}", "window_packets: 1, classic: true, rto_max_ms: 10000}"},
		{"repetitions: 4", "repetitions: 1"},
		{"port: 5000}", "port: 5000, start_s: 20}"},
		{"{model: chain, spacing_m: 34}", "{model: chain, spacing_m: 34, moves: [" +
			"{node: b, at_s: 2, x_m: 34, y_m: 1000, speed_mps: 60}, " +
			"{node: b, at_s: 80, x_m: 34, y_m: 0, speed_mps: 60}]}"},
	} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("the campaign has no %q", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	d.write(t, "late.yaml", []byte(text))
	if mb := d.transferred(t, "late.yaml", "late", "")[1]; mb < 1 {
		t.Errorf("%.3f MB were transferred after there was a way for more than 30 s", mb)
	}
}
