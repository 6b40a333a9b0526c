package campaigns_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The golden files are the contract in the shape in which other languages' tests
// read it. A change of one is a change of the contract.
var update = flag.Bool("update", false, "write the golden files again")

func TestGoldenBodies(t *testing.T) {
	for name, sample := range bodies() {
		data, err := wire.Encode(sample)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := json.Indent(&text, data, "", "  "); err != nil {
			t.Fatal(err)
		}
		text.WriteByte('\n')
		path := filepath.Join("golden", "body_"+name+".json")
		if *update {
			if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(text.Bytes(), want) {
			t.Errorf("%s: %v (-update writes it); the encoding is now\n%s", path, err, text.Bytes())
			continue
		}
		back := reflect.New(reflect.TypeOf(sample).Elem()).Interface()
		if err := json.Unmarshal(want, back); err != nil || !reflect.DeepEqual(back, sample) {
			t.Errorf("%s is read as %+v, %v", path, back, err)
		}
	}
	files, err := os.ReadDir("golden")
	if err != nil || len(files) != len(bodies()) {
		t.Errorf("%d golden files for %d samples: %v", len(files), len(bodies()), err)
	}
}

func TestWhatCannotBeChosenIsRefused(t *testing.T) {
	many := make([]float64, campaigns.MostSpeeds+1)
	for i := range many {
		many[i] = float64(i)
	}
	fine := campaigns.Choice{Campaign: "velocity", SpeedsMps: []float64{2.8, 5.6}, Repetitions: 1}
	if err := (campaigns.Start{Name: "velocity-1", Choice: fine}).Validate(); err != nil {
		t.Error(err)
	}
	for what, s := range map[string]campaigns.Start{
		"no campaign": {Name: "velocity-1"},
		"many speeds": {Name: "velocity-1", Choice: campaigns.Choice{Campaign: "velocity", SpeedsMps: many}},
		"a speed twice": {Name: "velocity-1", Choice: campaigns.Choice{Campaign: "velocity",
			SpeedsMps: []float64{1, 2, 1}}},
		"repetitions < 0": {Name: "velocity-1", Choice: campaigns.Choice{Campaign: "velocity", Repetitions: -1}},
		"no name":         {Choice: fine},
		"another folder":  {Name: "../velocity", Choice: fine},
	} {
		if err := s.Validate(); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
