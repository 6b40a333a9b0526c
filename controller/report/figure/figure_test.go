package figure_test

import (
	"encoding/csv"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func two() figure.Plot {
	means := []figure.Point{{X: 2, Y: 9, YLow: new(-1.0), YHigh: new(11.0), N: 3, Hint: "mean"},
		{X: 8, Y: 4, N: 2}}
	return figure.Plot{Title: "Throughput by speed", XLabel: "speed, m/s", YLabel: "throughput, Mbit/s", Dodge: true,
		YName: "throughput", YUnit: "mbps",
		Series: []figure.Series{
			{Name: "section A (n = 2)", Means: means,
				Points: []figure.Point{{X: 2, Y: 9.5, Trial: 1, XLow: new(1.0), XHigh: new(3.0)},
					{X: 8, Y: 4, Trial: 2}}},
			{Name: `=B "sends"`, Points: []figure.Point{{X: 2, Y: 8, Trial: 3}}},
		}}
}

// drawn are the drawing's elements of a class, in order.
func drawn(t *testing.T, svg, class string) []map[string]string {
	t.Helper()
	var out []map[string]string
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok {
			of := map[string]string{}
			for _, a := range e.Attr {
				of[a.Name.Local] = a.Value
			}
			if of["class"] == class {
				out = append(out, of)
			}
		}
	}
}

// A drawing by itself names its series, has the intervals, and sets series at the
// same x beside each other.
func TestADrawingIsWholeByItself(t *testing.T) {
	svg := string(two().Draw())
	for _, w := range []string{"section A (n = 2)", "=B &#34;sends&#34;"} {
		if !strings.Contains(svg, w) {
			t.Errorf("the drawing has no %q", w)
		}
	}
	intervals := drawn(t, svg, "interval")
	if len(intervals) != 1 {
		t.Fatalf("%d intervals, want that of the one mean that has any", len(intervals))
	}
	if strings.Count(intervals[0]["d"], "h") != 1 {
		t.Errorf("an interval that reaches below zero has a foot: %q", intervals[0]["d"])
	}
	// 2 m/s of 8, each series half of 11 off: the circle of A, the square of B.
	circle, _, _ := strings.Cut(strings.SplitN(svg, `<circle cx="`, 3)[2], `"`)
	square, _, _ := strings.Cut(strings.SplitN(svg, `<rect class="hollow" x="`, 3)[2], `"`)
	a, aerr := strconv.ParseFloat(circle, 64)
	b, berr := strconv.ParseFloat(square, 64)
	if aerr != nil || berr != nil || b+4-a < 10.8 || b+4-a > 11.2 {
		t.Errorf("A stands at %q and B at %q (left edge): want 11 between them", circle, square)
	}
}

// The numbers behind a figure are those that it shows.
func TestTheCSVHasEveryMark(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(two().CSV("speed_mps"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"series", "mark", "trial", "speed_mps", "x_low", "x_high", "throughput_mbps", "throughput_low_mbps",
			"throughput_high_mbps", "n"},
		{"section A (n = 2)", "trial", "1", "2", "1", "3", "9.5", "", "", "1"},
		{"section A (n = 2)", "trial", "2", "8", "", "", "4", "", "", "1"},
		{"section A (n = 2)", "mean", "", "2", "", "", "9", "-1", "11", "3"},
		{"section A (n = 2)", "mean", "", "8", "", "", "4", "", "", "2"},
		{`'=B "sends"`, "trial", "3", "2", "", "", "8", "", "", "1"},
	}
	for i := range max(len(rows), len(want)) {
		if i >= len(rows) || i >= len(want) || strings.Join(rows[i], "|") != strings.Join(want[i], "|") {
			t.Fatalf("line %d: %v, want %v", i, rows, want)
		}
	}
}

// The program beside the CSV draws it, as numbers and as levels.
func TestTheScriptDrawsTheCSV(t *testing.T) {
	const venv = "../../../.tools/venv/bin/python"
	testnet.Need(t, venv)
	python, err := filepath.Abs(venv)
	if err != nil {
		t.Fatal(err)
	}
	passed := two() // a car that went past: its mean is nearer than where the window opened and closed
	passed.Series[1].Points[0].XLow, passed.Series[1].Points[0].XHigh = new(3.0), new(5.0)
	levels := two()
	levels.Series[0].Points[0].XLow, levels.Series[0].Points[0].XHigh = nil, nil // a level has no width
	levels.Ticks = []figure.XTick{{X: 2, Text: "reno"}, {X: 8, Text: `=cu"bic`}}
	for name, p := range map[string]figure.Plot{"figure-1": two(), "figure-2": levels, "figure-3": passed} {
		dir := t.TempDir()
		for ext, text := range map[string]string{"csv": p.CSV("x of it"), "py": p.Script(name, "x of it")} {
			if err := os.WriteFile(filepath.Join(dir, name+"."+ext), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command(python, name+".py")
		c.Dir = dir
		c.Env = append(os.Environ(), "MPLCONFIGDIR="+dir)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		made, err := os.ReadFile(filepath.Join(dir, name+".pdf"))
		if err != nil || !strings.HasPrefix(string(made), "%PDF") {
			t.Errorf("%s: %v, begins with %.8q", name, err, made)
		}
	}
}
