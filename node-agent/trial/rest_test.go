package trial

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// GO ends the rest of a node whose own time has not come: one that was armed later than
// its initiator.
func TestGOEndsANodesRest(t *testing.T) {
	road := newRig(t, "road", t.TempDir(), testnet.FreePort(t))
	plan := twoNodePlan(1, testnet.FreePort(t), road.port)
	plan.Trials[0].Gate = wire.Gate{AfterS: ptr(1000.0), TimeoutS: 1200, LeadS: 0.3}
	road.start(t)
	takeLease(t, road, 60)
	if _, err := road.Load(ctx, holder, plan); err != nil {
		t.Fatal(err)
	}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	g := wire.Go{Type: "go", Run: plan.Run, Trial: 1, Attempt: 1, From: "car", Nonce: 1, StartInUs: 300_000}
	if ack := road.ask(t, plan.Key, g); !ack.Ready {
		t.Fatalf("GO is answered by %+v", ack)
	}
	await(t, "kept", func() bool { return road.kept(k) })
	beats := map[string]uint64{}
	for _, rec := range road.spool.kinds(k, "lateness") {
		l := rec.Body.(*wire.Lateness)
		beats[l.Source] = l.Events
	}
	if beats[wire.LateAgent] == 0 || beats[wire.LateSampler] == 0 {
		t.Errorf("in the window the node's beats were %v", beats)
	}
}

// fixes is a receiver that has a fix at the ticks of these numbers.
type fixes struct {
	Receiver
	at   []int
	tick int
}

func (f *fixes) Tick() wire.GPS {
	f.tick++
	if slices.Contains(f.at, f.tick-1) {
		return wire.GPS{Mode: 3, FixBootNs: new(int64(f.tick))}
	}
	return wire.GPS{Mode: 3}
}

// Each fix is recorded, however little is sampled; how the receiver does without one is
// told once a second while the node rests, and at each beat from then on.
func TestARestingNodeRecordsEachFix(t *testing.T) {
	source := &gpsSource{r: &fixes{at: []int{3, 4, 17, 33}}, restUntilNs: 3e9}
	var at []int
	withFix := 0
	for beat := range 35 {
		bodies, err := source.Sample(int64(beat) * 100e6)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bodies {
			at = append(at, beat)
			if b.(*wire.GPS).FixBootNs != nil {
				withFix++
			}
		}
	}
	if want := []int{3, 4, 14, 17, 27, 30, 31, 32, 33, 34}; !slices.Equal(at, want) || withFix != 4 {
		t.Errorf("records at beats %v, %d with a fix, want %v and 4", at, withFix, want)
	}
}
