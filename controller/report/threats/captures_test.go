package threats

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestIncompleteCapturesAreNamedWithTheirReason(t *testing.T) {
	of := func(number int, lacks ...string) evidence.Attempt {
		return evidence.Attempt{TrialKey: wire.TrialKey{Trial: number, Attempt: 1}, Lacks: lacks,
			Verdict: &wire.Verdict{Outcome: wire.Accepted},
			Trial:   wire.Trial{Number: number, Capture: &wire.CapturePlan{SnapBytes: 96}}}
	}
	lacks := evidence.LacksOf([]metrics.Lack{{Node: "van", What: "its file was full, and 120 packets are missing"}},
		[]metrics.Row{{Name: metrics.CapturesUnreadable, Value: 1}})
	threat, _ := IncompleteCaptures(&evidence.Run{Attempts: []evidence.Attempt{of(1), of(2, lacks...)}})
	if threat == nil {
		t.Fatal("an incomplete capture is no threat")
	}
	says(t, threat.Text, "Of 2 accepted trials", "1 lack",
		"trial 2.1, van: its file was full, and 120 packets are missing",
		"trial 2.1, of 1 node the capture cannot be read")
	threat, clear := IncompleteCaptures(&evidence.Run{Attempts: []evidence.Attempt{of(1)}})
	if threat != nil || clear == "" {
		t.Errorf("whole captures: %+v, %q", threat, clear)
	}
	without := &evidence.Run{Attempts: []evidence.Attempt{{Verdict: &wire.Verdict{Outcome: wire.Accepted}}}}
	if threat, clear := IncompleteCaptures(without); threat != nil || clear != "" {
		t.Errorf("no captures: %+v, %q", threat, clear)
	}
}
