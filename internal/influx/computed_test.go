package influx

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestComputedPoint(t *testing.T) {
	var m Measurement
	for _, m = range Computed() { // the last is the results'
		if !slices.IsSortedFunc(m.Tags, func(a, b Tag) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("tags of %s are not in the order in which the server wants them", m.Name)
		}
	}
	at := time.Unix(0, 1_790_000_000_000_000_001)
	var unknown *float64
	for name, c := range map[string]struct {
		tags   map[string]string
		fields map[string]any
		want   string
		fails  string
	}{
		"what is unknown is absent": {
			map[string]string{"run": "r", "trial": "1", "unit": ""}, map[string]any{"accepted": 1, "reason": "",
				"throughput_bps": new(0.0), "goodput_ratio": unknown},
			"fm_result,run=r,trial=1 accepted=1i,throughput_bps=0 1790000000000000001\n", "",
		},
		"names from outside": {
			map[string]string{"run": "r", "unit": `a b,c=d\`}, map[string]any{"reason": "say \"no\"\nfm_gps mode=1i"},
			`fm_result,run=r,unit=a\ b\,c\=d reason="say \"no\" fm_gps mode=1i" 1790000000000000001` + "\n", "",
		},
		"another type":  {nil, map[string]any{"accepted": new(1.0)}, "", "accepted: 1 is no integer"},
		"no number":     {nil, map[string]any{"goodput_ratio": new(math.NaN())}, "", "goodput_ratio: NaN is no float"},
		"no such field": {nil, map[string]any{"mood": "fine"}, "", `no field "mood"`},
		"no such tag":   {map[string]string{"node": "car"}, map[string]any{"accepted": 1}, "", `no tag "node"`},
		"no factor's name": {map[string]string{"factor_": "b"}, map[string]any{"accepted": 1}, "",
			`no tag "factor_"`},
		"factors of the campaign": {
			map[string]string{"run": "r", "factor_load": "heavy", "factor_hops": "3"}, map[string]any{"accepted": 1},
			"fm_result,factor_hops=3,factor_load=heavy,run=r accepted=1i 1790000000000000001\n", "",
		},
		"nothing at all": {map[string]string{"run": "r"}, map[string]any{"reason": ""}, "", "nothing is known"},
	} {
		got, err := m.AppendPoint([]byte("x"), c.tags, c.fields, at)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || string(got) != "x" {
				t.Errorf("%s: %q, %v; want %q", name, got, err, c.fails)
			}
			continue
		}
		if err != nil || string(got) != "x"+c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
