//go:build e2e

package journeys

import (
	"bytes"
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// These tests rehearse campaigns whose truth is known, with real TCP, and read
// what the report makes of them. What they judge is not whether a 95 % interval
// holds the truth: it does not, one time in twenty. A finding counts against a
// null only if it is also large, and margin says what that is.

// margin is what an effect that is not there must stay below to count as not
// found, as a share of the mean: half of what 6 dB of power make on the road
// of these tests, and many standard errors of a trial's noise (some 2 % on a
// machine that has time for it).
const margin = 0.25

// quick makes the shipped campaign short: windows and driving, not the design.
func quick(t *testing.T, name, levels, repetitions string, changes ...string) string {
	t.Helper()
	return variant(t, "velocity.yaml", name, append([]string{patient[0], patient[1],
		"duration_s: 10", "duration_s: 1.5", allSpeeds, "levels: " + levels,
		"repetitions: 2", "repetitions: " + repetitions,
		"start_m: 10, offset_m: 5, accel_mps2: 2.5, brake_mps2: 4", "start_m: 150, offset_m: 5, accel_mps2: 9, " +
			"brake_mps2: 9",
		"hold_s: 0.5, timeout_s: 60, lead_s: 0.5", "hold_s: 0.2, timeout_s: 60, lead_s: 0.3",
		// Beside other work the emulated radio may be late: noise, the same for
		// every cell.
		"lateness_share_max: 0.01", "lateness_share_max: 1",
	}, changes...)...)
}

// weak has laptop-2 transmit at a quarter of laptop-1's power, 150 m to 170 m
// apart: laptop-1 is heard some 3 dB above what 11 Mbit/s needs, laptop-2 as far
// below it.
var weak = []string{"standard: 802.11g", "standard: 802.11b", "tx_power_dbm: 20", "tx_power_dbm: 1",
	"  nmea_hz: 10", "  nmea_hz: 10\n  rate_control: minstrel\n  unit_power_offset_db: {laptop-2: -6}"}

// told is a run's report as text, and the mean that it is about.
type told struct {
	text     string
	meanMbps float64
	trials   int
}

func rehearsed(t *testing.T, file string, args ...string) told {
	t.Helper()
	testnet.Need(t, "ip", "gpsd", "iperf3")
	run := rehearse(t, file, args...)
	k := run.finish(t)
	out := run.Said()
	t.Log(out[strings.LastIndex(out, "\n\n"):])
	k.everyTrialOnce(t)
	var r told
	for _, at := range k.attempts {
		bps, ok := k.metric(t, at.TrialKey, metrics.ThroughputBps)
		if at.Verdict.Outcome != "accepted" || !ok {
			continue
		}
		r.meanMbps += bps / 1e6
		r.trials++
	}
	r.meanMbps /= float64(r.trials)
	var b bytes.Buffer
	if _, err := report.Write(k.Archive, &b); err != nil {
		t.Fatal(err)
	}
	r.text = html.UnescapeString(regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>`).
		ReplaceAllString(b.String(), ""))
	return r
}

// finding is one sentence of the report's model.
type finding struct {
	value float64 // in the middle of its interval
	found bool    // the interval does not hold zero
}

var interval = regexp.MustCompile(`95 % interval ([+−][0-9.e+−]+) to ([+−][0-9.e+−]+)\)`)

func (r told) of(t *testing.T, begins string) finding {
	t.Helper()
	i := strings.Index(r.text, begins)
	if i < 0 {
		t.Fatalf("the report does not say %q", begins)
	}
	sentence, _, _ := strings.Cut(r.text[i:], "<")
	t.Logf("n = %d, mean %.3g Mbit/s: %s", r.trials, r.meanMbps, sentence)
	m := interval.FindStringSubmatch(sentence)
	if m == nil {
		t.Fatalf("no interval in %q", sentence)
	}
	var f finding
	for _, s := range m[1:] {
		v, err := strconv.ParseFloat(strings.ReplaceAll(s, "−", "-"), 64)
		if err != nil {
			t.Fatal(err)
		}
		f.value += v / 2
	}
	f.found = !strings.Contains(sentence, "no significant difference was detected")
	return f
}

// isNull fails if an effect over a span of its factor is found and large.
func (r told) isNull(t *testing.T, begins string, span float64) {
	t.Helper()
	if f := r.of(t, begins); f.found && math.Abs(f.value)*span > margin*r.meanMbps {
		t.Errorf("%s: %g Mbit/s is found, which is not there", begins, f.value*span)
	}
}

// A hard disc with everybody in range: neither speed nor section does anything.
func TestARehearsedPlaceboFindsNothing(t *testing.T) {
	r := rehearsed(t, quick(t, "placebo", "[2.8, 8.3]", "3", "propagation: two_ray_ground\n  antenna_height_m: 1.5",
		"propagation: disc\n  range_m: 1000", "standard: 802.11g", "standard: 802.11b\n    rate_mbps: 11"))
	const span = 8.3 - 2.8
	r.isNull(t, "Section B against section A", 1)
	r.isNull(t, "In section A, for each m/s faster", span)
	r.isNull(t, "In section B, for each m/s faster", span)
	r.isNull(t, "Whether speed acts differently", span)
}

// Swapping the roles swaps the unit that sends with the section, and the report
// says that the data cannot tell which it was. Two fields side by side share
// the work: nothing is compared here.
func TestARehearsalThatSwapsRolesIsConfounded(t *testing.T) {
	r := rehearsed(t, quick(t, "swapped", "[5.6]", "3", weak...), "--fields", "2")
	for _, want := range []string{"Confounded, not estimable separately: section, unit that sends",
		"a difference between the sections may be one between the units' transmitters, and the data cannot say which"} {
		if !strings.Contains(r.text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if strings.Contains(r.text, "By the unit that sends") {
		t.Error("an effect of the unit is told, which the plan cannot know")
	}
}

// With each unit in the car, the report finds the weak one and nothing of the
// section.
func TestACrossedRehearsalFindsTheWeakUnit(t *testing.T) {
	r := rehearsed(t, quick(t, "crossed", "[2.8, 5.6]", "2", append([]string{"\nfactors:\n", `
factors:
  car_unit:
    levels:
      laptop-1: {car: alpha, roadside: bravo}
      laptop-2: {car: bravo, roadside: alpha}
`}, weak...)...))
	if f := r.of(t, "By the unit that sends (laptop-2 − laptop-1)"); !f.found || f.value > -margin*r.meanMbps {
		t.Errorf("the weak unit sends %g Mbit/s more: it is not found", f.value)
	}
	r.isNull(t, "Section B against section A", 1)
	if strings.Contains(r.text, "Not estimable apart") {
		t.Error("the crossed plan is called confounded")
	}
}
