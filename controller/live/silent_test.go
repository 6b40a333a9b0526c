package live

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// cameAt sets when a node's records of trial 2 came.
func cameAt(t *testing.T, dir, node string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(filepath.Join(dir, "trials/0002-a1/records", node+".ndjson"), at, at); err != nil {
		t.Fatal(err)
	}
}

// ages are by how much the nodes' newest records are older than the newest; -1: not known.
func ages(t *testing.T, c *Current) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, n := range c.Nodes {
		out[n.Name] = -1
		if n.BehindS != nil {
			out[n.Name] = *n.BehindS
		}
	}
	return out
}

// The roadside's records go on while the car's come no more: the car alone grows old, and its window ends all the same.
func TestASilentNodeGrowsOld(t *testing.T) {
	dir, whole := halfway(t)
	newest := time.Now().Add(time.Minute)
	cameAt(t, dir, "car", newest)
	cameAt(t, dir, "roadside", newest)
	c := stateIn(t, dir).Current
	if got := ages(t, c); math.Abs(got["car"]) > 0.5 || math.Abs(got["roadside"]) > 0.5 || c.PhaseOf != "car" ||
		c.QuietS != 3 {
		t.Fatalf("both are heard: %v, by %s, of %g s", got, c.PhaseOf, c.QuietS)
	}
	seenS := *c.ElapsedS - *c.Nodes[0].BehindS // what the car's own records tell
	for behindS, elapsedS := range map[float64]float64{2: seenS + 2, 40: 10} {
		cameAt(t, dir, "car", newest.Add(-time.Duration(behindS)*time.Second))
		c := stateIn(t, dir).Current
		if got := ages(t, c); got["car"] != behindS || math.Abs(got["roadside"]) > 0.5 {
			t.Errorf("the car is silent for %g s: %v", behindS, got)
		}
		if c.Phase != PhaseRunning || c.ElapsedS == nil || math.Abs(*c.ElapsedS-elapsedS) > 0.011 {
			t.Errorf("the car is silent for %g s: %s, %v s of the window are over, want %g", behindS, c.Phase,
				*c.ElapsedS, elapsedS)
		}
	}

	// It is in reach again: its file grows, by records of long ago.
	const roadside = "trials/0002-a1/records/roadside.ndjson"
	all, err := os.ReadFile(filepath.Join(whole.Dir(), roadside))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, roadside), all, 0o644); err != nil {
		t.Fatal(err)
	}
	cameAt(t, dir, "car", newest)
	cameAt(t, dir, "roadside", newest)
	c = stateIn(t, dir).Current
	const lastS = 10.3 // of the roadside's samplers
	if got := ages(t, c); math.Abs(got["car"]-(lastS-seenS)) > 0.011 || got["roadside"] != 0 || *c.ElapsedS != 10 {
		t.Errorf("the car's records came late: %v, %g s of the window are over", got, *c.ElapsedS)
	}
}

// A node of which no record came has no age, rather than none at all.
func TestANodeThatWasNeverHeardHasNoAge(t *testing.T) {
	dir, _ := halfway(t)
	if err := os.Remove(filepath.Join(dir, "trials/0002-a1/records/car.ndjson")); err != nil {
		t.Fatal(err)
	}
	if got := ages(t, stateIn(t, dir).Current); got["car"] != -1 || got["roadside"] != 0 {
		t.Errorf("%v", got)
	}
}

// What is over is not old: neither the last attempt of a run, nor one that is looked at.
func TestWhatIsOverHasNoAge(t *testing.T) {
	_, whole := halfway(t)
	cameAt(t, whole.Dir(), "car", time.Now().Add(-time.Hour))
	if got := ages(t, stateIn(t, whole.Dir()).Current); got["car"] != -1 || got["roadside"] != -1 {
		t.Errorf("the run is over: %v", got)
	}
	text, err := newShelf().attempt(context.Background(), whole.Dir(), wire.TrialKey{Trial: 1, Attempt: 1})
	if err != nil || bytes.Contains(text, []byte(`"behind_s"`)) {
		t.Errorf("an attempt that is looked at has ages: %s, %v", text, err)
	}
}

// Of many nodes each is asked more seldom.
func TestManyNodesMaySeemSilentForLonger(t *testing.T) {
	for nodes, want := range map[int]float64{2: 3, 50: 3, 200: 6} {
		if got := quietS(nodes); got != want {
			t.Errorf("%d nodes: %g s, want %g", nodes, got, want)
		}
	}
}
