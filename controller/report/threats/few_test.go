package threats

import (
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

func gathered(t *testing.T, a *archive.Archive) *evidence.Run {
	t.Helper()
	d, err := evidence.Gather(a)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Few repetitions are a threat in any campaign, by the combinations of its factors: what lies in one cell by speed and
// section alone may be of several.
func TestFewRepetitionsAreOfEveryCampaign(t *testing.T) {
	variants := func(x *wire.Trial) { x.Factors["variant"] = []string{"cubic", "vegas"}[x.Repetition%2] }
	for want, o := range map[string]synthetic.Options{
		"4 of 4 cells have fewer than three accepted trials (least: 1)": {Speeds: []float64{2.8, 16.7}, Repetitions: 1},
		"2 of 4 cells have fewer than three accepted trials (least: 2)": {Speeds: []float64{2.8}, Repetitions: 5,
			Change: variants},
		"8 of 8 cells have fewer than three accepted trials (least: 1)": {Speeds: []float64{2.8, 16.7}, Repetitions: 3,
			Units: []string{"laptop-1", "laptop-2"}},
		"2 of 2 cells have fewer than three accepted trials (least: 2)": {Speeds: []float64{2.8}, Repetitions: 2},
		"": {Speeds: []float64{2.8}, Repetitions: 6, Change: variants},
	} {
		o.Seed = 5
		few, clear := FewRepetitions(gathered(t, synthetic.Run(t, o)))
		switch {
		case want == "" && (few != nil || clear != "Every cell has at least 3 accepted trials."):
			t.Errorf("%+v, %q", few, clear)
		case want != "" && (few == nil || !strings.HasPrefix(few.Text, want)):
			t.Errorf("%+v, %q; want %q", few, clear, want)
		}
		if few != nil {
			once := strings.Contains(few.Text, "No cell has two: noise cannot be separated")
			if once != (o.Repetitions == 1) {
				t.Errorf("%d repetitions: %s", o.Repetitions, few.Text)
			}
		}
	}
}

// What other shards drive is missing in none.
func TestAShardLacksNothingOfTheOthers(t *testing.T) {
	info := synthetic.Info(synthetic.Options{Seed: 5, Speeds: []float64{2.8, 16.7}, Repetitions: 3})
	folder := synthetic.Shard(t, filepath.Join(t.TempDir(), "one"), info, &archive.Shard{Number: 1, Of: 3})
	a, err := archive.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	d := gathered(t, a)
	if missing, clear := Undriven(d); missing != nil || clear == "" {
		t.Errorf("%+v, %q", missing, clear)
	}
	if few, _ := FewRepetitions(d); few == nil || strings.Contains(few.Text, "least: 0") {
		t.Errorf("%+v", few)
	}
}
