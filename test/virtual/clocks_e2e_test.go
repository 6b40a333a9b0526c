//go:build e2e

package virtual

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/compare"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// shippedVelocity is campaigns/velocity.yaml with so many repetitions of its twelve
// cells.
func shippedVelocity(t *testing.T, repetitions string) []byte {
	t.Helper()
	text, err := os.ReadFile(testnet.Campaign(t, "../../campaigns/velocity.yaml", "velocity", "repetitions: 2",
		"repetitions: "+repetitions))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestE2EVelocityIsAcceptedWhole drives the whole campaign beside busy processors, as
// any user and in one kernel, whose disk has no room for the records of all its trials:
// each is accepted at the first attempt.
func TestE2EVelocityIsAcceptedWhole(t *testing.T) {
	d := newDesk(t, "[16.7]")
	d.write(t, "velocity.yaml", shippedVelocity(t, "3"))
	burners(t, 4)
	if out, err := d.rehearse("velocity.yaml", "--clock", "virtual", "--name", "whole").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d.whole(t, "whole")
	acceptedAtOnce(t, d.read(t, "whole"), 36)
}

// acceptedAtOnce: every trial has one attempt, which was accepted.
func acceptedAtOnce(t *testing.T, a *archive.Archive, trials int) {
	t.Helper()
	decisions := a.Decisions()
	for _, v := range decisions {
		if v.Outcome != wire.Accepted {
			t.Errorf("run %s, trial %d attempt %d: %s (%s)", a.Info().Run, v.Trial, v.Attempt, v.Outcome, v.Reason)
		}
	}
	if len(decisions) != trials || len(a.Info().Plan.Trials) != trials {
		t.Errorf("run %s has %d attempts at %d trials, want %d of each", a.Info().Run, len(decisions),
			len(a.Info().Plan.Trials), trials)
	}
}

// apartMost is how far a cell's mean may be from real time's, as a share of it.
const apartMost = 0.02

// TestE2ESoakBothClocksAgree drives the velocity campaign, with five repetitions, in
// real time and in virtual time, and compares the twelve cells: the mean throughputs
// are within 2 % of each other, and so is the whole campaign's. It says nothing on a
// machine that has anything else to do, on which real time's radio is late.
func TestE2ESoakBothClocksAgree(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "half an hour of a quiet machine")
	testnet.Need(t, "ip", "gpsd", "iperf3")
	d := newDesk(t, "[16.7]")
	d.write(t, "velocity.yaml", shippedVelocity(t, "5"))
	if out, err := d.rehearse("velocity.yaml", "--clock", "virtual", "--name", "virtual").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(filepath.Join(programs, "fieldmesh"), "rehearse", d.path("velocity.yaml"), "--clock", "real",
		"--name", "real", "--runs", d.path("runs"), "--field-dir", d.path("field"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	table, err := compare.Runs(d.read(t, "real"), d.read(t, "virtual"))
	if err != nil {
		t.Fatal(err)
	}
	var sumReal, sumVirtual float64
	cells := 0
	for _, k := range table.Differences {
		if k.Number.Name != metrics.ThroughputBps {
			continue
		}
		half, err := within(k)
		t.Logf("%s: real %.3f Mbit/s (n = %d), virtual less real %+.2f ± %.2f %%", k.Cell, k.A.Value, k.A.N,
			100**k.Apart/k.A.Value, 100*half)
		if err != nil {
			t.Errorf("%s: %v", k.Cell, err)
		}
		cells, sumReal, sumVirtual = cells+1, sumReal+k.A.Value, sumVirtual+k.B.Value
	}
	if cells != 12 {
		t.Errorf("%d cells were compared, want 12", cells)
	}
	if off := sumVirtual/sumReal - 1; math.Abs(off) > apartMost {
		t.Errorf("over all cells virtual time brings %+.2f %%, want within %g %%", 100*off, 100*apartMost)
	}
}

// within reports whether a cell's means are near enough, and the half width of their
// difference's interval, both as shares of the first.
func within(k compare.Difference) (half float64, err error) {
	if k.Apart == nil || k.HalfWide == nil {
		return math.NaN(), errors.New("it was not driven often enough by both clocks")
	}
	if math.Abs(*k.Apart) > apartMost*k.A.Value {
		err = errors.New("the means are too far apart")
	}
	return *k.HalfWide / k.A.Value, err
}
