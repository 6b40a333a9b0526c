package report_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The streets of a map beside a run lie under what the page plays back, of a road and not of a rehearsal.
func TestStreetsLieUnderThePlayback(t *testing.T) {
	town, err := os.ReadFile("../streets/testdata/town.pmtiles")
	if err != nil {
		t.Fatal(err)
	}
	const inPage = `(?s)<script type="application/json" id="replay-streets">(.*?)</script>`
	for _, tc := range []struct {
		name, place string
		town        []byte
		says        string
	}{
		{"a road", "road", town, "Streets: © Nobody &amp; contributors made up."},
		{"a road without a map", "road", nil, ""},
		{"a road with a broken one", "road", town[:200], "No streets are drawn: map.pmtiles cannot be read: "},
		{"a rehearsal", "rehearsal", town, ""},
	} {
		a, err := synthetic.Build(filepath.Join(t.TempDir(), "run"), synthetic.Options{Seed: 2, Place: tc.place,
			Speeds: []float64{11.1}, Repetitions: 1, NoField: tc.place == "road",
			Change: func(t *wire.Trial) { t.Acceptance.LatenessShareMax = nil }})
		if err != nil {
			t.Fatal(err)
		}
		testnet.CloseAtEnd(t, a)
		if tc.town != nil {
			if err := os.WriteFile(filepath.Join(a.Dir(), "map.pmtiles"), tc.town, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		page := of(t, a)
		m := regexp.MustCompile(inPage).FindStringSubmatch(page)
		if drawn := strings.HasPrefix(tc.says, "Streets"); (m != nil) != drawn || !strings.Contains(page, tc.says) ||
			tc.says == "" && strings.Contains(page, "No streets") {
			t.Errorf("%s: streets %v, and not %q", tc.name, m != nil, tc.says)
		}
		if m == nil {
			continue
		}
		var g struct {
			X, Y, East, South float64
			Paths             []struct{ Kind, D string }
		}
		if err := json.Unmarshal([]byte(m[1]), &g); err != nil {
			t.Fatal(err)
		}
		home := playback(t, page)[0].Places["roadside"][0] // it stands on the town's main road
		for _, p := range g.Paths {
			if p.Kind != "major" {
				continue
			}
			for _, at := range regexp.MustCompile(`M(-?\d+)[ -]`).FindAllStringSubmatch(p.D, -1) {
				steps, err := strconv.ParseFloat(at[1], 64)
				if x := g.X + steps*g.East; err != nil || math.Abs(x-home[1]) > 0.7 {
					t.Errorf("the road is at %g m east, and the node on it at %g m: %v", x, home[1], err)
				}
			}
			return
		}
		t.Errorf("%d paths, and no road", len(g.Paths))
	}
}
