package plan

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var update = flag.Bool("update", false, "write the golden files again")

// shipped are the campaign files of the repository.
var shipped = []string{"velocity", "velocity-powered", "velocity-delay", "velocity-phones", "range-test",
	"stationary-check"}

func load(t testing.TB, name string) *Campaign {
	t.Helper()
	c, err := Load(filepath.Join("..", "..", "campaigns", name+".yaml"))
	if err != nil {
		t.Fatalf("load campaign:\n%v", err)
	}
	return c
}

// everyShipped are all campaigns of the repository by their files' names, at full
// scale: read once, since the largest takes a second. A test only reads them.
var everyShipped = sync.OnceValues(func() (map[string]*Campaign, error) {
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil {
		return nil, err
	}
	out := map[string]*Campaign{}
	for _, file := range files {
		if out[filepath.Base(file)], err = LoadAt(file, FullScale); err != nil {
			return nil, err
		}
	}
	return out, nil
})

func schedule(t testing.TB, c *Campaign) []wire.Trial {
	t.Helper()
	trials, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return trials
}

// line is a trial in one line, with all that tells it from its neighbours.
func line(t wire.Trial) string {
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(t.Factors)) {
		labels = append(labels, k+"="+t.Factors[k])
	}
	speed, place, mark := "-", "-", "-"
	if t.SpeedMps != nil {
		speed = formatNumber(*t.SpeedMps)
	}
	if t.Gate.PlaceM != nil {
		place = formatNumber(*t.Gate.PlaceM)
	}
	if t.Course.MarkM != nil {
		mark = formatNumber(*t.Course.MarkM)
	}
	return fmt.Sprintf("%d block=%d rep=%d pass=%q %s car=%s %s>%s by %s speed=%s dir=%q %s start=%g mark=%s "+
		"place=%s window=%g port=%d",
		t.Number, t.Block, t.Repetition, t.Pass, strings.Join(labels, " "), t.Car, t.Sender, t.Receiver, t.Initiator,
		speed, t.Direction, t.Course.Kind, t.Course.StartM, mark, place, t.DurationS, t.Traffic[0].ClientPort)
}

func TestScheduleIsAsRecorded(t *testing.T) {
	for _, name := range shipped {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, trial := range schedule(t, load(t, name)) {
				fmt.Fprintln(&got, line(trial))
			}
			golden := filepath.Join("testdata", name+".schedule")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("the schedule changed, and with it every run that is resumed; got:\n%s", got.String())
			}
		})
	}
}

// TestVelocityIsThePapersDesign holds the main job to what the paper says.
func TestVelocityIsThePapersDesign(t *testing.T) {
	c := load(t, "velocity")
	trials := schedule(t, c)
	if len(trials) != 24 {
		t.Fatalf("%d trials, want 24", len(trials))
	}
	power, window := 20.0, 65536
	radio := wire.Radio{Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "fieldmesh", BSSID: "02:0a:5e:00:00:06",
		TxPowerDbm: &power}
	speeds := map[float64]int{}
	for _, x := range trials {
		if !reflect.DeepEqual(x.Radio, radio) {
			t.Errorf("trial %d: radio %+v", x.Number, x.Radio)
		}
		if x.DurationS != 10 || x.TCP.Variant != "reno" || x.Course.Kind != "depart" || x.Initiator != "alpha" {
			t.Errorf("trial %d: %+v", x.Number, x)
		}
		f := x.Traffic[0]
		if len(x.Traffic) != 1 || f.Streams != 6 || f.Port != 5000 || *f.WindowBytes != window || f.DurationS != 10 ||
			f.From != x.Sender || f.To != x.Receiver {
			t.Errorf("trial %d: flow %+v", x.Number, f)
		}
		car := map[string]string{"A": x.Sender, "B": x.Receiver}[x.Factors["section"]]
		if car != "alpha" || x.Car != "alpha" || x.Roadside != "bravo" {
			t.Errorf("trial %d: section %s has %s → %s", x.Number, x.Factors["section"], x.Sender, x.Receiver)
		}
		speeds[*x.SpeedMps]++
	}
	if want := map[float64]int{2.8: 4, 5.6: 4, 8.3: 4, 11.1: 4, 13.9: 4, 16.7: 4}; !maps.Equal(speeds, want) {
		t.Errorf("speeds %v, want %v", speeds, want)
	}
}

// TestPoweredTakesConfoundsApart: unit and data direction are crossed, the
// window always lies on the same road, and the car can reach its speed.
func TestPoweredTakesConfoundsApart(t *testing.T) {
	c := load(t, "velocity-powered")
	cells := map[string]int{}
	calibration := map[string]int{}
	for i, x := range schedule(t, c) {
		if x.Pass == "calibration" {
			calibration[x.Factors["calibration"]+" "+x.Factors["car_unit"]+" "+x.Factors["mark_m"]]++
			if x.SpeedMps != nil || x.Acceptance.SpeedBandMps != nil || x.Gate.SpeedBand || x.Direction != "" ||
				x.Gate.AfterS == nil {
				t.Errorf("trial %d is parked and has rules on speed: %s", x.Number, line(x))
			}
			continue
		}
		cells[x.Car+" sends="+fmt.Sprint(x.Sender == x.Car)+" "+x.Factors["speed"]]++
		v := *x.SpeedMps
		opens := *x.Gate.PlaceM + v*x.Gate.LeadS
		closes := opens + v*x.DurationS
		if x.Direction == "inbound" {
			opens = *x.Gate.PlaceM - v*x.Gate.LeadS
			opens, closes = opens-v*x.DurationS, opens
		}
		if opens < 19.9 || opens > 20.1 || closes < 119.9 || closes > 120.1 {
			t.Errorf("trial %d: window from %.2f m to %.2f m, want 20 to 120: %s", x.Number, opens, closes, line(x))
		}
		if e := c.Estimate().Trials[i]; e.ApproachM < drive.RunUpM(v, x.Course.AccelMps2)+v*x.Gate.HoldS {
			t.Errorf("trial %d: approach %.1f m is too short for %g m/s", x.Number, e.ApproachM, v)
		}
	}
	if len(cells) != 24 || len(calibration) != 16 {
		t.Errorf("%d cells and %d kinds of calibration pass, want 24 and 16", len(cells), len(calibration))
	}
	for name, n := range cells {
		if n < 10 {
			t.Errorf("cell %s has %d passes, want at least 10", name, n)
		}
	}
}

