package threats

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// viewed are the threats of a run, and what was looked for in vain.
func viewed(t *testing.T, d *evidence.Run) (threats, clear string) {
	t.Helper()
	v, err := View(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range v.(threatsView).Threats {
		threats += one.Title + ": " + one.Text + "\n"
	}
	return threats, strings.Join(v.(threatsView).Clear, "\n")
}

// A run that several versions of Fieldmesh drove, or whose agents are of several, was measured and judged by several.
func TestSeveralVersionsAreAThreat(t *testing.T) {
	d := gathered(t, synthetic.Run(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8}, Repetitions: 2}))
	const title = "Several versions of Fieldmesh had a part in it"
	found, clear := viewed(t, d)
	if strings.Contains(found, title) {
		t.Fatalf("%s", found)
	}
	says(t, clear, "One version of Fieldmesh drove the run and ran on its nodes: 0.1.0 (commit abc1234).")
	const notes = "The run's notes"
	for _, by := range []string{"0.3.0 (commit def5678)", "0.1.0 (commit def5678)",
		"0.1.0 (commit abc1234) and 0.3.0 (commit def5678)"} { // the last as of shards
		d.Info.Version = by
		found, clear = viewed(t, d)
		says(t, found, title, "It was driven by "+by+". Agents were 0.1.0 (commit abc1234) on car, roadside.")
		if strings.Contains(found, notes) || strings.Contains(clear, "One version of Fieldmesh") {
			t.Errorf("%s\n%s", found, clear)
		}
	}
	d.Notes = []archive.JournalEntry{{Type: "note", Text: "continued by 0.3.0 (commit def5678)"}}
	found, _ = viewed(t, d)
	says(t, found, title, notes+" say from when on another one drove it.")
	d.Info.Version, d.Notes = "0.1.0 (commit abc1234)", nil
	p := d.Attempts[0].Node["roadside"]
	p.Agent = "0.2.0"
	d.Attempts[0].Node["roadside"] = p
	found, _ = viewed(t, d)
	says(t, found, title, "Agents were 0.1.0 (commit abc1234) on car, roadside; 0.2.0 on roadside.")
	if strings.Contains(found, notes) {
		t.Error(found)
	}
}

// A calibration pass is of no block: that one is missing makes no block less whole.
func TestAMissingPassIsOfNoBlock(t *testing.T) {
	trials := []wire.Trial{{Number: 1, Pass: "before"}, {Number: 2, Block: 1}, {Number: 3, Block: 1}}
	d := &evidence.Run{Info: archive.RunInfo{Plan: wire.RunPlan{Trials: trials}}, Attempts: []evidence.Attempt{
		acceptedAt(2), acceptedAt(3)}}
	missing, _ := Undriven(d)
	if missing == nil || missing.Title != "Calibration passes are missing" || !strings.HasPrefix(missing.Text,
		"1 of 1 calibration passes have no accepted attempt: 1.") || strings.Contains(missing.Text, "blocks") {
		t.Errorf("%+v", missing)
	}
	d.Attempts = d.Attempts[:1]
	missing, _ = Undriven(d)
	if missing == nil || missing.Title != "Planned trials are missing" || missing.Text != "1 of 2 planned trials have "+
		"no accepted attempt: 3. The blocks are not whole. 1 of 1 calibration passes have no accepted attempt: 1." {
		t.Errorf("%+v", missing)
	}
}
