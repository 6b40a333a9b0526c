package trial

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestOnlyWhoRelaysIsSampledAtTheRelaysRate(t *testing.T) {
	plan := wire.Trial{Initiator: "i", Sender: "s", Receiver: "r", Car: "c", Roadside: "o",
		Relays: []string{"x", "y", "z"}, Traffic: []wire.Flow{{From: "s", To: "r"}, {From: "x", To: "y"}}}
	for _, node := range []string{"i", "s", "r", "c", "o", "x", "y", "z"} {
		if got := beat(plan, node); got != 100*time.Millisecond || !watched(plan, node) {
			t.Errorf("%s: every %v where the plan says nothing", node, got)
		}
	}
	plan.RelaySampleHz = new(2)
	for _, node := range []string{"i", "s", "r", "c", "o", "x", "y"} {
		if got := beat(plan, node); got != 100*time.Millisecond || !watched(plan, node) {
			t.Errorf("%s has a part in the trial and is sampled every %v", node, got)
		}
	}
	if got := beat(plan, "z"); got != 500*time.Millisecond || watched(plan, "z") {
		t.Errorf("a relay is sampled every %v", got)
	}
}
