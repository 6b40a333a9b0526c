//go:build e2e

package journeys

import (
	"bytes"
	"encoding/csv"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// adhocAsInVelocity is the radio of range-test.yaml. A desk has none.
const adhocAsInVelocity = `  radio: # as in velocity.yaml
    mode: adhoc
    standard: 802.11g
    channel: 6
    ssid: fieldmesh
    bssid: "02:0a:5e:00:00:06"
    tx_power_dbm: 20
`

const rangeSpeedMps = 12

// measures goes on until the car's node measures in a trial, in an attempt beyond so many: a busy machine
// may spoil some.
func (f *follower) measures(t *testing.T, trial, beyond int) wire.TrialKey {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); {
		if step, k, _ := f.next(t.Context()); step == "measuring" && k.Trial == trial && k.Attempt > beyond {
			return k
		}
	}
	t.Fatalf("no attempt at trial %d beyond %d measures", trial, beyond)
	return wire.TrialKey{}
}

// placesLine is one of places.csv.
type placesLine struct {
	wire.TrialKey
	s                                                int
	distance, speed, signal, throughput, sent, lostP *float64
}

// placesOf fetches what was logged by place, second by second.
func (p *phone) placesOf(t *testing.T, name string) (out []placesLine) {
	t.Helper()
	data, err := p.try(http.MethodGet, "/v1/runs/"+name+"/files/places.csv", nil)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines[1:] {
		number := func(column string) *float64 {
			text := l[slices.Index(lines[0], column)]
			if text == "" {
				return nil
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s: %v", column, err)
			}
			return &v
		}
		out = append(out, placesLine{wire.TrialKey{Trial: int(*number("trial")), Attempt: int(*number("attempt"))},
			int(*number("s")), number("distance_m"), number("speed_mps"), number("signal_dbm"),
			number("throughput_bps"), number("datagrams_sent"), number("datagrams_lost_percent")})
	}
	return out
}

// A range test is checked and begun by a phone, driven away until nothing comes any more, paused
// in the middle of a window, resumed, and ended while the car's node is out of the controller's
// reach: all that was logged is there by place, as the nodes recorded it.
func TestARangeTestIsDrivenFromThePhone(t *testing.T) {
	d := newDesk(t, "")
	newReceiver(t, d.nodes["bravo"]) // which stands
	p := d.pairPhone(t, "phone", serveAt(t), true)
	file := variant(t, "range-test.yaml", "range-test", adhocAsInVelocity, "  radio: {mode: none}\n", "duration_s: 60",
		"duration_s: 15")
	const name = "range-1"
	t.Cleanup(func() { d.killDrivers(t, name) })
	d.serve(t, filepath.Dir(file), p)

	offered := ask[campaigns.Campaigns](t, p, http.MethodGet, "/v1/campaigns", nil).Campaigns
	if len(offered) != 1 || !offered[0].RangeTest || offered[0].Refused != "" {
		t.Fatalf("campaigns: %+v", offered)
	}
	choice := campaigns.Choice{Campaign: "range-test"}
	testnet.Await(t, 2*time.Minute, "the fleet is ready", func() bool {
		return ask[campaigns.Preflight](t, p, http.MethodPost, "/v1/preflight", choice).Ready
	})
	ask[campaigns.Run](t, p, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: choice})
	path := "/v1/runs/" + name
	follow := &follower{client: d.client(t, "alpha"), run: name}

	// Out of reach in the second window.
	follow.measures(t, 1, 0)
	d.receiver.drive(rangeSpeedMps)
	out := follow.measures(t, 2, 0)
	time.Sleep(4 * time.Second)
	d.cable(t, false)
	d.pulledNs[2] = testnet.BootNs()
	pulledM := d.receiver.atM()
	time.Sleep(8 * time.Second)
	asked := testnet.BootNs()
	if r := p.steer(t, name, "pause"); r.Phase != campaigns.Paused || r.Said != "" || r.Accepted != 1 {
		t.Errorf("paused: %+v", r)
	}
	d.cable(t, true)
	d.restored(t)
	d.loggedFirst(t, p, name, out, asked)

	got := ask[campaigns.Places](t, p, http.MethodGet, path+"/places", nil)
	if first := got.Stretches[0]; first.SignalDbm != nil || first.FromM != 0 || got.FarthestM == nil {
		t.Fatalf("%+v, farthest %v", first, got.FarthestM)
	}
	if math.Abs(*got.FarthestM-pulledM) > 1.5*rangeSpeedMps { // it is the mean of a second
		t.Errorf("something came %g m away, and the cable was pulled at %g m", *got.FarthestM, pulledM)
	}
	if len(got.Way) < 20 || got.RoadsideLatDeg == nil {
		t.Errorf("a way of %d places, the roadside at %v", len(got.Way), got.RoadsideLatDeg)
	}

	// What the car's node logs where nobody reaches it is there when somebody does.
	if r := p.steer(t, name, "resume"); r.Phase != campaigns.Running {
		t.Errorf("resumed: %+v", r)
	}
	cut := follow.measures(t, 2, out.Attempt)
	time.Sleep(3 * time.Second)
	d.controlLink(t, false, "alpha")
	time.Sleep(3 * time.Second)
	if r := p.steer(t, name, "end"); r.Phase != campaigns.Ended || !strings.Contains(r.Said, "alpha is out of reach") ||
		!strings.Contains(r.Said, "what alpha recorded last is still on it") {
		t.Errorf("ended with the car out of reach: %+v", r)
	}
	d.controlLink(t, true, "alpha")
	if r := p.steer(t, name, "end"); r.Said != "" {
		t.Errorf("ended again: %+v", r)
	}
	d.restored(t)
	here := 0.0
	for _, l := range p.placesOf(t, name) {
		if l.TrialKey == cut {
			here = max(here, float64(l.s))
		}
	}
	if here < 9 {
		t.Errorf("the last window is there up to %g s; the car was cut off at 3 s, and the run ended at 6 s", here)
	}
	files := ask[campaigns.Files](t, p, http.MethodGet, path+"/files", nil).Files
	if len(files) != 5 {
		t.Errorf("files: %+v", files)
	}
	d.receiver.drive(0)
	d.stopAgents(t)
	d.restored(t)
}

