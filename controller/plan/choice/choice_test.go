package choice_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/choice"
)

func shipped(t *testing.T, name string) (path string, raw []byte) {
	t.Helper()
	path = filepath.Join("..", "..", "..", "campaigns", name+".yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, raw
}

// speeds of a schedule, each once, slowest first.
func speeds(t *testing.T, c *plan.Campaign) (out []float64) {
	t.Helper()
	trials, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range trials {
		if trial.SpeedMps != nil && trial.Pass == "" {
			out = append(out, *trial.SpeedMps)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestAChoiceIsAScale(t *testing.T) {
	for _, c := range []struct {
		campaign string
		choice   choice.Choice
		speeds   []float64
		trials   int
		why      string
	}{
		{"velocity-phones", choice.Choice{SpeedsMps: []float64{2.8, 4}, Repetitions: 1}, []float64{2.8, 4}, 4,
			"the speeds are 2.8, 4 m/s instead of 2.8, 5.6, 8.3, 11.1, 13.9, 16.7 m/s; the repetitions are 1 " +
				"instead of 2."},
		{"velocity-phones", choice.Choice{SpeedsMps: []float64{5.6}}, []float64{5.6}, 4, "the speeds are 5.6 m/s"},
		{"velocity-phones", choice.Choice{Repetitions: 3}, []float64{2.8, 5.6, 8.3, 11.1, 13.9, 16.7}, 36,
			"the repetitions are 3 instead of 2."},
		{"velocity-powered", choice.Choice{SpeedsMps: []float64{16.7, 2.8}, Repetitions: 2}, []float64{2.8, 16.7}, -1,
			"the speeds are 16.7, 2.8 m/s"},
		{"reference-tcp-settings", choice.Choice{Scale: "quick", Repetitions: 2}, nil, -1,
			"Else it is the scale quick."},
	} {
		path, raw := shipped(t, c.campaign)
		text, scale, got, err := choice.Of(path, raw, c.choice)
		if err != nil {
			t.Errorf("%s %+v: %v", c.campaign, c.choice, err)
			continue
		}
		if scale != "chosen" || !choice.Is(got.Scale) || !strings.Contains(got.Scale.Why, c.why) {
			t.Errorf("%s %+v: scale %q says %+v", c.campaign, c.choice, scale, got.Scale)
		}
		if c.speeds != nil && !slices.Equal(speeds(t, got), c.speeds) {
			t.Errorf("%s %+v: speeds %v", c.campaign, c.choice, speeds(t, got))
		}
		trials, _ := got.Schedule()
		if c.trials >= 0 && len(trials) != c.trials {
			t.Errorf("%s %+v: %d trials, want %d", c.campaign, c.choice, len(trials), c.trials)
		}
		if r := c.choice.Repetitions; r > 0 && got.Design.Repetitions != r {
			t.Errorf("%s %+v: %d repetitions", c.campaign, c.choice, got.Design.Repetitions)
		}
		// What was there is there as it was, in its order.
		for _, line := range bytes.Split(raw, []byte("\n")) {
			if !bytes.Contains(text, line) {
				t.Errorf("%s %+v: lost %q", c.campaign, c.choice, line)
			}
		}
		full, _, _, err := choice.Of(path, text, choice.Choice{})
		if err != nil || !bytes.Equal(full, text) {
			t.Errorf("%s: the file with the choice cannot be read in full: %v", c.campaign, err)
		}
	}
}

func TestWhatIsTheCampaignsOwnIsNoChoice(t *testing.T) {
	path, raw := shipped(t, "velocity-phones")
	text, scale, c, err := choice.Of(path, raw, choice.Choice{SpeedsMps: []float64{2.8, 5.6, 8.3, 11.1, 13.9, 16.7},
		Repetitions: 2})
	if err != nil || scale != plan.FullScale || c.Scale != nil || !bytes.Equal(text, raw) {
		t.Errorf("scale %q, %v", scale, err)
	}
}

func TestAChoiceOnAScaleHasWhatTheScaleSets(t *testing.T) {
	const scales = "scales:\n  short:\n    why: shorter windows # a comment\n    trial: {duration_s: 5}\n"
	path, raw := shipped(t, "velocity-phones")
	for _, text := range []string{scales, "scales: {short: {why: shorter windows, trial: {duration_s: 5}}}\n",
		"scales: # a comment\n    # another\n    chosen: {why: of a person}\n    short:\n" +
			"      why: shorter windows\n      trial: {duration_s: 5}\n"} {
		within := strings.Replace(string(raw), "\ntrial:\n", "\n"+text+"\ntrial:\n", 1)
		for _, file := range [][]byte{slices.Concat(raw, []byte(text)), []byte(within)} {
			_, scale, c, err := choice.Of(path, file, choice.Choice{Scale: "short", SpeedsMps: []float64{7}})
			if err != nil {
				t.Errorf("%v\n%s", err, text)
				continue
			}
			trials, _ := c.Schedule()
			if len(trials) != 4 || trials[0].DurationS != 5 || *trials[0].SpeedMps != 7 {
				t.Errorf("%s: %d trials, the first %+v", scale, len(trials), trials[0])
			}
		}
	}
}

func TestChoicesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		campaign string
		choice   choice.Choice
		says     string
	}{
		{"velocity-phones", choice.Choice{SpeedsMps: []float64{400}}, "factors.speed.levels"},
		{"velocity-phones", choice.Choice{Repetitions: 1e6}, "design.repetitions"},
		{"velocity-phones", choice.Choice{Scale: "quick"}, `no scale "quick"`},
		{"velocity-powered", choice.Choice{SpeedsMps: []float64{3}}, "3 m/s is not one of 2.8, 5.6"},
		{"six-variants", choice.Choice{SpeedsMps: []float64{3}}, "no factor whose levels are speeds"},
	} {
		path, raw := shipped(t, c.campaign)
		if _, _, _, err := choice.Of(path, raw, c.choice); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %+v: %v, want %q", c.campaign, c.choice, err, c.says)
		}
	}
}

func ExampleOf() {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "campaigns", "stationary-check.yaml"))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _, _, err := choice.Of("stationary-check.yaml", raw, choice.Choice{SpeedsMps: []float64{2.8, 5.6}})
	lines := strings.NewReplacer(": the", ":\n    the", ", factors", ",\n    factors")
	fmt.Print(lines.Replace(string(text[len(raw):])), err)
	// Output:
	// scales:
	//   chosen: {why: "Chosen by the experimenter:
	//     the speeds are 2.8, 5.6 m/s instead of 2.8, 5.6, 8.3, 11.1, 13.9, 16.7 m/s.",
	//     factors: {speed: {levels: [2.8, 5.6]}}}
	// <nil>
}
