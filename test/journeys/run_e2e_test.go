//go:build e2e

package journeys

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The shipped stationary campaign on two nodes and a cable, with control on a link
// of its own: nothing answers at a node's control port over the cable. That link is
// cut before the GO of one trial and comes back after it; later it stays away
// so long that the nodes go on alone. Every trial is captured at its receiver.
func TestARunComesThroughWithoutItsControlLink(t *testing.T) {
	const (
		cutForOne = 3 // the link is away from before GO to after the trial
		cutFrom   = 6 // from here on it stays away,
		cutTo     = 8 // until this one, the second that the nodes did alone, is over
	)
	d := newDesk(t, "")
	captures := map[wire.TrialKey]*capture{}
	c := d.start(t, stationary(t, "without-a-link", "[2.8, 5.6, 11.1, 16.7]",
		"nodes:\n  alpha", "control: own\nnodes:\n  alpha"))
	cut, away := false, map[wire.TrialKey]bool{}
	c.steps = func(step string, k wire.TrialKey) {
		switch step {
		case "armed":
			t.Logf("trial %d attempt %d: armed, %.1f m/s, %s receives", k.Trial, k.Attempt, *c.trials[k.Trial].SpeedMps,
				c.trials[k.Trial].Receiver)
			if k.Trial == cutForOne || k.Trial == cutFrom && k.Attempt == 1 {
				d.controlLink(t, false)
				cut = true
			}
			away[k] = cut
			d.knock(t, c.trials[k.Trial].Receiver)
			captures[k] = startCapture(t, d.nodes[c.trials[k.Trial].Receiver].Name, "wlan0", false)
		case "kept":
			captures[k].stop(t)
			if k.Trial == cutForOne || k.Trial == cutTo {
				d.controlLink(t, true)
				cut = false
			}
		}
	}
	k := c.finish(t, 10*time.Minute)
	d.restored(t)
	k.nothingLost(t, deskNodes...)
	for _, at := range k.attempts {
		compareWithCapture(t, k, at, captures[at.TrialKey])
		if at.Verdict.Outcome != wire.Accepted { // it may have no window
			continue
		}
		want := map[bool]string{true: "mesh", false: "control"}[away[at.TrialKey]]
		if w := windowOf(t, k.records(t, at.TrialKey), "bravo"); w.GoPath != want {
			t.Errorf("trial %d: GO reached bravo by %q, want %q", at.Trial, w.GoPath, want)
		}
		opensWithinGO(t, k.records(t, at.TrialKey))
	}
	d.stopAgents(t)
	d.restored(t)
}

// opensWithinGO: both windows opened as near to each other, by the one kernel's clock, as the
// record of GO says.
func opensWithinGO(t *testing.T, records []wire.Record) {
	t.Helper()
	alpha, bravo := windowOf(t, records, "alpha"), windowOf(t, records, "bravo")
	bound := cmp.Or(alpha.GoUncertaintyUs, bravo.GoUncertaintyUs) // the initiator's
	if bound == nil {
		t.Error("how uncertain GO was is not recorded")
		return
	}
	const roundedUs = 2
	apartUs := math.Abs(float64(alpha.OpenBootNs-bravo.OpenBootNs)) / 1e3
	t.Logf("the windows opened %.0f µs apart; by GO within %.0f", apartUs, *bound)
	if apartUs > *bound+roundedUs {
		t.Errorf("the windows opened %.0f µs apart, by GO within %.0f", apartUs, *bound)
	}
}

