package preflight

import (
	"context"
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
)

// Given is what a person says that there is; 0: not said.
type Given struct {
	Seconds float64 // until the road has to be left
	RoadM   float64 // of straight road that can be driven, on both sides of the roadside node together
}

// campaign holds what is given against what the campaign as a whole needs.
// rehearsed: its nodes are in an emulated field.
func campaign(c *plan.Campaign, given Given, rehearsed bool) []Item {
	if rehearsed {
		return []Item{{Need: "time", State: Unneeded, Found: "rehearsed, it takes " + span(c.Estimate().RehearsalS)}}
	}
	e := c.Estimate()
	out := []Item{
		held("time", fmt.Sprintf("the campaign takes %s, with every trial accepted at once and %.0f s between trials",
			span(e.RoadTotalS), e.Road.TrialS),
			given.Seconds, e.RoadTotalS, span(given.Seconds), "--time", "take fewer repetitions, or come on two "+
				"days: --resume goes on"),
	}
	if e.LongestM > 0 {
		out = append(out, held("road", fmt.Sprintf("the trials take %.0f m of road, from %.0f m to %.0f m of the "+
			"roadside node's mark, without run-off", e.SpanM(), e.FromM, e.ToM),
			given.RoadM, e.SpanM(), fmt.Sprintf("%.0f m", given.RoadM), "--road-m", "find a longer road, or leave "+
				"the fastest speed out"))
	}
	if c.NeedsSite() {
		out = append(out, Item{Need: "site", State: Unmet, Found: "a gate waits for a place, and the file does not " +
			"say where the roadside node stands",
			Cure: siteKeys})
	}
	if err := Swapped(c); err != nil {
		out = append(out, Item{Need: "site", State: Unmet, Found: err.Error(), Cure: siteKeys})
	}
	if err := Drivable(c); err != nil && !errors.Is(err, ErrNoSite) {
		out = append(out, Item{Need: "campaign", State: Unmet, Found: err.Error(), Cure: "choose another campaign"})
	}
	return out
}

// held compares what there is with what is needed; only a person can say what
// there is.
func held(need, words string, have, want float64, given, flag, cure string) Item {
	switch {
	case have <= 0:
		return Item{Need: need, State: Unknown, Found: words, Cure: "check that there is as much, or pass " + flag + ""}
	case have < want:
		return Item{Need: need, State: Unmet, Found: words + "; there are " + given, Cure: cure}
	}
	return Item{Need: need, State: Met, Found: words + "; there are " + given}
}

// Fleet holds a fleet, and what is given, against all that a campaign needs. scan
// has every radio listen on the campaign's channels.
func Fleet(ctx context.Context, c *plan.Campaign, fl *fleet.Fleet, given Given, scan bool) (Report, error) {
	identity, err := fl.Identity()
	if err != nil {
		return Report{}, err
	}
	// The key authenticates GO; no node gets this plan.
	p, err := c.RunPlan("preflight", make([]byte, 32))
	if err != nil {
		return Report{}, err
	}
	nodes, rehearsed := map[string]Node{}, false
	for _, n := range p.Nodes {
		entry, ok := fl.Nodes[n.Name]
		if !ok {
			continue
		}
		client := fleet.NewClient(identity, entry)
		defer client.Close()
		nodes[n.Name], rehearsed = client, rehearsed || entry.Netns != ""
		if scan {
			nodes[n.Name] = withScan(client, p)
		}
	}
	report := Report{Campaign: c.Name}
	report.Add(campaign(c, given, rehearsed)...)
	if err := Valid(c); err != nil {
		report.Add(Item{Need: "campaign", State: Unmet, Found: "agents refuse its plan: " + err.Error(),
			Cure: "correct the campaign"})
	}
	seconds := c.Estimate().RoadTotalS
	if rehearsed {
		seconds = c.Estimate().RehearsalS
	}
	report.Add(Nodes(ctx, p, seconds, nodes)...)
	return report, nil
}
