package archive

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Two runs of one schedule hold it once; one of another schedule has its own.
func TestASchedulesTrialsAreHeldOnce(t *testing.T) {
	known := &knownSchedule{}
	var trials []*wire.Trial
	for _, seconds := range []float64{10, 10, 20} {
		d := disk{root: t.TempDir(), known: known}
		text, err := json.Marshal(wire.RunPlan{Trials: []wire.Trial{{Number: 1, DurationS: seconds}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.root, scheduleFile), text, 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := d.schedule(scheduleFile)
		if err != nil {
			t.Fatal(err)
		}
		if p.Trials[0].DurationS != seconds {
			t.Errorf("a window has %g s, want %g", p.Trials[0].DurationS, seconds)
		}
		trials = append(trials, &p.Trials[0])
	}
	if trials[0] != trials[1] || trials[1] == trials[2] {
		t.Error("the same schedule is held twice, or two as one")
	}
}
