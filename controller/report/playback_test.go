package report_test

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// played is the playback's data as the page's script reads it.
type played struct {
	Name    string                  `json:"name"`
	What    string                  `json:"what"`
	Seconds float64                 `json:"seconds"`
	Roles   map[string]string       `json:"roles"`
	Places  map[string][][3]float64 `json:"places"`
	Mbps    []*float64              `json:"mbps"`
}

func playback(t *testing.T, html string) []played {
	t.Helper()
	m := regexp.MustCompile(`(?s)<script type="application/json" id="replay-data">(.*?)</script>`).
		FindStringSubmatch(html)
	if m == nil {
		t.Fatal("no playback in the report")
	}
	var out []played
	if err := json.Unmarshal([]byte(m[1]), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The page carries where the field had the car, trial by trial.
func TestPlaybackHasTheFieldsTruth(t *testing.T) {
	const speed = 5.6
	got := playback(t, written(t, synthetic.Options{Seed: 1, Speeds: []float64{speed}, Repetitions: 1}))
	if len(got) != 2 {
		t.Fatalf("%d attempts, want one for each section", len(got))
	}
	for _, p := range got {
		car := p.Places["car"]
		if p.Seconds != 10 || len(car) != 101 || len(p.Mbps) != 101 || p.What == "" {
			t.Fatalf("%s: %g s, %d places, %d rates, %q", p.Name, p.Seconds, len(car), len(p.Mbps), p.What)
		}
		if r := p.Places["roadside"]; len(r) != 1 || r[0] != [3]float64{} {
			t.Errorf("%s: the roadside node is at %v, which is the origin", p.Name, r)
		}
		first, last := car[0], car[len(car)-1]
		if first[0] != 0 || last[0] != 10 || math.Abs(last[1]-first[1]-10*speed) > 0.2 {
			t.Errorf("%s: the car goes from %v to %v", p.Name, first, last)
		}
		want := map[string]string{"car": "car, sends", "roadside": "roadside"}
		if p.What[0] == 'B' {
			want = map[string]string{"car": "car", "roadside": "roadside, sends"}
		}
		if p.Roles["car"] != want["car"] || p.Roles["roadside"] != want["roadside"] {
			t.Errorf("%s (%s): roles %v", p.Name, p.What, p.Roles)
		}
	}
}

// On a road there is no truth: GPS places the nodes, on one plane.
func TestPlaybackOfARoadHasGPS(t *testing.T) {
	const speed = 11.1
	a, err := synthetic.Build(t.TempDir()+"/run", synthetic.Options{Seed: 2, Place: "road", Speeds: []float64{speed},
		Repetitions: 1, NoField: true,
		Change: func(t *wire.Trial) { t.Acceptance.LatenessShareMax = nil }})
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, a)
	for _, p := range playback(t, of(t, a)) {
		car, roadside := p.Places["car"], p.Places["roadside"]
		if len(roadside) != 2 || len(car) < 45 { // fixes come at 5 Hz
			t.Fatalf("%d places of the roadside node, %d of the car", len(roadside), len(car))
		}
		first, last := car[0], car[len(car)-1]
		way := math.Hypot(last[1]-first[1], last[2]-first[2])
		if took := last[0] - first[0]; math.Abs(way-took*speed) > 0.5 {
			t.Errorf("%s: %g m in %g s", p.Name, way, took)
		}
	}
}
