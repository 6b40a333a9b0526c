package cmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func keysTellCommand(dir *string) *cobra.Command {
	return &cobra.Command{Use: "tell", Args: flags.None, RunE: func(command *cobra.Command, _ []string) error {
		return tellApps(command.Context(), command.OutOrStdout(), *dir)
	}}
}

// tellApps tells all nodes at once, and fails when one was not told: until it
// is, it lets in an app that was revoked.
func tellApps(ctx context.Context, w io.Writer, dir string) error {
	f, identity, err := loadFleet(filepath.Join(dir, fleet.FileName))
	if err != nil {
		return err
	}
	apps := wire.Apps{Apps: []wire.App{}}
	for _, name := range slices.Sorted(maps.Keys(f.Apps)) {
		apps.Apps = append(apps.Apps, wire.App{Name: name, Pin: f.Apps[name].Pin})
	}
	failed := make([]error, len(f.Nodes))
	var asked sync.WaitGroup
	for i, name := range f.Names() {
		asked.Go(func() {
			client := fleet.NewClient(identity, f.Nodes[name])
			defer client.Close()
			_, failed[i] = client.LetIn(ctx, apps)
		})
	}
	asked.Wait()
	missed := 0
	for i, name := range f.Names() {
		said := fmt.Sprintf("lets in %d apps", len(apps.Apps))
		if failed[i] != nil {
			missed++
			said = "NOT told: " + failed[i].Error()
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", name, said); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d nodes were not told; when they are in reach: fieldmesh keys tell --dir %s", missed,
			len(f.Nodes), dir)
	}
	return nil
}
