package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/output"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// reportMost is the most trials of a run whose report merge writes. A report holds
// all attempts of its run in memory, up to half a megabyte each, and draws each.
const reportMost = 2000

// mergeText is the help of merge, with a place for reportMost.
const mergeText = `Merge puts the shards of a run, driven with --shard 1/n to n/n and one --name,
together as a run of that name in the folder of runs. All of them must be there,
each once, finished and matching their checksums. The shards stay as they are.
It writes the run's report, unless there are more than %d trials. What each
shard signed is kept. With --fleet the fleet's key signs the whole, and with it
which shards it was made of; ` + "`" + `fieldmesh verify` + "`" + ` says who signed what.`

// MergeCommand is `fieldmesh merge SHARD…`.
func MergeCommand() *cobra.Command {
	var runs, fleetFile string
	c := &cobra.Command{Use: "merge SHARD...", Long: fmt.Sprintf(mergeText, reportMost), Args: flags.Some,
		RunE: func(c *cobra.Command, args []string) error {
			shards := make([]string, len(args))
			for i, given := range args {
				shards[i] = runFolder(runs, given)
			}
			a, err := openRun(runs, args[0])
			if err != nil {
				return err
			}
			name := a.Info().Run
			dir := filepath.Join(runs, name)
			said := "the merge is not signed; --fleet has a fleet's key sign it"
			var signs *keys.Identity
			if fleetFile != "" {
				_, identity, err := loadFleet(fleetFile)
				if err != nil {
					return err
				}
				signs, said = &identity, "the merge is signed by key "+identity.Pin
			}
			if err := archive.Merge(dir, shards, signs); err != nil {
				if errors.Is(err, archive.ErrExists) {
					cure := ", and a run of its own; "
					if holds(shards, dir) {
						cure = "; remove it, or "
					}
					return fmt.Errorf("merge: %q is there already%sname the parts by their paths and another folder "+
						"by --runs", dir, cure)
				}
				return explainRun(runs, name, err)
			}
			if a, err = archive.Read(dir); err != nil {
				return err
			}
			out := c.OutOrStdout()
			if n := len(a.Info().Plan.Trials); n > reportMost {
				_, err = fmt.Fprintf(out, "run: %[1]s\n%[2]s\nreport: not written, because it would draw each of "+
					"%[3]d trials; `fieldmesh metrics %[1]s` writes the numbers, `fieldmesh report %[1]s` the report "+
					"all the same\n", dir, said, n)
				return err
			}
			path, _, err := output.Report(a)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "run: %s\n%s\nreport: %s\n", dir, said, path)
			return err
		}}
	addRuns(c, &runs)
	c.Flags().StringVar(&fleetFile, "fleet", "", "sign the merge by the key of this fleet")
	return c
}

// holds reports whether a folder is a merge of these shards, and they have its every attempt.
func holds(shards []string, dir string) bool {
	merged, err := archive.Read(dir)
	if err != nil || merged.Info().Merged == 0 {
		return false
	}
	same, had := false, map[wire.TrialKey]bool{}
	for _, s := range shards {
		a, err := archive.Read(s)
		if err != nil {
			return false
		}
		same = same || a.Info().CreatedWall.Equal(merged.Info().CreatedWall)
		all, _ := a.Trials() // none, where they cannot be read
		for _, at := range all {
			had[at.TrialKey] = true
		}
	}
	all, err := merged.Trials()
	return same && err == nil && !slices.ContainsFunc(all, func(at archive.Attempt) bool { return !had[at.TrialKey] })
}
