package cmd

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/attached"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/internal/flags"
)

type pullFlags struct {
	runFlags
	fleet    string
	copyTo   string
	verify   bool
	patience time.Duration
}

// PullCommand is `fieldmesh pull RUN`: what nodes recorded and judged while no
// controller was there comes into the archive.
func PullCommand() *cobra.Command {
	var f pullFlags
	c := &cobra.Command{Use: "pull RUN", Args: flags.Exactly(1), RunE: func(c *cobra.Command, args []string) error {
		if f.verify && f.copyTo == "" {
			return errors.New("--verify wants two copies: name where the second one is to be by --copy, best on " +
				"another disk")
		}
		f.resume = args[0]
		s, err := resumeSession(f.runFlags)
		if err != nil {
			return err
		}
		err = s.pull(c, f)
		return errors.Join(err, s.conclude(c.OutOrStdout()), s.close(),
			f.secondCopy(c.OutOrStdout(), s.archive.Dir()))
	}}
	addRuns(c, &f.runs)
	c.ValidArgsFunction = completeRuns
	c.Flags().StringVar(&f.fleet, "fleet", defaultFleet, "the fleet file")
	c.Flags().DurationVar(&f.patience, "patience", 5*time.Second, "how long to look for a node that does not answer")
	c.Flags().StringVar(&f.copyTo, "copy", "", "folder for a second copy, best on another disk")
	c.Flags().BoolVar(&f.verify, "verify", false, "fail unless both copies match their checksums")
	return c
}

func (s *session) pull(c *cobra.Command, f pullFlags) error {
	if s.archive.Info().Place == archive.PlaceRehearsal {
		if s.archive.Finished() {
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s was rehearsed, and is complete: nothing is left to collect\n",
				s.plan.Run)
			return err
		}
		return fmt.Errorf("pull %s: it was rehearsed, and its nodes end with their field; `fieldmesh rehearse "+
			"--resume %s` goes on", s.plan.Run, s.archive.Dir())
	}
	lane, closeLane, err := s.lane("", f.fleet, run.Road{})
	if err != nil {
		return err
	}
	defer closeLane()
	p := progress.New(c.ErrOrStderr(), []string{""})
	r := &run.Runner{Archive: s.archive, Plan: s.plan, Lanes: []*run.Lane{lane}, Watch: p.Step, Log: s.log}
	found, err := r.Pull(c.Context(), f.patience)
	if err != nil {
		return err
	}
	accepted, givenUp, left := r.Counts()
	switch {
	case !found.Whole() && s.archive.Finished():
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s is complete, and no records were collected: %s\n", s.plan.Run,
			found.Missing())
		return err
	case !found.Whole():
		again := ""
		if len(found.Away)+len(found.Other) > 0 {
			again = "; pull again when it can be had"
		}
		return fmt.Errorf("the run is not whole: %s%s", found.Missing(), again)
	case left > 0:
		_, err := fmt.Fprintf(c.OutOrStdout(), "%d of %d trials are decided; the nodes continue with the others, and "+
			"`fieldmesh run --resume %s` drives them\n", accepted+givenUp, accepted+givenUp+left, s.archive.Dir())
		return err
	}
	return nil
}

// secondCopy makes the second copy, if one is wanted, and says what both are worth.
func (f pullFlags) secondCopy(out io.Writer, dir string) error {
	if f.copyTo == "" {
		return nil
	}
	second := filepath.Join(f.copyTo, filepath.Base(dir))
	if err := archive.Copy(dir, second); err != nil {
		return err
	}
	if !f.verify {
		_, err := fmt.Fprintf(out, "second copy: %s\n", second)
		return err
	}
	bad := 0
	for _, copied := range []string{dir, second} {
		findings, err := attached.Verify(copied)
		if err != nil {
			return err
		}
		for _, found := range findings {
			if _, err := fmt.Fprintf(out, "%s: %s\n", copied, found); err != nil {
				return err
			}
		}
		bad += len(attached.Wrong(findings))
	}
	if bad > 0 {
		return unmet{fmt.Errorf("verify both copies: %s; stay until this succeeds", words.Count(bad, "finding"))}
	}
	warning := ""
	if preflight.SameDisk(dir, second) {
		warning = "; they are on one disk, which may be lost as a whole"
	}
	_, err := fmt.Fprintf(out, "both copies verified: %s and %s%s\n", dir, second, warning)
	return err
}
