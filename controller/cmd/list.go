package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/screen"
)

// runSummary is a line of `fieldmesh runs`.
type runSummary struct {
	Run      string    `json:"run"` // its folder's name
	Campaign string    `json:"campaign"`
	Place    string    `json:"place"`
	Begun    time.Time `json:"begun"`
	Accepted int       `json:"accepted"`
	GivenUp  int       `json:"given_up"`
	Left     int       `json:"left"`
	Complete bool      `json:"complete"`
}

// RunsCommand is `fieldmesh runs`.
func RunsCommand() *cobra.Command {
	var runs string
	c := printing(&cobra.Command{Use: "runs", Args: flags.None},
		func(c *cobra.Command, _ []string) (any, func(io.Writer) error, error) {
			all, err := listRuns(runs, c.ErrOrStderr())
			return all, func(out io.Writer) error { return writeRuns(out, all) }, err
		})
	addRuns(c, &runs)
	return c
}

// listRuns reads every run in a folder, and warns of those that cannot be read. What
// else is there is left out.
func listRuns(runs string, warnings io.Writer) ([]runSummary, error) {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w; --runs names another folder, and `fieldmesh rehearse FILE` makes the "+
			"first run", err)
	}
	all := []runSummary{}
	for _, e := range entries {
		a, err := archive.Read(filepath.Join(runs, e.Name()))
		if errors.Is(err, archive.ErrNoRun) {
			continue
		}
		if err != nil {
			fmt.Fprintf(warnings, "warning: a run cannot be read: %v\n", err)
			continue
		}
		info := a.Info()
		s := runSummary{Run: e.Name(), Campaign: info.Campaign, Place: info.Place, Begun: info.CreatedWall,
			Complete: a.Finished()}
		s.Accepted, s.GivenUp, s.Left = (&run.Runner{Archive: a, Plan: info.Plan}).Counts()
		all = append(all, s)
	}
	if len(all) == 0 {
		fmt.Fprintf(warnings, "%q holds no run; `fieldmesh rehearse FILE` makes one, and --runs names another folder\n",
			runs)
	}
	slices.SortFunc(all, func(x, y runSummary) int { return x.Begun.Compare(y.Begun) })
	return all, nil
}

func writeRuns(out io.Writer, all []runSummary) error {
	var t screen.Table
	t.Row("run", "campaign", "place", "begun", "accepted", "state")
	for _, s := range all {
		state := "complete"
		if !s.Complete {
			state = fmt.Sprintf("%d left", s.Left)
		}
		t.Row(s.Run, s.Campaign, s.Place, s.Begun.Local().Format("2006-01-02 15:04"),
			fmt.Sprintf("%d of %d", s.Accepted, s.Accepted+s.GivenUp+s.Left), state)
	}
	return t.Write(out, screen.Columns(out))
}
