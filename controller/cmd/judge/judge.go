// Package judge says what is wrong with a campaign before anything is driven, and what to be warned of.
package judge

import (
	"errors"
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/show"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/controller/preflight"
)

// Plan counts the trials of a campaign that has no fault by itself, and returns
// what to be warned of, each with its place.
func Plan(c *plan.Campaign) (trials int, warnings []string, err error) {
	all, err := c.Schedule()
	if err != nil {
		return 0, nil, err
	}
	if c.Scale == nil {
		if err := scales(c); err != nil {
			return 0, nil, err
		}
	}
	// What the file names, too: movements have faults of their own.
	if err := scene.Check(c); err != nil {
		return 0, nil, err
	}
	if err := preflight.Valid(c); err != nil {
		return 0, nil, tree.Problems{{File: c.Path, Line: 1, Column: 1,
			Message: fmt.Sprintf("no run drives it: %v", err)}}
	}
	for _, w := range slices.Concat(c.Warnings, c.Room(func(int) bool { return true })) {
		w.Message = "warning: " + w.Message
		warnings = append(warnings, w.Error())
	}
	if c.NeedsSite() {
		warnings = append(warnings, fmt.Sprintf("%s: warning: it can be rehearsed, but not driven on a road: %v",
			c.Path, preflight.ErrNoSite))
	}
	if err := preflight.Swapped(c); err != nil {
		warnings = append(warnings, fmt.Sprintf("%s: warning: it can be rehearsed, but not driven on a road: %v; give "+
			"course.site_lat_deg and course.site_lon_deg", c.Path, err))
	}
	for _, w := range show.Estimable(c, all).Warnings {
		warnings = append(warnings, fmt.Sprintf("%s: warning: %s", c.Path, w))
	}
	return len(all), warnings, nil
}

// scales holds every scale that a campaign declares to the format, which one finds out of otherwise who drives it.
func scales(c *plan.Campaign) error {
	var out tree.Problems
	for _, scale := range c.Scales {
		_, err := plan.ParseAt(c.Path, c.Raw, scale)
		var problems tree.Problems
		errors.As(err, &problems)
		for _, p := range problems {
			p.Message = "at scale " + scale + ": " + p.Message
			out = append(out, p)
		}
	}
	if len(out) > 0 {
		return out
	}
	return nil
}
