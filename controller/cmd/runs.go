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
	"fieldmesh.dev/fieldmesh/controller/cmd/parts"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/nearest"
)

// shownRuns is how many runs a message names: the newest.
const shownRuns = 5

// explainRun puts what stands in the way of a run into words, with what to do.
func explainRun(runs, given string, err error) error {
	switch {
	case errors.Is(err, archive.ErrNoRun):
		if dir := parts.Dir(runFolder(runs, given)); isDir(dir) {
			return fmt.Errorf("%w; it is in parts yet, in %s: `fieldmesh rehearse --resume %s` resumes them", err,
				dir, given)
		}
		if file, failed := os.Stat(given); failed == nil && !file.IsDir() {
			return fmt.Errorf("%q is a file, and a run is a folder; %s", given, newestRuns(runs))
		}
		if _, failed := os.Stat(filepath.Join(runFolder(runs, given), "schedule.json")); failed == nil {
			return fmt.Errorf("%w: its run.json is missing; copy it back from a copy of the folder, or delete the "+
				"folder if the run was never begun", err)
		}
		if near := nearest.Slip(given, namesOf(runsIn(runs))); near != "" && near != given {
			return fmt.Errorf("%w; did you mean %q? %s", err, near, newestRuns(runs))
		}
		return fmt.Errorf("%w; %s", err, newestRuns(runs))
	case errors.Is(err, archive.ErrDamaged):
		return fmt.Errorf("%w; `fieldmesh verify %s` lists what is wrong, and a copy of the folder may have the "+
			"file whole",
			err, given)
	case errors.Is(err, archive.ErrLocked):
		return fmt.Errorf("%w; wait for its end, or stop the fieldmesh that drives it", err)
	case errors.Is(err, archive.ErrNoFolder):
		return fmt.Errorf("%w; --runs names another folder", err)
	case errors.Is(err, archive.ErrExists):
		return fmt.Errorf("%w; continue it by --resume %s, or give the new run another --name", err, given)
	}
	return err
}

func isDir(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.IsDir()
}

// knownRun is a folder with a run.json.
type knownRun struct {
	name string
	info fs.FileInfo
}

// runsIn are the runs of a folder, the newest first.
func runsIn(runs string) []knownRun {
	var found []knownRun
	entries, _ := os.ReadDir(runs) // a folder that cannot be read has no runs to name
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(runs, e.Name(), "run.json")); err == nil {
			found = append(found, knownRun{e.Name(), info})
		}
	}
	slices.SortFunc(found, func(a, b knownRun) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	return found
}

func namesOf(runs []knownRun) []string {
	var names []string
	for _, k := range runs {
		names = append(names, k.name)
	}
	return names
}

// newestRuns names the newest runs of a folder.
func newestRuns(runs string) string {
	found := runsIn(runs)
	if len(found) == 0 {
		return fmt.Sprintf("%q holds no run; --runs names another folder", runs)
	}
	return fmt.Sprintf("the newest in %q: %s", runs, strings.Join(namesOf(found[:min(len(found), shownRuns)]), ", "))
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
