package archive_test

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

func TestWhatCountsAsAResult(t *testing.T) {
	stop := &archive.Stop{Blocks: 2}
	for name, c := range map[string]struct {
		trial   wire.Trial
		outcome wire.Outcome
		stop    *archive.Stop
		counts  bool
	}{
		"accepted":                      {wire.Trial{Block: 3}, "accepted", nil, true},
		"rejected":                      {wire.Trial{Block: 1}, "rejected", nil, false},
		"a calibration pass":            {wire.Trial{Block: 1, Pass: "calibration"}, "accepted", nil, false},
		"of the last block":             {wire.Trial{Block: 2}, "accepted", stop, true},
		"of a block after that":         {wire.Trial{Block: 3}, "accepted", stop, false},
		"a calibration pass after that": {wire.Trial{Block: 3, Pass: "calibration"}, "accepted", stop, false},
	} {
		if got := archive.Counts(c.trial, &wire.Verdict{Outcome: c.outcome}, c.stop); got != c.counts {
			t.Errorf("%s: counts %v", name, got)
		}
	}
	if archive.Counts(wire.Trial{Block: 1}, nil, nil) {
		t.Error("an attempt without a verdict counts")
	}
}

// What the archive has of a stop, a reader of it has too.
func TestAStopIsReadBack(t *testing.T) {
	o := options()
	o.Repetitions, o.Enough = 3, 2
	a, err := archive.Read(synthetic.Run(t, o).Dir())
	if err != nil {
		t.Fatal(err)
	}
	counts, driven := 0, 0
	for _, v := range a.Decisions() {
		trial, _ := a.Trial(v.Trial)
		if archive.Counts(trial, &v, a.Stopped()) {
			counts++
		}
		if a.Drives(trial) {
			driven++
		}
	}
	if all := len(a.Decisions()); all != 6 || counts != 4 || driven != 4 {
		t.Errorf("of %d attempts count %d and were to be driven %d; want 4 of 6", all, counts, driven)
	}
}
