package cmd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/live"
	"fieldmesh.dev/fieldmesh/internal/flags"
)

// LiveCommand is `fieldmesh live RUN`.
func LiveCommand() *cobra.Command {
	var listen string
	c := ofRun(&cobra.Command{Use: "live RUN"}, func(c *cobra.Command, a *archive.Archive) error {
		if err := flags.Address("listen", listen, "127.0.0.1:7480"); err != nil {
			return misuse{err}
		}
		token, err := live.Token(listen, filepath.Dir(a.Dir()))
		if err != nil {
			slog.Warn(err.Error())
		}
		l, err := net.Listen("tcp", listen)
		if errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("--listen %s: this machine does not have that address; `ip address` lists those that "+
				"it has", listen)
		}
		if err != nil {
			return fmt.Errorf("serve the live page: %w; --listen names another address", err)
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
