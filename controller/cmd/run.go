package cmd

import (
	"errors"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// RunCommand is `fieldmesh run FILE --fleet fleet.yaml`.
func RunCommand() *cobra.Command {
	var flags runFlags
	var fleetFile string
	c := &cobra.Command{Use: "run FILE", Args: fileOrResume(&flags),
		RunE: func(c *cobra.Command, args []string) error {
			if flags.place != archive.PlaceRoad && flags.place != archive.PlaceBench {
				return misused("--place %q: expected %s or %s", flags.place, archive.PlaceRoad, archive.PlaceBench)
			}
			file, err := flags.findBegun(first(args))
			if err != nil {
				return err
			}
			flags.locate = func(p *wire.RunPlan) error {
				said, err := preflight.Locate(c.Context(), p, fleetFile, flags.patience)
				if said != "" && flags.shard != "" {
					return misused("--shard %s: each part would measure the car's start from another fix; give "+
						"course.site_lat_deg and course.site_lon_deg", flags.shard)
				}
				if said != "" {
					c.PrintErrln(said)
				}
				return err
			}
			s, err := openSession(flags, file, flags.place)
			if err != nil {
				return err
			}
			err = s.onFleet(c, fleetFile, flags)
			if c.Context().Err() != nil && !s.refused() && !s.complete {
				c.PrintErrf("the nodes continue with the run by themselves: `fieldmesh run --resume %s` resumes it "+
					"here, `fieldmesh nodes restore` ends it there\n", s.archive.Dir())
			}
			return errors.Join(err, s.conclude(c.OutOrStdout()), s.close())
		}}
	flags.add(c)
	c.Flags().StringVar(&fleetFile, "fleet", defaultFleet, "the fleet file")
	c.Flags().StringVar(&flags.place, "place", archive.PlaceRoad, "where the nodes are: road or bench")
	return c
}

func (s *session) onFleet(c *cobra.Command, fleetFile string, flags runFlags) error {
	lane, closeLane, err := s.lane("", fleetFile, run.Road{})
	if err != nil {
		return err
	}
	defer closeLane()
	shown := progress.New(c.ErrOrStderr(), []string{""})
	s.announce(shown, 1)
	return s.drive(c.Context(), []*run.Lane{lane}, flags, shown.Step)
}

// lane makes the clients of the plan's nodes, which the fleet file names.
func (s *session) lane(name, fleetFile string, field run.Field) (*run.Lane, func(), error) {
	fl, identity, err := loadFleet(fleetFile)
	if err != nil {
		return nil, nil, err
	}
	if err := s.archive.SignWith(identity); err != nil {
		return nil, nil, err
	}
	lane := &run.Lane{Name: name, Nodes: map[string]*fleet.Client{}, Field: field}
	closeAll := func() {
		for _, c := range lane.Nodes {
			c.Close()
		}
	}
	for _, n := range s.plan.Nodes {
		client, err := fl.Client(identity, n.Name)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		lane.Nodes[n.Name] = client
	}
	return lane, closeAll, nil
}

// fileOrResume wants a campaign file, or --resume and none.
func fileOrResume(flags *runFlags) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case flags.resume != "" && len(args) > 0:
			return misused("--resume continues with the run's own campaign; leave %q out", args[0])
		case flags.resume == "" && len(flags.retry) > 0:
			return errors.New("--retry drives a trial of a run again; name the run too, with --resume RUN")
		case flags.why != "" && len(flags.retry) == 0:
			return errors.New("--why says why trials are driven again; name them with --retry TRIAL")
		case flags.resume == "" && len(args) != 1:
			return errors.New("name one campaign file, or a run with --resume RUN")
		}
		return nil
	}
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