// loggedFirst holds the places of the first window that was accepted, and of one in which the cable was
// pulled, to what their nodes recorded. The latter was ended at a moment of the boot clock.
func (d *desk) loggedFirst(t *testing.T, p *phone, name string, out wire.TrialKey, endedNs int64) {
	t.Helper()
	run := readRun(t, filepath.Join(d.dir, "runs", name))
	decided := run.Decisions()
	in := decided[slices.IndexFunc(decided, func(v wire.Verdict) bool { return v.Outcome == wire.Accepted })].TrialKey
	at, err := metrics.Load(run.Archive, in)
	if err != nil {
		t.Fatal(err)
	}
	_, mbps, err := metrics.Result(run.Archive, in)
	if err != nil {
		t.Fatal(err)
	}
	rows := at.Rows()
	var first, second []placesLine
	for _, l := range p.placesOf(t, name) {
		if l.signal != nil {
			t.Errorf("a signal over a cable: %+v", l)
		}
		switch l.TrialKey {
		case in:
			first = append(first, l)
		case out:
			second = append(second, l)
		}
	}
	sum := func(lines []placesLine, of func(placesLine) *float64) (sum float64) {
		for _, l := range lines {
			if v := of(l); v != nil {
				sum += *v
			}
		}
		return sum
	}
	sent := sum(first, func(l placesLine) *float64 { return l.sent })
	bps := sum(first, func(l placesLine) *float64 { return l.throughput }) / 15
	if want := *metrics.Value(rows, "probe", metrics.DatagramsSent); sent != want || len(first) != 15 {
		t.Errorf("%g datagrams in %d seconds, and %g in the window", sent, len(first), want)
	}
	if math.Abs(bps/1e6-*mbps) > *mbps/20 {
		t.Errorf("%g bit/s, and %g Mbit/s in the window", bps, *mbps)
	}
	// Each second's distance is that of its middle from where the car set off.
	records, err := run.All(out.Trial, out.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	var openNs int64
	for _, r := range records {
		if w, is := r.Body.(*wire.Window); is && r.Node == "alpha" {
			openNs = w.OpenBootNs
		}
	}
	compared := 0
	for _, r := range records {
		g, is := r.Body.(*wire.GPS)
		if !is || r.Node != "alpha" || g.FixBootNs == nil || g.LonDeg == nil {
			continue
		}
		s := float64(*g.FixBootNs-openNs) / 1e9
		i := slices.IndexFunc(second, func(l placesLine) bool {
			return l.distance != nil && math.Abs(float64(l.s)+0.45-s) < 0.06 // it is the mean of ten moments
		})
		if i < 0 {
			continue
		}
		compared++
		eastM := (*g.LonDeg - 8) * 111_195 * math.Cos(50*math.Pi/180)
		if l := second[i]; math.Abs(*l.distance-eastM) > 2 || math.Abs(*l.speed-rangeSpeedMps) > 0.5 {
			t.Errorf("second %d: %g m at %g m/s, and the car was at %g m", l.s, *l.distance, *l.speed, eastM)
		}
	}
	pulledS := float64(d.pulledNs[2]-openNs) / 1e9
	lost := 0
	for _, l := range second {
		switch {
		case l.sent == nil || l.throughput == nil || math.Abs(float64(l.s)-pulledS) < 1.5:
		case float64(l.s) < pulledS:
			if *l.lostP > 0 || *l.throughput < 1e6 {
				t.Errorf("in reach, %+v: %g %% lost, %g bit/s", l.TrialKey, *l.lostP, *l.throughput)
			}
		default:
			if lost++; *l.lostP < 100 || *l.throughput > 0 {
				t.Errorf("out of reach, second %d: %g %% lost, %g bit/s", l.s, *l.lostP, *l.throughput)
			}
		}
	}
	if lost < 2 {
		t.Errorf("%d seconds out of reach, of which the loss is known", lost)
	}
	over := float64(endedNs-openNs) / 1e9
	if n := len(second); n == 0 || compared < 8 || float64(second[n-1].s) < over-2 {
		t.Errorf("%d seconds of a window that was ended after %.1f s, %d compared", n, over, compared)
	}
}
