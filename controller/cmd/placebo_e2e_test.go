//go:build e2e

package cmd

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// These tests put campaigns whose truth is known through the emulated radio,
// in its virtual time, and read what the report makes of them. What is sent is
// a saturated source instead of TCP: the statements are about the design and
// the model, and virtual time has no kernel to run TCP in.

// road is the emulated field of a campaign.
type road struct {
	propagation propagation.Config
	standard    string
	rateMbps    float64
	offsetDb    map[string]float64 // by unit
}

// drivenOn is what a trial of the synthetic plan delivers on a road, in MB.
func (r road) drivenOn(t *testing.T) func(wire.Trial, *rand.Rand) float64 {
	return func(trial wire.Trial, noise *rand.Rand) float64 {
		mb, err := r.drive(trial, noise.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		return mb
	}
}

// counter counts what the receiver gets while it is open.
type counter struct {
	receiver int
	from, to time.Duration
	bytes    int
}

func (c *counter) Deliver(node int, at time.Duration, ethernet []byte) bool {
	if node == c.receiver && at > c.from && at <= c.to {
		c.bytes += len(ethernet) - 14
	}
	return true
}

func (c *counter) TxFailed(int, time.Duration, medium.MAC, []byte) {}

func (r road) drive(t wire.Trial, seed uint64) (float64, error) {
	car := t.Factors["car_unit"]
	// of car and roadside
	units := []string{car, map[string]string{"laptop-1": "laptop-2", "laptop-2": "laptop-1"}[car]}
	cfg := medium.Config{Seed: seed, Standard: r.standard, Channel: 6, Propagation: r.propagation, RateMbps: r.rateMbps}
	macs := []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}
	for i, unit := range units {
		cfg.Nodes = append(cfg.Nodes, medium.NodeConfig{Name: fmt.Sprint("n", i), MAC: macs[i],
			TxPowerDbm: 20 + r.offsetDb[unit], NoiseFigureDb: 10, HeightM: 1.5})
	}
	drive, err := mobility.New(t.Course, *t.SpeedMps, t.Direction)
	if err != nil {
		return 0, err
	}
	drive = drive.Depart(0)
	open := time.Duration((*t.SpeedMps/t.Course.AccelMps2 + t.Gate.HoldS + t.Gate.LeadS) * float64(time.Second))
	sender := 0 // the car's
	if t.Sender == t.Roadside {
		sender = 1
	}
	sink := &counter{receiver: 1 - sender, from: open, to: open + time.Duration(t.DurationS*float64(time.Second))}
	core, err := medium.NewCore(cfg, func(node int, at time.Duration) (float64, float64) {
		if node == 1 {
			return 0, 0
		}
		s := drive.At(at)
		return s.XM, s.YM
	}, sink)
	if err != nil {
		return 0, err
	}
	frame := make([]byte, 1514)
	to, from := mustMAC(macs[1-sender]), mustMAC(macs[sender])
	copy(frame, to[:])
	copy(frame[6:], from[:])
	for at := open; at < sink.to; at += 5 * time.Millisecond {
		core.Advance(at)
		for core.QueueRoom(sender) > 0 {
			core.Enqueue(sender, frame)
		}
	}
	core.Advance(sink.to)
	return float64(sink.bytes) / 1e6, nil
}

func mustMAC(text string) medium.MAC {
	m, err := medium.ParseMAC(text)
	if err != nil {
		panic(err) // a constant of this file
	}
	return m
}

