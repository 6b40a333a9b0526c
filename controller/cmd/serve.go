package cmd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/serve"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
)

// ServeCommand is `fieldmesh serve`.
func ServeCommand() *cobra.Command {
	usual := fmt.Sprintf(":%d", campaigns.Port)
	var o serve.Config
	var listen string
	c := &cobra.Command{Use: "serve", Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		if o.Place != archive.PlaceRoad && o.Place != archive.PlaceBench {
			return misused("--place %q: expected %s or %s", o.Place, archive.PlaceRoad, archive.PlaceBench)
		}
		if err := flags.Address("listen", listen, usual); err != nil {
			return misuse{err}
		}
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program, which drives the runs: %w", err)
		}
		if o.Runs, err = filepath.Abs(o.Runs); err != nil {
			return fmt.Errorf("find the folder of runs: %w", err)
		}
		o.Driver = serve.Programs{Path: program}
		o.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
		s, err := serve.New(o)
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return fmt.Errorf("serve campaigns: %w; --listen names another address", err)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "campaigns of %s for the phones of experimenters, at %s\n", o.Campaigns,
			l.Addr())
		if err != nil {
			return errors.Join(err, l.Close())
		}
		return s.Serve(c.Context(), l)
	}}
	addRuns(c, &o.Runs)
	c.Flags().StringVar(&o.Fleet, "fleet", defaultFleet, "the fleet file")
	c.Flags().StringVar(&o.Campaigns, "campaigns", "campaigns", "folder of the campaign files that are offered")
	c.Flags().StringVar(&o.Place, "place", archive.PlaceRoad, "where the nodes are: road or bench")
	c.Flags().BoolVar(&o.Discovery, "discovery", true, "let phones find this server when its address has changed")
	c.Flags().StringVar(&listen, "listen", usual, "address and port to answer phones at")
	return c
}
