package threats

import (
	"fmt"
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
	speeds := []float64{2.8, 16.7}
	const few, clear = "In %d of %d cells fewer than three accepted trials have a result (least: %d).",
		"Every cell has at least 3 accepted trials with a result."
	for want, o := range map[string]synthetic.Options{
		fmt.Sprintf(few, 4, 4, 1): {Speeds: speeds, Repetitions: 1},
		fmt.Sprintf(few, 2, 4, 2): {Speeds: speeds[:1], Repetitions: 5, Change: variants},
		fmt.Sprintf(few, 8, 8, 1): {Speeds: speeds, Repetitions: 3, Units: []string{"laptop-1", "laptop-2"}},
		fmt.Sprintf(few, 2, 2, 2): {Speeds: speeds[:1], Repetitions: 2},
		clear:                     {Speeds: speeds[:1], Repetitions: 6, Change: variants},
	} {
		o.Seed = 5
		threat, none := FewRepetitions(gathered(t, synthetic.Run(t, o)))
		if want == clear {
			if threat != nil || none != clear {
				t.Errorf("%+v, %q; want %q", threat, none, clear)
			}
			continue
		}
		if threat == nil || !strings.HasPrefix(threat.Text, want) {
			t.Errorf("%+v, %q; want %q", threat, none, want)
			continue
		}
		once := strings.Contains(threat.Text, "None has two: noise cannot be separated")
		if once != (o.Repetitions == 1) {
			t.Errorf("%d repetitions: %s", o.Repetitions, threat.Text)
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
