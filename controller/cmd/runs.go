package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/flags"
)

// shownRuns is how many runs a message names: the newest.
const shownRuns = 5

// explainRun puts what stands in the way of a run into words, with what to do.
func explainRun(runs, given string, err error) error {
	switch {
	case errors.Is(err, archive.ErrNoRun):
		if parts := partsDir(runFolder(runs, given)); isDir(parts) {
			return fmt.Errorf("%w; it is in parts yet, in %s: `fieldmesh rehearse --resume %s` resumes them", err,
				parts, given)
		}
		if file, failed := os.Stat(given); failed == nil && !file.IsDir() {
			return fmt.Errorf("%q is a file, and a run is a folder; %s", given, newestRuns(runs))
		}
		return fmt.Errorf("%w; %s", err, newestRuns(runs))
	case errors.Is(err, archive.ErrLocked):
		return fmt.Errorf("%w; wait for its end, or stop the fieldmesh that drives it", err)
	case errors.Is(err, archive.ErrExists):
		return fmt.Errorf("%w; continue it by --resume %s, or give the new run another --name", err, given)
	}
	return err
}

func isDir(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.IsDir()
}

// newestRuns names the newest runs of a folder.
func newestRuns(runs string) string {
	type known struct {
		name string
		info fs.FileInfo
	}
	var found []known
	entries, _ := os.ReadDir(runs) // a folder that cannot be read has no runs to name
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(runs, e.Name(), "run.json")); err == nil {
			found = append(found, known{e.Name(), info})
		}
	}
	if len(found) == 0 {
		return fmt.Sprintf("%q holds no run; --runs names another folder", runs)
	}
	slices.SortFunc(found, func(a, b known) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	var names []string
	for _, k := range found[:min(len(found), shownRuns)] {
		names = append(names, k.name)
	}
	return fmt.Sprintf("the newest in %q: %s", runs, strings.Join(names, ", "))
}

// addRuns adds the flag --runs.
func addRuns(c *cobra.Command, runs *string) {
	c.Flags().StringVar(runs, "runs", "runs", "folder that holds the runs")
}

// ofRun makes c a command on one run, RUN, which it opens for reading.
func ofRun(c *cobra.Command, do func(*cobra.Command, *archive.Archive) error) *cobra.Command {
	var runs string
	c.Args = flags.Exactly(1)
	c.RunE = func(c *cobra.Command, args []string) error {
		a, err := openRun(runs, args[0])
		if err != nil {
			return err
		}
		return do(c, a)
	}
	addRuns(c, &runs)
	c.ValidArgsFunction = completeRuns
	return c
}

// openRun opens a run, named or given as a folder, for reading.
func openRun(runs, given string) (*archive.Archive, error) {
	a, err := archive.Read(runFolder(runs, given))
	return a, explainRun(runs, given, err)
}
