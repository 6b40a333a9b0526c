package papers

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The comment in variants-grid.yaml says so: in ns-2 the standing grid's delays, and its throughput over
// AODV, are nearer to the paper's with 1 Mbit/s than with 2 or 11.
func TestTheGridsFiguresAreNearestAtOneMbps(t *testing.T) {
	published := linesOf(t, "data/p2_variants_routing.csv")
	printed := func(metric, routing, variant string) float64 {
		for _, r := range published {
			if r[0] == "grid" && r[1] == metric && strings.EqualFold(r[3], routing) && r[4] == "static" &&
				strings.EqualFold(r[5], variant) {
				return parsed(t, r[6])
			}
		}
		t.Fatalf("the paper has no %s of %s over %s", metric, variant, routing)
		return 0
	}
	off := map[[3]string]map[string]float64{}
	for _, r := range linesOf(t, "data/p2_ns2_grid.csv")[1:] {
		for metric, column := range map[string]int{"throughput": 5, "delay": 6} {
			if metric == "throughput" && r[3] != "aodv" {
				continue
			}
			cell := [3]string{metric, r[3], r[4]}
			if off[cell] == nil {
				off[cell] = map[string]float64{}
			}
			off[cell][r[0]] = math.Abs(math.Log(parsed(t, r[column]) / printed(metric, r[3], r[4])))
		}
	}
	if len(off) != 6 {
		t.Errorf("%d cells were compared, want the delays of four and the throughput of two", len(off))
	}
	for cell, by := range off {
		if len(by) != 3 || by["1"] >= by["2"] || by["2"] >= by["11"] {
			t.Errorf("%v: off the paper by %v (logarithms) with 1, 2 and 11 Mbit/s", cell, by)
		}
	}
}

func linesOf(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func parsed(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
