package predict

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/cmd/document"
	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
)

func of(t *testing.T, path string, seeds int) *Prediction {
	t.Helper()
	return ofCampaign(t, read(t, path), seeds)
}

func read(t *testing.T, path string) *plan.Campaign {
	t.Helper()
	c, err := scene.Read(path, plan.FullScale)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ofCampaign(t *testing.T, c *plan.Campaign, seeds int) *Prediction {
	t.Helper()
	p, err := Of(context.Background(), c, seeds)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A cell is a motion and a speed on a radio, whoever of the units drives, whichever way, and
// whatever TCP does.
func TestCellsAreWhatTheRadioSees(t *testing.T) {
	powered := of(t, "../../../campaigns/velocity-powered.yaml", 1)
	if len(powered.Cells) != 12 || len(powered.Distances) != 1 {
		t.Fatalf("%d cells, %d radios; want 12 and 1", len(powered.Cells), len(powered.Distances))
	}
	for i, c := range powered.Cells {
		if c.Motion != "segment" || c.Trials != 20 || c.Factors["section"] != []string{"A", "B"}[i%2] ||
			fmt.Sprint(*c.SpeedMps) != c.Factors["speed"] || len(c.Factors) != 2 || c.WithinReach.Low != nil {
			t.Errorf("cell %d: %+v", i, c)
		}
	}
	if o := powered.Open; len(o) != 1 || o[0].Trials != 16 || o[0].First != 1 {
		t.Errorf("not predicted: %+v", o)
	}
	standing := of(t, "testdata/standing.yaml", 3)
	if len(standing.Cells) != 2 || len(standing.Distances) != 2 {
		t.Fatalf("%+v", standing)
	}
	for _, c := range standing.Cells {
		if c.NearestM != 50 || c.FarthestM != 50 || c.Trials != 4 || len(c.Factors) != 1 || c.Factors["power"] == "" ||
			c.SpeedMps != nil || c.WithinReach.Value != 1 {
			t.Errorf("%+v", c)
		}
	}
	defaults := map[string]any{"field.propagation": "two_ray_ground", "field.noise_figure_db": 10.0}
	if !maps.Equal(standing.Defaults, defaults) || !slices.Equal(standing.Without, []string{"shadowing", "fading"}) {
		t.Errorf("%+v without %v", standing.Defaults, standing.Without)
	}
}

// A window that ends before its segment does covers the near end of the road outbound, and the far end inbound.
func TestWaysOverPartOfASegmentHaveCellsOfTheirOwn(t *testing.T) {
	for path, trials := range map[string]int{"testdata/stretch.yaml": 1, "testdata/stretch-factor.yaml": 2} {
		var got []string
		for _, c := range of(t, path, 1).Cells {
			got = append(got, fmt.Sprintf("%s %.0f..%.0f m", c.name(), c.NearestM, c.FarthestM))
			if c.Trials != trials {
				t.Errorf("%s, %s: %d trials, want %d", path, c.name(), c.Trials, trials)
			}
		}
		if !slices.Equal(got, []string{"direction=inbound 111..120 m", "direction=outbound 20..29 m"}) {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// In a disc all that counts is who is within it.
func TestADiscHasNoPowers(t *testing.T) {
	c := read(t, "testdata/standing.yaml")
	c.Field.Propagation, c.Field.RangeM, c.Field.AntennaHeightM = "disc", new(40.0), nil
	p := ofCampaign(t, c, 1)
	if len(p.Defaults) != 0 || p.Cells[0].GoodputMbps.Value != 0 || p.Cells[0].WithinReach.Value != 0 {
		t.Errorf("50 m apart in a disc of 40 m: defaults %v, %+v", p.Defaults, p.Cells[0])
	}
}

// A loss without heights takes none for its default.
func TestALossWithoutHeightsHasNone(t *testing.T) {
	c := read(t, "testdata/standing.yaml")
	c.Field.Propagation, c.Field.AntennaHeightM = "log_distance", nil
	d := ofCampaign(t, c, 1).Defaults
	if _, is := d["field.antenna_height_m"]; is || d["field.path_loss_exponent"] == nil {
		t.Errorf("defaults: %v", d)
	}
}

// Units that differ are told apart: more comes from the one that is not weak.
func TestUnitsThatDifferHaveCellsOfTheirOwn(t *testing.T) {
	c := read(t, "../../../campaigns/velocity-powered.yaml")
	c.Field.UnitPowerOffsetDb = map[string]float64{"laptop-1": -20}
	p := ofCampaign(t, c, 1)
	sent := map[string]float64{}
	for _, r := range p.Distances {
		for _, at := range r.Points {
			if at.DistanceM == 50 {
				sent[r.Sender] = at.GoodputMbps.Value
			}
		}
	}
	if len(p.Cells) != 24 || len(p.Distances) != 2 || !(sent["alpha"] < sent["bravo"]) {
		t.Errorf("%d cells; at 50 m %v", len(p.Cells), sent)
	}
}

// An interval ends where the possible does.
func TestIntervalsAreOfWhatIsPossible(t *testing.T) {
	windows := []field.Saturation{{WithinReach: 0.1}, {WithinReach: 0.9}, {WithinReach: 0.8}}
	within := func(w field.Saturation) float64 { return w.WithinReach }
	if e := expected(windows, 1, within); *e.Low != 0 || *e.High != 1 || math.Abs(e.Value-0.6) > 1e-9 {
		t.Errorf("%g from %g to %g", e.Value, *e.Low, *e.High)
	}
	// By hand: t of 2 degrees of freedom is 4.303, the standard deviation √0.19.
	if e := expected(windows, 5, within); math.Abs(*e.High-(0.6+4.303*math.Sqrt(0.19/3))) > 1e-3 {
		t.Errorf("to %g", *e.High)
	}
	if e := expected(windows[:2], 1, within); e.Low != nil || e.High != nil {
		t.Errorf("of two: %+v", e)
	}
}

// More power reaches farther; either table ends where nothing comes over, and nowhere before.
func TestDistancesEndBeyondReach(t *testing.T) {
	var ends []float64
	for _, r := range of(t, "testdata/standing.yaml", 3).Distances {
		for i, p := range r.Points {
			if last := i == len(r.Points)-1; last != (p.GoodputMbps.Value == 0) {
				t.Errorf("%g dBm: %+v", *r.Radio.TxPowerDbm, r.Points)
			}
			if i > 0 && p.GoodputMbps.Value > 1.02*r.Points[i-1].GoodputMbps.Value {
				t.Errorf("%g dBm: more at %g m than nearer: %+v", *r.Radio.TxPowerDbm, p.DistanceM, r.Points)
			}
		}
		ends = append(ends, r.Points[len(r.Points)-1].DistanceM)
	}
	if ends[0] >= ends[1] {
		t.Errorf("5 dBm reach to %g m, 15 dBm to %g m", ends[0], ends[1])
	}
}

// The same file and seeds give the same bytes; the first draw is the campaign's own.
func TestSameSeedsSamePrediction(t *testing.T) {
	var out [2]bytes.Buffer
	for i := range out {
		p := of(t, "testdata/standing.yaml", 4)
		if !slices.Equal(p.Seeds, []uint64{3, 4, 5, 6}) {
			t.Errorf("seeds %v", p.Seeds)
		}
		if err := document.Write(&out[i], p); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) {
		t.Errorf("%s\n%s", &out[0], &out[1])
	}
}

// A program that reads the document finds what it found.
func TestKeysOfTheDocument(t *testing.T) {
	text, err := json.Marshal(of(t, "testdata/driven.yaml", 5))
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	delete(read, "estimate") // drive's, and
	delete(read, "estimable")
	found := map[string]bool{}
	keys("", read, found)
	want := []string{"by_distance", "by_distance.points", "by_distance.points.distance_m",
		"by_distance.points.goodput_mbps", "by_distance.points.goodput_mbps.high",
		"by_distance.points.goodput_mbps.low", "by_distance.points.goodput_mbps.value", "by_distance.radio",
		"by_distance.receiver", "by_distance.sender", "by_distance.trial", "campaign", "campaign_sha256", "cells",
		"cells.factors", "cells.farthest_m", "cells.goodput_mbps", "cells.goodput_mbps.high",
		"cells.goodput_mbps.low", "cells.goodput_mbps.value", "cells.motion", "cells.nearest_m", "cells.speed_mps",
		"cells.trials", "cells.window_s", "cells.within_reach_share", "cells.within_reach_share.high",
		"cells.within_reach_share.low", "cells.within_reach_share.value", "confidence",
		"datagram_bytes", "defaults", "not_predicted", "not_predicted.first_trial", "not_predicted.trials",
		"not_predicted.why", "seeds", "what", "without"}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("keys %s", strings.Join(got, "\n"))
	}
}

// keys finds those of a document, but the names in its maps.
func keys(at string, v any, found map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			keys(at, one, found)
		}
	case map[string]any:
		for name, one := range v {
			found[strings.TrimPrefix(at+"."+name, ".")] = true
			if !slices.Contains([]string{"factors", "defaults", "radio"}, name) {
				keys(at+"."+name, one, found)
			}
		}
	}
}
