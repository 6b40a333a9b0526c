package streets

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What testdata/town.py builds: where metres are, and where a road is.
const (
	lat0, lon0  = 52.5, 13.4
	northDeg    = 1 / 111194.9
	roadSouthM  = -800
	roadNorthM  = 1500
	within      = 0.7 // metres
	attribution = "© Nobody & contributors made up"
)

var eastDeg = northDeg / math.Cos(lat0*math.Pi/180)

func boxOf(west, south, east, north float64) Box {
	return Box{lon0 + west*eastDeg, lat0 + south*northDeg, lon0 + east*eastDeg, lat0 + north*northDeg}
}

// place puts a map beside a run, in a folder of runs.
func place(t testing.TB, raw []byte) (run string) {
	t.Helper()
	run = filepath.Join(t.TempDir(), "runs", "run")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, "map.pmtiles"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return run
}

func town(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/town.pmtiles")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func drawn(t testing.TB, run string, b Box, most int) *Drawing {
	t.Helper()
	m, err := Open(run)
	if err != nil || m == nil {
		t.Fatalf("%v, %v", m, err)
	}
	defer func() { _ = m.Close() }()
	d, err := m.Draw(b, most)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var command = regexp.MustCompile(`([Ml])([^Mlz]+)(z?)`)
var number = regexp.MustCompile(`-?\d+`)

// linesOf are a path's lines in metres east and north of the town's middle.
func linesOf(t testing.TB, d *Drawing, kind Kind) (lines [][][2]float64) {
	t.Helper()
	for _, p := range d.Paths {
		if p.Kind != kind {
			continue
		}
		var at [2]float64
		for _, c := range command.FindAllStringSubmatch(p.D, -1) {
			values := number.FindAllString(c[2], -1)
			for i := 0; i+1 < len(values); i += 2 {
				x, xerr := strconv.ParseFloat(values[i], 64)
				y, yerr := strconv.ParseFloat(values[i+1], 64)
				if xerr != nil || yerr != nil {
					t.Fatalf("%q", c[0])
				}
				if c[1] == "M" {
					at = [2]float64{x, y}
					lines = append(lines, nil)
				} else {
					at = [2]float64{at[0] + x, at[1] + y}
				}
				lon, lat := d.West+at[0]*d.StepDeg, d.North-at[1]*d.StepDeg
				place := [2]float64{(lon - lon0) / eastDeg, (lat - lat0) / northDeg}
				lines[len(lines)-1] = append(lines[len(lines)-1], place)
			}
		}
	}
	return lines
}

// The road on which the synthetic car drives lies where it was built, and all that a driver needs is drawn.
func TestStreetsLieWhereTheyAre(t *testing.T) {
	d := drawn(t, place(t, town(t)), boxOf(-500, -400, 700, 900), 300e3)
	if d.Zoom != 15 || d.Note != "" || d.Attribution != attribution {
		t.Errorf("zoom %d, %q, %q", d.Zoom, d.Note, d.Attribution)
	}
	var kinds []Kind
	for _, p := range d.Paths {
		kinds = append(kinds, p.Kind)
	}
	if text := strings.TrimSpace(strings.Join(strings.Fields(string(join(kinds))), " ")); text !=
		"water stream building way rail minor major" { // the highway is outside
		t.Errorf("%s", text)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, line := range linesOf(t, d, Major) {
		for _, p := range line {
			if math.Abs(p[0]) > within {
				t.Errorf("the road is at %v m", p)
			}
			low, high = min(low, p[1]), max(high, p[1])
		}
	}
	if low > -400 || high < 900 || low < roadSouthM-within || high > roadNorthM+within {
		t.Errorf("the road is from %g m to %g m", low, high)
	}
	for _, p := range d.Paths {
		if rings := strings.Count(p.D, "z") > 0; rings != (p.Kind == Water || p.Kind == Building) {
			t.Errorf("%s: rings are closed, and lines are not: %.60q", p.Kind, p.D)
		}
	}
}

func join(kinds []Kind) (text []byte) {
	for _, k := range kinds {
		text = append(append(text, k...), ' ')
	}
	return text
}

// A drawing is never larger than it may be: buildings are left out first, and then it is coarser.
func TestADrawingIsBounded(t *testing.T) {
	run, all := place(t, town(t)), boxOf(-900, -800, 900, 1500)
	sizeOf := func(d *Drawing) (n int, kinds string) {
		for _, p := range d.Paths {
			n, kinds = n+len(p.D), kinds+string(p.Kind)+" "
		}
		return n, kinds
	}
	whole, kinds := sizeOf(drawn(t, run, all, 300e3))
	if whole > 12000 || !strings.Contains(kinds, "building") {
		t.Fatalf("%d bytes, %s", whole, kinds)
	}
	zoom := 15
	for _, most := range []int{whole, whole - 1, whole / 4, 800, 10} {
		d := drawn(t, run, all, most)
		n, kinds := sizeOf(d)
		if n > most || strings.Contains(kinds, "building") != (most == whole) || d.Zoom > zoom {
			t.Errorf("%d bytes of %d, zoom %d: %s", n, most, d.Zoom, kinds)
		}
		if (n == 0) != (most == 10) || (d.Note != "") != (most == 10) {
			t.Errorf("%d bytes of %d: %q", n, most, d.Note)
		}
		zoom = d.Zoom
	}
	if d := drawn(t, run, Box{-180, -85, 180, 85}, 300e3); !strings.Contains(d.Note, "come closer") ||
		len(d.Paths) > 0 {
		t.Errorf("the Earth: %+v", d)
	}
	if d := drawn(t, run, Box{7, 50, 7.01, 50.01}, 300e3); !strings.Contains(d.Note, "nothing here") {
		t.Errorf("elsewhere: %+v", d)
	}
	if d := drawn(t, run, boxOf(-5, -5, 5, 5), 300e3); d.Zoom != 15 || len(linesOf(t, d, Major)) == 0 {
		t.Errorf("closer than the map is fine: %+v", d)
	}
}

func TestTheNearestMapIsUsed(t *testing.T) {
	run := place(t, town(t))
	if err := os.Rename(filepath.Join(run, "map.pmtiles"), filepath.Join(run, "../map.pmtiles")); err != nil {
		t.Fatal(err)
	}
	drawn(t, run, boxOf(-5, -5, 5, 5), 300e3)
	if m, err := Open(filepath.Dir(filepath.Dir(run))); m != nil || err != nil {
		t.Errorf("without a map: %v, %v", m, err)
	}
	for what, make := range map[string]func(string) error{
		"it is no file":             func(path string) error { return unix.Mkfifo(path, 0o644) },
		"it is no PMTiles archive":  func(path string) error { return os.WriteFile(path, []byte("hello"), 0o644) },
		"is a directory":            func(path string) error { return os.Mkdir(path, 0o755) },
		"too many levels of symbol": func(path string) error { return os.Symlink("map.pmtiles", path) },
	} {
		path := filepath.Join(run, "map.pmtiles")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		m, err := Open(run)
		if m != nil || err == nil || !strings.HasPrefix(err.Error(), "map.pmtiles cannot be read: ") ||
			strings.Contains(err.Error(), "/") {
			t.Errorf("%s: %v", what, err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

//attack:file markup in the words that a street map says of itself | it is taken off, and the rest set as text
func TestAttributionIsPlain(t *testing.T) {
	for markup, want := range map[string]string{
		`<a href="https://osm.org/copyright" target="_blank">&copy; OpenStreetMap</a>`: "© OpenStreetMap",
		"a\n\tb  c":                           "a b c",
		`<script>alert(1)</script>&lt;b&gt;x`: "alert(1) <b>x",
		"\x1b]0;owned\x07\u202eabc":           "]0;ownedabc",
		strings.Repeat("x", 300):              strings.Repeat("x", 200) + "…",
	} {
		if got := plain(markup); got != want {
			t.Errorf("%q becomes %q, want %q", markup, got, want)
		}
	}
}

func TestBoxesAreChecked(t *testing.T) {
	for b, want := range map[Box]bool{boxOf(-1, -1, 1, 1): true, {}: false, {1, 1, 0, 2}: false, {0, 2, 1, 1}: false,
		{-181, 0, 1, 1}: false, {0, 0, 1, 89}: false, {math.NaN(), 0, 1, 1}: false, {0, 0, math.Inf(1), 1}: false} {
		if b.Valid() != want {
			t.Errorf("%+v: %v", b, !want)
		}
	}
}

// Whatever a tile has, its drawing is within its bounds, and is JSON.
func TestADrawingIsJSON(t *testing.T) {
	text, err := json.Marshal(drawn(t, place(t, town(t)), boxOf(-500, -400, 500, 900), 300e3))
	if err != nil || len(text) > 20e3 || !strings.HasPrefix(string(text), `{"attribution":"`+"©") {
		t.Errorf("%.100s, %v", text, err)
	}
}
