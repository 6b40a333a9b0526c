package cmd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/live"
)

// LiveCommand is `fieldmesh live RUN`.
func LiveCommand() *cobra.Command {
	var listen string
	c := ofRun(&cobra.Command{
		Use:   "live RUN",
		Short: "Show a run while it goes, in a browser",
		Long: "Live serves one page about a run: throughput, speed with its band, signal, positions, nodes and " +
			"decisions, from the records as " +
			"they arrive in the archive. It may be started and ended at any time beside the run. By default only " +
			"this machine reaches it; " +
			"with --listen on another address a token is made, and the address that is printed carries it. Traffic " +
			"is not encrypted then: " +
			"use it in a network that you trust.",
	}, func(c *cobra.Command, a *archive.Archive) error {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return fmt.Errorf("serve the live page: %w; --listen names another address", err)
		}
		token := ""
		if !live.Loopback(listen) {
			token = live.Token()
		}
		for _, url := range live.Addresses(l.Addr(), token) {
			if _, err := fmt.Fprintf(c.OutOrStdout(), "live: %s\n", url); err != nil {
				return errors.Join(err, l.Close())
			}
		}
		return live.Serve(c.Context(), l, live.NewBoard(a.Dir(), slog.Default()), token)
	})
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:7480", "address and port to serve the page on")
	return c
}
