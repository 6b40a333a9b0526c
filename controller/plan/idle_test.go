package plan

import (
	"strconv"
	"strings"
	"testing"
)

// refused is a new file that is refused with these words, and no others besides.
func refused(t *testing.T, file []byte, want string) {
	t.Helper()
	_, err := Parse("f", file)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got\n%v\nwant %s\n%s", err, want, file)
	}
}

// The model knows some factors by their names, and has terms of its own by others: a factor of such a name that is none
// of them would be missed in it.
func TestNamesThatTheModelHasAMeaningFor(t *testing.T) {
	reverse := func(name string) []byte {
		return designFile("{"+name+": {key: traffic.bulk.reverse, levels: [false, true]}}",
			"{repetitions: 1, order: as_listed}")
	}
	for name, want := range map[string]string{
		"speed":     "the model takes a factor of this name for the speed of the car, and not each",
		"direction": "the model takes a factor of this name for the direction of travel, and not each",
		"block":     `"block" cannot name a factor`,
		"mean":      `"mean" cannot name a factor`,
	} {
		refusedToday(t, string(reverse(name)), want)
	}
	parsed(t, reverse("backwards"))
	parsed(t, designFile("{direction: {key: direction, levels: [outbound, inbound]}}",
		"{repetitions: 1, order: as_listed}"))
}

// Listed cells are driven as they are listed, whatever changes seldom.
func TestWholePlotsNeedAnOrderThatIsDrawn(t *testing.T) {
	file := func(order string) []byte {
		return designFile("{speed: "+speeds+", unit: "+cars+"}", "{repetitions: 1, whole_plots: [unit], "+order+"}")
	}
	refusedToday(t, string(file("order: as_listed")), "design.whole_plots: it is not allowed with order: as_listed")
	parsed(t, file("order: randomised_blocks, seed: 1"))
}

// A band that no gate waits for and no share is asked of judges nothing.
func TestABandThatJudgesNothing(t *testing.T) {
	with := func(gate, acceptance string) []byte {
		return []byte(strings.NewReplacer("speed_band: true, hold_s: 0.5", gate, "speed_band_mps: 0.5", acceptance).
			Replace(string(designFile("{}", "{repetitions: 1, order: as_listed}"))))
	}
	const want = "acceptance.speed_band_mps: 0.5 is not allowed with neither in_band_share_min nor"
	for _, gate := range []string{"after_s: 5", "after_s: 5, speed_band: false"} {
		refusedToday(t, string(with(gate, "speed_band_mps: 0.5")), want)
		parsed(t, with(gate, "speed_band_mps: 0.5, in_band_share_min: 0.9"))
	}
	parsed(t, with("speed_band: true", "speed_band_mps: 0.5"))
}

// One level is compared with no other.
func TestARunDoesNotStopForOneLevel(t *testing.T) {
	file := func(of, levels string) []byte {
		return designFile("{tcp: {key: tcp.variant, levels: "+levels+"}}", "{repetitions: 8, order: as_listed, "+
			"stop_when: {of: "+of+", half_width_percent: 10, min_blocks: 4}}")
	}
	refusedToday(t, string(file("tcp", "[reno]")), "design.stop_when.of: factor tcp has one level")
	parsed(t, file("mean", "[reno]"))
	parsed(t, file("tcp", "[reno, cubic]"))
}

// Keys that something else leaves without an effect, or that meet what agents do by themselves.
func TestRoutingKeysWithoutAnEffect(t *testing.T) {
	with := func(routing, flow string) []byte {
		return []byte(strings.NewReplacer("  tcp:", "  routing: "+routing+"\n  tcp:", "{kind: iperf3_tcp}", flow).
			Replace(string(designFile("{}", "{repetitions: 1, order: as_listed}"))))
	}
	const tcp = "{kind: iperf3_tcp, port: 7447}"
	const udp = "{kind: iperf3_udp, payload_bytes: 1000, bitrate_bps: 1000000, port: 7447}"
	refusedToday(t, string(with("{protocol: aodv, ready_s: 300}", tcp)), "trial.routing.ready_s: 300 is not")
	refusedToday(t, string(with("{protocol: olsrd, ready: daemon, ready_s: 300}", tcp)),
		"trial.routing.ready_s: 300")
	parsed(t, with("{protocol: babeld, ready: neighbors, ready_s: 300}", tcp))
	for _, protocol := range []string{"aodv", "aodv-ns2", "aodv-p3", "aomdv", "adv", "dsr", "dsr-ns2"} {
		for _, ready := range []string{"neighbors", "routes"} {
			refusedToday(t, string(with("{protocol: "+protocol+", ready: "+ready+", ready_s: 300}", tcp)),
				"trial.routing.ready: "+strconv.Quote(ready)+" is not allowed with protocol "+protocol+", which knows")
		}
		parsed(t, with("{protocol: "+protocol+", ready: daemon}", tcp))
	}
	parsed(t, with("{protocol: olsrd, ready_s: 300}", tcp))
	refusedToday(t, string(with("{protocol: aodv, probe_hz: 10}", udp)),
		"trial.traffic.bulk.port: with routing.probe_hz")
	parsed(t, with("{protocol: aodv, probe_hz: 10}", tcp))
	parsed(t, with("{protocol: aodv}", udp))
}

// On is true.
func TestTogglesAreOneLevelHoweverTheyAreWritten(t *testing.T) {
	file := func(levels string) string {
		return string(designFile("{sack: {key: tcp.sack, levels: "+levels+"}}", "{repetitions: 1, order: as_listed}"))
	}
	refusedToday(t, file("[on, true, off]"), "factors.sack.levels: true is given twice")
	parsed(t, []byte(file("[on, off]")))
}

// What no agent takes is told by its place.
func TestNodesThatAreThereTwiceAndFlowsOfOthersOnly(t *testing.T) {
	file := string(designFile("{section: {levels: {A: {}, B: {sender: roadside, receiver: car}}}}",
		"{repetitions: 1, order: as_listed}"))
	nodes := func(more string) []byte {
		return []byte(strings.Replace(file, "trial:\n", more+"trial:\n", 1))
	}
	refused(t, nodes("  n[01-03]: {mesh_address: 10.77.0.11/24}\n  n02: {mesh_address: 10.77.0.99/24}\n"),
		"f:9:3: nodes: node n02 is there twice")
	refused(t, nodes("  n[01-03]: {mesh_address: 10.77.0.11/24}\n  n[02-04]: {mesh_address: 10.77.0.51/24}\n"),
		"f:9:3: nodes: node n02 is there twice")
	parsed(t, nodes("  n[01-03]: {mesh_address: 10.77.0.11/24}\n  n[04-05]: {mesh_address: 10.77.0.51/24}\n"))
	flow := func(ends string) []byte {
		return []byte(strings.Replace(file, "{kind: iperf3_tcp}", "{kind: iperf3_tcp"+ends+"}", 1))
	}
	refused(t, flow(", from: car, to: roadside"), "trial.traffic: no measured flow goes from sender bravo to receiver "+
		"alpha; allowed: one without from and to, or from: sender, to: receiver (in 1 of 2 cells, first section=B)")
	parsed(t, flow(", from: sender, to: receiver"))
}