func TestRunPlan(t *testing.T) {
	c := load(t, "velocity")
	p, err := c.RunPlan("velocity-1", make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if p.Run != "velocity-1" || p.Campaign != "velocity" || p.CampaignSHA256 != c.SHA256 || p.Seed != 20261120 ||
		p.AttemptsMax != 3 || len(p.Trials) != 24 {
		t.Errorf("plan %+v", p)
	}
	want := []wire.PlanNode{{Name: "alpha", Unit: "laptop-1", MeshPrefix: "10.77.0.1/24"},
		{Name: "bravo", Unit: "laptop-2", MeshPrefix: "10.77.0.2/24"}}
	if !reflect.DeepEqual(p.Nodes, want) {
		t.Errorf("nodes %+v", p.Nodes)
	}
	for _, bad := range []struct {
		run string
		key int
	}{{"", 32}, {"Upper", 32}, {"a b", 32}, {strings.Repeat("a", 65), 32}, {"fine", 31}} {
		if _, err := c.RunPlan(bad.run, make([]byte, bad.key)); err == nil {
			t.Errorf("run %q with a key of %d bytes was taken", bad.run, bad.key)
		}
	}
}

func TestScheduleIsTheCallersOwn(t *testing.T) {
	c := load(t, "velocity")
	first := schedule(t, c)
	first[0].Sender, first[0].Traffic[0].Port, *first[0].SpeedMps = "changed", 1, 99
	first[0].Factors["speed"] = "changed"
	if again := schedule(t, c); reflect.DeepEqual(first[0], again[0]) {
		t.Error("a change to a returned schedule reached the campaign")
	}
}

func TestSiteAndField(t *testing.T) {
	c := load(t, "velocity")
	if c.Site.Antenna != "built into the laptop" || c.Site.Vehicle != "" || c.Site.Occupants != nil {
		t.Errorf("site %+v", c.Site)
	}
	got, err := json.Marshal(c.Field)
	if want := `{"propagation":"two_ray_ground","antenna_height_m":1.5,"nmea_hz":10}`; err != nil ||
		string(got) != want {
		t.Errorf("field %s, want %s: %v", got, want, err)
	}
	if load(t, "velocity").NeedsSite() || !load(t, "velocity-powered").NeedsSite() {
		t.Error("NeedsSite is wrong")
	}
}

// TestClientPortsComeBackLate: no attempt uses a port that one of the 50
// attempts before it used.
func TestClientPortsComeBackLate(t *testing.T) {
	for _, name := range shipped {
		c := load(t, name)
		last := map[int]int{} // port → attempt's place in time
		now := 0
		for _, x := range schedule(t, c) {
			for attempt := 1; attempt <= c.AttemptsMax; attempt++ {
				now++
				for _, f := range x.Traffic {
					for s := range f.Streams {
						port := f.ClientPort + (attempt-1)*f.Streams + s
						if port < clientPortFirst || port > clientPortLast {
							t.Fatalf("%s: trial %d attempt %d uses port %d", name, x.Number, attempt, port)
						}
						if before := last[port]; before > 0 && now-before < 50 {
							t.Fatalf("%s: trial %d attempt %d uses port %d again after %d attempts", name, x.Number,
								attempt, port, now-before)
						}
						last[port] = now
					}
				}
			}
		}
	}
}

// Interrupted attempts use up none of attempts_max: flows of one client keep apart in any attempt that there may be.
func TestFlowsShareNoClientPortInAnyAttempt(t *testing.T) {
	flow := func(streams int) wire.Flow { return wire.Flow{Streams: streams} }
	for _, flows := range [][]wire.Flow{{flow(4), flow(1)}, {flow(1), flow(4)}, {flow(2), flow(8), flow(1), flow(2)}} {
		trials := []wire.Trial{{Traffic: flows}}
		(&parse{attemptsMax: 3}).assignClientPorts(nil, trials)
		for attempt := 1; attempt <= 1000; attempt++ {
			taken := map[int]bool{}
			for _, f := range trials[0].Traffic {
				for s := range f.Streams {
					port := f.ClientPort + (attempt-1)*f.Streams + s
					if taken[port] {
						t.Fatalf("%+v: two flows use port %d in attempt %d", flows, port, attempt)
					}
					taken[port] = true
				}
			}
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil ||
		!strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("error %v", err)
	}
}

// Every campaign that ships can be driven whole, but for the one that says that no run holds it.
func TestShippedCampaignsHaveRoom(t *testing.T) {
	campaigns, err := everyShipped()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range campaigns {
		problems := c.Room(func(int) bool { return true })
		if whole := problems == nil; whole == strings.Contains(name, "fixed-rto") {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
