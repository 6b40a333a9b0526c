package cmd

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/topology"
)

type topologyFlags struct {
	output         string
	trial, attempt int
	atS            float64
	paths          bool
}

// TopologyCommand is `fieldmesh topology RUN`.
func TopologyCommand() *cobra.Command {
	var f topologyFlags
	c := ofRun(&cobra.Command{Use: "topology RUN"}, f.run)
	c.Flags().IntVar(&f.trial, "trial", 1, "number of the trial, by fieldmesh plan show")
	completes(c, "trial", completeTrials)
	c.Flags().IntVar(&f.attempt, "attempt", 0, "attempt at the trial (default: the last)")
	c.Flags().Float64Var(&f.atS, "at", 0, "seconds since the window opened")
	c.Flags().BoolVar(&f.paths, "paths", false, "print the flow's way over time")
	c.Flags().StringVarP(&f.output, "output", "o", "", "write to this file")
	return c
}

func (f *topologyFlags) run(c *cobra.Command, a *archive.Archive) error {
	mesh, err := f.read(a)
	if err != nil {
		return err
	}
	text := mesh.SVG(fmt.Sprintf("%s, trial %d", a.Info().Run, f.trial), f.atS)
	if f.paths {
		text = mesh.PathText()
	}
	return writeText(c.OutOrStdout(), f.output, text)
}

func (f *topologyFlags) read(a *archive.Archive) (*topology.Mesh, error) {
	t, ok := a.Trial(f.trial)
	if !ok {
		return nil, misused("--trial %d: the run has 1 to %d", f.trial, len(a.Info().Plan.Trials))
	}
	entries, err := a.Trials()
	if err != nil {
		return nil, err
	}
	at, last := f.attempt, 0
	for _, e := range entries {
		if e.Trial == f.trial {
			last = max(last, e.Attempt)
		}
	}
	if last == 0 {
		return nil, fmt.Errorf("trial %d has not been driven", f.trial)
	}
	if at > last {
		return nil, misused("--attempt %d: trial %d has 1 to %d", at, f.trial, last)
	}
	at = cmp.Or(at, last)
	records, err := a.All(f.trial, at)
	if err != nil {
		return nil, err
	}
	mesh := topology.Read(a.Info().Plan, t, records)
	if mesh == nil || !mesh.HasDaemon() {
		return nil, fmt.Errorf("trial %d attempt %d has no records of a routing daemon: its routing is %q", f.trial, at,
			t.Routing.Protocol)
	}
	return mesh, nil
}
