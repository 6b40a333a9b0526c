package report

import (
	"bytes"
	"html/template"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// accepted is an accepted attempt with a throughput and, unless it is negative, a distance.
func accepted(trial int, distanceM float64) evidence.Attempt {
	a := evidence.Attempt{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Mbps: new(5.0),
		Trial:   wire.Trial{Number: trial, Car: "car"},
		Verdict: &wire.Verdict{Outcome: wire.Accepted}, Points: []metrics.Point{{S: 10}}}
	if distanceM >= 0 {
		a.Rows = []metrics.Row{{Name: metrics.DistanceMeanM, Value: distanceM}}
	}
	return a
}

// A figure that cannot show all trials says how many it leaves out.
func TestTrialsWithoutADistanceAreCountedAtTheFigure(t *testing.T) {
	for _, c := range []struct {
		distances []float64
		want      string
	}{
		{[]float64{50, 60, 70}, ""},
		{[]float64{50, -1, 70}, "1 accepted trial has no such distance and is not in it."},
		{[]float64{-1, 60, -1}, "2 accepted trials have no such distance and are not in it."},
	} {
		var d evidence.Run
		for i, m := range c.distances {
			d.Attempts = append(d.Attempts, accepted(i+1, m))
		}
		f := distanceFigure(&d)
		if c.want == "" && strings.Contains(f.Caption, "not in it") || !strings.Contains(f.Caption, c.want) {
			t.Errorf("%v: %q, want %q", c.distances, f.Caption, c.want)
		}
	}
}

// Of a long run the page has the first attempts' traces, and says how many it has not.
func TestTracesThatAreNotShownAreCounted(t *testing.T) {
	for left, want := range map[int]string{0: "", 1: ">1 more attempt is left", 7: ">7 more attempts are left"} {
		var d evidence.Run
		for i := range tracesShown + left {
			a := accepted(i+1, -1)
			a.Traces = []metrics.Trace{{}}
			d.Attempts = append(d.Attempts, a)
		}
		view, err := viewTraces(&d)
		if err != nil {
			t.Fatal(err)
		}
		html := executed(t, "traces", view)
		if !strings.Contains(html, want) || left == 0 && strings.Contains(html, "left out") {
			t.Errorf("%d are left out, and the section does not say %q", left, want)
		}
	}
}

// The playback says in the same words for how many attempts it has no room.
func TestAttemptsThatAreNotPlayedAreCounted(t *testing.T) {
	for left, want := range map[int]string{0: "", 1: " 1 more attempt is left", 7: " 7 more attempts are left"} {
		html := executed(t, "playback", playbackView{Left: left})
		if !strings.Contains(html, want) || left == 0 && strings.Contains(html, "left out") {
			t.Errorf("%d are left out, and the section does not say %q", left, want)
		}
	}
}

// executed is a part of the page.
func executed(t *testing.T, name string, view any) string {
	t.Helper()
	pages, err := template.ParseFS(page, "page/*.html")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, view); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A trial of which neither end is in the car is of no section, and in the figures all the same.
func TestTrialsOfNoSectionAreDrawn(t *testing.T) {
	var d evidence.Run
	for i, section := range []string{"A", "B", "", "A", "B", ""} {
		a := accepted(i+1, float64(50+i))
		a.Section, a.Trial.SpeedMps = section, new(float64(5+5*(i/3)))
		d.Attempts = append(d.Attempts, a)
	}
	for name, f := range map[string]figureView{"speed": speedFigure(&d), "distance": distanceFigure(&d)} {
		if n := strings.Count(f.Data, "),trial,"); n != 6 {
			t.Errorf("%s: %d of 6 trials are drawn:\n%s", name, n, f.Data)
		}
		if !strings.Contains(f.Data, "no section (n = 2)") {
			t.Errorf("%s: the series is not named:\n%s", name, f.Data)
		}
	}
}
