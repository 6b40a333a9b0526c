package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Forwarded holds the run's cells to acceptance.hops_min: in some accepted trial
// of each, a measured flow's way had so many hops. A cell in which every way was
// shorter has compared routing protocols that had nothing to forward.
//
// It is a rule on cells and not on trials: among drawn pairs some are neighbours,
// and to reject those would choose among results.
func (r *Runner) Forwarded() error {
	a := r.Archive
	cells := map[string]*forwardingCell{}
	for _, v := range a.Decisions() {
		t, ok := a.Trial(v.Trial)
		if !ok || t.Acceptance.HopsMin == nil || !archive.Counts(t, &v, a.Stopped()) {
			continue
		}
		key := cellOf(t)
		if cells[key] == nil {
			cells[key] = &forwardingCell{wanted: *t.Acceptance.HopsMin}
		}
		c := cells[key]
		if c.hops >= c.wanted {
			continue
		}
		records, err := a.All(v.Trial, v.Attempt)
		if err != nil {
			return fmt.Errorf("look for ways of trial %d attempt %d: %w", v.Trial, v.Attempt, err)
		}
		c.hops = max(c.hops, longestWay(a.Info().Plan, t, records))
	}
	return shortCells(a.Info().Run, cells)
}

type forwardingCell struct{ hops, wanted int }

// cellOf names a trial's cell: "routing=dsr variant=tahoe".
func cellOf(t wire.Trial) string {
	var words []string
	for _, f := range slices.Sorted(maps.Keys(t.Factors)) {
		words = append(words, f+"="+t.Factors[f])
	}
	return strings.Join(words, " ")
}

// longestWay is the most hops that a way of a measured flow had in the window; 0
// when none was seen.
func longestWay(p wire.RunPlan, t wire.Trial, records []wire.Record) int {
	most := 0
	for _, f := range t.Traffic {
		if f.Background {
			continue
		}
		of := t
		of.Traffic = []wire.Flow{f}
		m := topology.Read(p, of, records)
		if m == nil {
			continue
		}
		for _, way := range m.PathsInWindow() {
			if way.Whole {
				most = max(most, way.Hops())
			}
		}
	}
	return most
}

func shortCells(run string, cells map[string]*forwardingCell) error {
	var faults []string
	for name, c := range cells {
		if c.hops < c.wanted {
			faults = append(faults, fmt.Sprintf("%s: the longest way of a measured flow had %d hops, "+
				"acceptance.hops_min asks for %d", name, c.hops, c.wanted))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	slices.Sort(faults)
	return fmt.Errorf("run %s: routing did not forward in %d of %d cells, whose results compare nothing; put the "+
		"ends farther apart, or leave hops_min out:\n  %s",
		run, len(faults), len(cells), strings.Join(faults, "\n  "))
}