// The controller loses the roadside's node only, as a laptop in the car does. It leaves the car's node
// alone as well, so that both go on.
func TestARunGoesOnWhileOneNodeIsOutOfReach(t *testing.T) {
	const (
		cutFrom = 2 // from here on bravo stays away,
		cutTo   = 4 // until this one, the second that the nodes did alone, is over
	)
	d := newDesk(t, "")
	c := d.start(t, stationary(t, "without-one-link", "[2.8, 5.6, 11.1]", "nodes:\n  alpha",
		"control: own\nnodes:\n  alpha"))
	cut, away := false, map[wire.TrialKey]bool{}
	c.steps = func(step string, k wire.TrialKey) {
		switch {
		case step == "armed":
			if k.Trial == cutFrom && k.Attempt == 1 {
				d.controlLink(t, false, "bravo")
				cut = true
			}
			away[k] = cut
		case step == "kept" && k.Trial == cutTo:
			d.controlLink(t, true, "bravo")
			cut = false
		}
	}
	k := c.finish(t, 10*time.Minute)
	k.nothingLost(t, deskNodes...)
	alone, overMesh := map[int]bool{}, 0
	for _, at := range k.attempts {
		if late(at) && away[at.TrialKey] { // the nodes did it alone, too
			alone[at.Trial] = true
		}
		if !accepted(at) || !away[at.TrialKey] {
			continue
		}
		alone[at.Trial] = true
		overMesh++
		if w := windowOf(t, k.records(t, at.TrialKey), "bravo"); w.GoPath != "mesh" {
			t.Errorf("trial %d: GO reached bravo by %q, want the mesh", at.Trial, w.GoPath)
		}
	}
	if len(alone) < cutTo-cutFrom+1 || overMesh == 0 {
		t.Errorf("%d trials were done while bravo was out of reach, want %d; %d were accepted", len(alone),
			cutTo-cutFrom+1, overMesh)
	}
	d.stopAgents(t)
	d.restored(t)
}

// knock tries the control port of a node's peer over the interface under test.
func (d *desk) knock(t *testing.T, from string) {
	t.Helper()
	to := fmt.Sprintf("10.77.0.%d:7443", 2-slices.Index(deskNodes, from))
	d.nodes[from].Do(t, func() error {
		c, err := net.DialTimeout("tcp4", to, 300*time.Millisecond)
		if err == nil {
			_ = c.Close()
		}
		var e net.Error
		if !errors.As(err, &e) || !e.Timeout() {
			t.Errorf("a knock at %s by %s: %v, want no answer", to, from, err)
		}
		return nil
	})
}

// tolerance is how far the reported megabytes may be from the captured ones.
const tolerance = 0.01

// compareWithCapture holds an attempt's reported megabytes against what an
// independent capture at the receiver shows, and looks for strangers.
func compareWithCapture(t *testing.T, k kept, at archive.Attempt, c *capture) {
	t.Helper()
	key := at.TrialKey
	if v := at.Verdict; v.Outcome != wire.Accepted {
		t.Logf("trial %d attempt %d: %s (%s): nothing to compare", key.Trial, key.Attempt, v.Outcome, v.Reason)
		return
	}
	trial, _ := k.Trial(key.Trial)
	w := windowOf(t, k.records(t, key), trial.Receiver)
	s := c.look(t, trial, key.Attempt, k.Info().Plan, wallOf(w.OpenBootNs), wallOf(w.CloseBootNs))
	for _, f := range s.strangers {
		t.Errorf("trial %d attempt %d: in the window, on the interface under test: %s", key.Trial, key.Attempt, f)
	}
	reported, ok := k.metric(t, key, "transferred_mb")
	captured := float64(s.delivered) / 1e6
	t.Logf("trial %d attempt %d, section %s at %s m/s: reported %.4f MB, captured %.4f MB, off by %+.3f %%; last "+
		"data after %v; frames %v",
		key.Trial, key.Attempt, trial.Factors["section"], trial.Factors["speed"], reported, captured,
		100*(reported/captured-1), s.lastData, s.classes)
	if !ok || captured == 0 || math.Abs(reported/captured-1) > tolerance {
		t.Errorf("trial %d attempt %d: reported %.4f MB (measured: %v), captured %.4f MB", key.Trial, key.Attempt,
			reported, ok, captured)
	}
}
