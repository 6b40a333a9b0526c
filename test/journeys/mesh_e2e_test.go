//go:build e2e

package journeys

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The only way to bravo is the cable under test. The controller, which sits at
// alpha, uses it for control, and is silent while a window is open.
func TestControlOverTheMeshIsSilentWhileMeasuring(t *testing.T) {
	d := newDeskOn(t, "", true)
	c := d.start(t, stationary(t, "overmesh", "[16.7]", "nodes:\n  alpha", "control: mesh\nnodes:\n  alpha"))
	captures := map[wire.TrialKey]*capture{}
	c.steps = func(step string, k wire.TrialKey) {
		switch step {
		case "armed":
			captures[k] = startCapture(t, d.nodes["bravo"].Name, "wlan0", false)
		case "kept":
			captures[k].stop(t)
		}
	}
	k := c.finish(t, 10*time.Minute)
	d.restored(t)
	k.nothingLost(t, deskNodes...)
	for _, at := range k.attempts {
		if late(at) { // it may have no window
			continue
		}
		trial, _ := k.Trial(at.Trial)
		w := windowOf(t, k.records(t, at.TrialKey), trial.Receiver)
		s := captures[at.TrialKey].look(t, trial, at.Attempt, k.Info().Plan, wallOf(w.OpenBootNs),
			wallOf(w.CloseBootNs))
		t.Logf("trial %d: frames in the window %v", at.Trial, s.classes)
		for _, f := range s.strangers {
			t.Errorf("trial %d: in the window: %s", at.Trial, f)
		}
		if s.delivered == 0 {
			t.Errorf("trial %d: nothing was measured", at.Trial)
		}
	}
}
