package papers

import (
	_ "embed" // ns-2's figures
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// What ns-2 gives of P2's chain: a test drives it again (testdata/chain.tcl).
//
//go:embed data/p2_ns2.csv
var p2NS2CSV string

// Simulated is P2's chain in ns-2 under one choice of what the paper leaves open, beside
// the paper.
type Simulated struct {
	RateMbps, SpacingM, SenseM float64
	Moves                      string // stand, out and metres, or home: see testdata/chain.tcl
	Cells                      []SimulatedCell
}

// SimulatedCell is one connection of it.
type SimulatedCell struct {
	Routing, Variant string
	ThroughputKbitS  float64
	DelayMs          float64
	FirstArrivalS    float64 // FTP starts at 1 s
	// what the paper prints of a chain that stands or moves like this one
	PublishedKbitS, PublishedMs Cell
}

// Motion is the paper's word for it.
func (s Simulated) Motion() string {
	if s.Moves == "stand" {
		return "static"
	}
	return "mobile"
}

// SimulatedChain is what ns-2 gives of P2's chain, choice by choice.
func (p Published) SimulatedChain() ([]Simulated, error) {
	lines, err := csv.NewReader(strings.NewReader(p2NS2CSV)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read p2_ns2.csv: %w", err)
	}
	var out []Simulated
	for i, l := range lines[1:] {
		var v [6]float64
		for k, column := range []int{0, 1, 2, 6, 7, 8} {
			if v[k], err = strconv.ParseFloat(l[column], 64); err != nil {
				return nil, fmt.Errorf("read p2_ns2.csv, line %d: %w", i+2, err)
			}
		}
		s := Simulated{RateMbps: v[0], SpacingM: v[1], SenseM: v[2], Moves: l[3]}
		c := SimulatedCell{Routing: l[4], Variant: l[5], ThroughputKbitS: v[3], DelayMs: v[4], FirstArrivalS: v[5]}
		for _, metric := range []struct {
			name string
			into *Cell
		}{{ThroughputPerConnection, &c.PublishedKbitS}, {metrics["delay"], &c.PublishedMs}} {
			k := slices.IndexFunc(p.Cells, func(printed Cell) bool {
				return printed.Scenario == "chain" && printed.Metric == metric.name && printed.Routing == c.Routing &&
					printed.Motion == s.Motion() && printed.Variant == c.Variant
			})
			if k < 0 {
				return nil, fmt.Errorf("read p2_ns2.csv, line %d: the paper has no such cell", i+2)
			}
			*metric.into = p.Cells[k]
		}
		if n := len(out); n == 0 || out[n-1].RateMbps != s.RateMbps || out[n-1].SpacingM != s.SpacingM ||
			out[n-1].SenseM != s.SenseM || out[n-1].Moves != s.Moves {
			out = append(out, s)
		}
		last := &out[len(out)-1]
		last.Cells = append(last.Cells, c)
	}
	return out, nil
}

// Ratio is ns-2's throughput ÷ the paper's.
func (c SimulatedCell) Ratio() float64 { return c.ThroughputKbitS / c.PublishedKbitS.Value }

// DelayRatio is ns-2's delay ÷ the paper's.
func (c SimulatedCell) DelayRatio() float64 { return c.DelayMs / c.PublishedMs.Value }

// Off is how far a choice is from the paper: the mean over its cells' throughputs and
// delays of |ln ratio|.
func (s Simulated) Off() float64 {
	sum := 0.0
	for _, c := range s.Cells {
		sum += math.Abs(math.Log(c.Ratio())) + math.Abs(math.Log(c.DelayRatio()))
	}
	return sum / float64(2*len(s.Cells))
}
