package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/papers"
)

// simulatedView is what ns-2 gives of P2's chain, beside the paper.
type simulatedView struct {
	Choices, Cells [][]string
	Said           []string
}

// moved says where C and D go.
func moved(s papers.Simulated) string {
	if m, out := strings.CutPrefix(s.Moves, "out"); out {
		return "go " + m + " m and set off back at 250 s"
	}
	if s.Motion() == "static" {
		return "stand"
	}
	return "go 1000 and 750 m and are back at 250 s"
}

func simulatedChain() (*simulatedView, error) {
	published, err := papers.Read()
	if err != nil {
		return nil, err
	}
	choices, err := published.SimulatedChain()
	if err != nil {
		return nil, err
	}
	v := &simulatedView{}
	for _, s := range choices {
		v.Choices = append(v.Choices, append(choiceOf(s), moved(s), ratios(s, papers.SimulatedCell.Ratio),
			ratios(s, papers.SimulatedCell.DelayRatio)))
	}
	stands, moves := nearest(choices, "static"), nearest(choices, "mobile")
	v.Said = said(choices, stands, moves)
	for _, s := range []papers.Simulated{stands, moves} {
		for _, c := range s.Cells {
			v.Cells = append(v.Cells, []string{moved(s), c.Routing + ", " + c.Variant,
				fmt.Sprintf("%.1f", c.ThroughputKbitS), c.PublishedKbitS.Printed, fmt.Sprintf("%.1f", c.DelayMs),
				c.PublishedMs.Printed})
		}
	}
	return v, nil
}

func choiceOf(s papers.Simulated) []string {
	return []string{fmt.Sprintf("%g Mbit/s", s.RateMbps), fmt.Sprintf("%g m", s.SpacingM),
		fmt.Sprintf("%g m", s.SenseM)}
}

// nearest is the choice for a motion whose figures are the paper's most nearly.
func nearest(choices []papers.Simulated, motion string) papers.Simulated {
	of := slices.DeleteFunc(slices.Clone(choices), func(s papers.Simulated) bool { return s.Motion() != motion })
	return slices.MinFunc(of, func(a, b papers.Simulated) int {
		if a.Off() < b.Off() {
			return -1
		}
		return 1
	})
}

func ratios(s papers.Simulated, of func(papers.SimulatedCell) float64) string {
	low, high := math.Inf(1), 0.0
	for _, c := range s.Cells {
		low, high = min(low, of(c)), max(high, of(c))
	}
	return fmt.Sprintf("%.2f to %.2f", low, high)
}

// said says what the choices tell, with their numbers.
func said(choices []papers.Simulated, stands, moves papers.Simulated) []string {
	others, same, worstDelay, first := 0, 0, 0.0, 0.0
	alike := true
	for i, c := range stands.Cells {
		if c.Routing == "dsdv" {
			first = max(first, c.FirstArrivalS)
		} else {
			if others++; fmt.Sprintf("%.1f", c.ThroughputKbitS) == c.PublishedKbitS.Printed {
				same++
			}
			worstDelay = max(worstDelay, math.Abs(c.DelayRatio()-1))
		}
		if c.Variant == "reno" || c.Variant == "newreno" {
			before := stands.Cells[i-1]
			alike = alike && c.ThroughputKbitS == before.ThroughputKbitS && c.DelayMs == before.DelayMs
		}
	}
	at := choiceOf(stands)
	out := []string{fmt.Sprintf("Of the chain that stands, nearest to the paper is %s, %s apart, sensed to %s: all "+
		"nodes sense each other, and one sends at a time. Over DSR and AODV %d of its %d throughputs are the "+
		"paper's to the last digit, and its delays within %.1f %% of the paper's.", at[0], at[1], at[2], same, others,
		100*worstDelay)}
	for _, s := range choices {
		if s.Moves == stands.Moves && s.SpacingM == stands.SpacingM && s.SenseM == stands.SenseM &&
			s.RateMbps != stands.RateMbps {
			out = append(out, fmt.Sprintf("With %g Mbit/s and all else the same, ns-2's throughputs are %s times the "+
				"paper's.", s.RateMbps, ratios(s, papers.SimulatedCell.Ratio)))
		}
	}
	out = append(out, "So the 11 Mbit/s of the paper's text were not on its air. ns-2.34 sends data with 1 Mbit/s "+
		"unless a script sets `dataRate_` of `Mac/802_11` (tcl/lan/ns-mac.tcl); `bandwidth_` of "+
		"`Phy/WirelessPhy` is read by nothing (mac/wireless-phy.cc). A run at 11 Mbit/s carries several times the "+
		"paper's throughput for that reason.")
	if alike {
		out = append(out, "On the nearest chain Tahoe, Reno and NewReno are the same to the digit, as in the paper.")
	}
	return append(out, fmt.Sprintf("Over DSDV up to %.0f s pass before the first segment arrives, for DSDV must find "+
		"its ways first. So its throughput hangs on when FTP begins, which the paper does not say.", first),
		fmt.Sprintf("Of the chain that moves, nearest is: C and D %s. Its throughputs are %s of the paper's. "+
			"Retransmission timers (`maxrto_` 60) wait for up to a minute when the chain is whole again, so that a "+
			"small change of the ways changes single cells much.", moved(moves),
			ratios(moves, papers.SimulatedCell.Ratio)))
}