// said is what a report says of the comparison, sentence by sentence.
func said(t *testing.T, o synthetic.Options) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := report.Write(synthetic.Run(t, o), &b); err != nil {
		t.Fatal(err)
	}
	return html.UnescapeString(regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>`).
		ReplaceAllString(b.String(), ""))
}

// sentence is the first that begins so.
func sentence(t *testing.T, text, begins string) string {
	t.Helper()
	i := strings.Index(text, begins)
	if i < 0 {
		t.Fatalf("the report does not say %q", begins)
	}
	s := text[i:]
	if end := strings.IndexByte(s, '<'); end > 0 {
		s = s[:end]
	}
	return s
}

const null = "no significant difference was detected"

// A hard disc with everybody in range: neither speed nor section does
// anything. A 95 % interval leaves the truth out one time in twenty, so of the
// four statements of several campaigns a few may be wrong, and no more: five
// and more of 24 happen in one of 160 such tests.
func TestPlaceboFindsNothing(t *testing.T) {
	r := road{propagation: propagation.Config{Model: "disc", RangeM: 1000}, standard: phy.Standard80211b,
		rateMbps: 11}
	found, statements := 0, 0
	for seed := uint64(1); seed <= 6; seed++ {
		text := said(t, synthetic.Options{Seed: seed, MB: r.drivenOn(t)})
		for _, begins := range []string{"Section B against section A", "In section A, for each m/s faster",
			"In section B, for each m/s faster", "Whether speed acts differently"} {
			statements++
			if s := sentence(t, text, begins); !strings.Contains(s, null) {
				found++
				t.Logf("seed %d: %s", seed, s)
			}
		}
	}
	if found > 4 {
		t.Errorf("%d of %d statements find what is not there", found, statements)
	}
}

// weak is a road on which one laptop transmits at a quarter of the power.
func weak() road {
	return road{propagation: propagation.Config{Model: "two_ray_ground"}, standard: phy.Standard80211g,
		offsetDb: map[string]float64{"laptop-2": -6}}
}

// Swapping the roles swaps the sender with them: the plan cannot tell section
// from unit, and the report says so beside the effect that it shows.
func TestSwappedRolesAreFlaggedAsConfounded(t *testing.T) {
	text := said(t, synthetic.Options{Seed: 1, MB: weak().drivenOn(t)})
	for _, want := range []string{"Confounded, not estimable separately: section, unit that sends",
		"One hardware unit was in the car throughout",
		"a difference between the sections may be one between the units' transmitters, and the data cannot say which"} {
		sentence(t, text, want)
	}
	if s := sentence(t, text, "Section B against section A"); !strings.Contains(s, "together with all that changed "+
		"with the section") || !strings.Contains(s, " Mbit/s less ") {
		t.Errorf("the weak unit's sections are compared as: %s", s)
	}
	if strings.Contains(text, "By the unit that sends") {
		t.Error("an effect of the unit is told, which the plan cannot know")
	}
}

// With each unit in the car in both sections of every block, the report finds
// the weak unit, and nothing of the section.
func TestCrossedPlanFindsTheUnitAndNoSection(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		text := said(t, synthetic.Options{Seed: seed, Units: []string{"laptop-1", "laptop-2"}, Repetitions: 4,
			MB:     weak().drivenOn(t),
			Change: func(t *wire.Trial) { t.Block = (t.Block + 1) / 2 }}) // a block holds both units
		s := sentence(t, text, "By the unit that sends (laptop-2 − laptop-1): ")
		if !strings.Contains(s, " Mbit/s less ") {
			t.Errorf("seed %d: the weak unit is not found: %s", seed, s)
		}
		s = sentence(t, text, "Section B against section A")
		if !strings.Contains(s, null) || strings.Contains(s, "together with") {
			t.Errorf("seed %d: %s", seed, s)
		}
		// The spread of the interval is that of a straight line through a road on
		// which the weak unit's link ends first; the estimate itself is none of it.
		var mbps float64
		if _, err := fmt.Sscanf(strings.Replace(s[strings.Index(s, null)+len(null):], "−", "-", 1), ": %f Mbit/s",
			&mbps); err != nil || math.Abs(mbps) > 0.24 {
			t.Errorf("seed %d: the section is told to make %g Mbit/s of about 24 (%v)", seed, mbps, err)
		}
		if strings.Contains(text, "Not estimable apart") {
			t.Errorf("seed %d: the crossed plan is called confounded: %s", seed,
				sentence(t, text, "Not estimable apart"))
		}
		t.Logf("seed %d: %s | %s", seed, sentence(t, text, "By the unit that sends"), s)
	}
}

// What a trial delivers on the placebo's road is what the standard allows: the
// tests above are about a link that works. DIFS 50 µs, mean backoff
// 31/2 × 20 µs, long preamble 192 µs for data and ACK, 1536 bytes at
// 11 Mbit/s, SIFS 10 µs, ACK of 14 bytes at 2 Mbit/s.
func TestPlaceboLinkIsSaturated(t *testing.T) {
	r := road{propagation: propagation.Config{Model: "disc", RangeM: 1000}, standard: phy.Standard80211b,
		rateMbps: 11}
	trial := synthetic.Plan(synthetic.Options{Seed: 1, Speeds: []float64{5}, Repetitions: 1}).Trials[0]
	mb, err := r.drive(trial, 1)
	cycle := 50e-6 + 31.0/2*20e-6 + 192e-6 + 1536*8/11e6 + 10e-6 + 192e-6 + 14*8/2e6
	if want := 10 / cycle * 1500 / 1e6; err != nil || math.Abs(mb/want-1) > 0.02 {
		t.Errorf("%g MB (%v), want %g MB", mb, err, want)
	}
}
