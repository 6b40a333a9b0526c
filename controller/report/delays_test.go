package report_test

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Round trips are 4 ms, half a ms for each m/s, and a ms for each block; one datagram of fifty is lost.
func TestDelayBySpeedStandsBesideThroughput(t *testing.T) {
	o := synthetic.Options{Seed: 1, Campaign: "a-road", Speeds: []float64{2.8, 16.7}, Repetitions: 3,
		Change: synthetic.AddDelay}
	html := written(t, o)
	has(t, html, ">Delay</h2>", "<span>6.40</span> <span>7.40</span> <span>8.40</span>",
		`<td class="mean">7.40</td><td class="interval">4.92 to 9.88</td>`, `<td class="mean">14.35</td>`,
		`<td class="group mean">2.00</td>`, // % lost
		"Round trip by speed", "section A (n = 6)", "delay_round_trip_p50_low_ms",
		"172 bytes every 20 ms from car to roadside, each answered", "Throughput by speed")
	hasNot(t, written(t, synthetic.Options{Seed: 1, Campaign: "a-road", Speeds: []float64{2.8, 16.7}, Repetitions: 1}),
		">Delay</h2>")
}

// A trial of datagrams alone has a delay and no throughput; both kinds of trial are told apart.
func TestDelayAloneAndBesideBulk(t *testing.T) {
	o := synthetic.Options{Seed: 1, Campaign: "a-road", Speeds: []float64{2.8, 16.7}, Repetitions: 4}
	o.Change = func(t *wire.Trial) {
		t.Factors["load"] = "bulk"
		if t.Block%2 == 0 {
			t.Factors["load"], t.Traffic = "idle", nil
		}
		synthetic.AddDelay(t)
	}
	html := written(t, o)
	has(t, html, "16 of 16 planned trials accepted", "load bulk, section A (n = 4)", "load idle, section B (n = 4)",
		"<span>6.40</span> <span>8.40</span>", "<span>7.40</span> <span>9.40</span>")
	i := strings.Index(html, `id="delays"`)
	if i < 0 || strings.Count(html[i:], "<th scope=\"row\">idle</th>") < 4 {
		t.Error("the table has no rows for the idle trials")
	}
}
