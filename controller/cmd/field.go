package cmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/rehearsal/picture"
)

// FieldCommand is `fieldmesh field`: pictures of a rehearsal's field, and,
// hidden, the field's own process.
func FieldCommand() *cobra.Command {
	return group("field", fieldShowCommand(), fieldServeCommand(), fieldBootCommand(), fieldDriveCommand())
}

// fieldServeCommand is the process of its own that owns a rehearsal's field.
// People do not call it; rehearse does.
func fieldServeCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{Use: "serve", Hidden: true, Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		cfg, err := field.LoadConfig(dir)
		if err != nil {
			return err
		}
		return field.Serve(c.Context(), c.InOrStdin(), c.OutOrStdout(), cfg)
	}}
	c.Flags().StringVar(&dir, "dir", "", "the field's folder, with field.json")
	return c
}

func fieldShowCommand() *cobra.Command {
	var atS float64
	var trial int
	var file string
	c := &cobra.Command{Use: "show FILE", Args: flags.Exactly(1), RunE: func(c *cobra.Command, args []string) error {
		if !(atS >= 0 && atS <= 86400) {
			return misused("--at %g: expected 0 to 86400 seconds", atS)
		}
		campaign, err := loadCampaign(c.ErrOrStderr(), args[0], plan.FullScale)
		if err != nil {
			return err
		}
		svg, err := drawField(campaign, trial, atS)
		if err != nil {
			return err
		}
		return writeText(c.OutOrStdout(), file, svg)
	}}
	c.Flags().Float64Var(&atS, "at", 0, "seconds since the trial set off")
	c.Flags().IntVar(&trial, "trial", 1, "number of the trial, by fieldmesh plan show")
	c.Flags().StringVarP(&file, "output", "o", "", "write the SVG to this file")
	return c
}

// writeText writes to a file where one is named, and to out otherwise.
func writeText(out io.Writer, file, text string) error {
	if file != "" {
		return os.WriteFile(file, []byte(text), 0o644)
	}
	_, err := io.WriteString(out, text)
	return err
}

func drawField(c *plan.Campaign, trial int, atS float64) (string, error) {
	trials, err := c.Schedule()
	if err != nil {
		return "", err
	}
	if trial < 1 || trial > len(trials) {
		return "", misused("--trial %d: the campaign has 1 to %d", trial, len(trials))
	}
	cfg, err := scene.Config(c)
	if err != nil {
		return "", err
	}
	s, err := field.NewSketch(cfg, trials[trial-1], time.Duration(atS*float64(time.Second)))
	if err != nil {
		return "", err
	}
	s.Title = c.Name + ", " + s.Title
	return picture.SVG(s), nil
}

func (s *session) fieldConfigOf(dir, agent string, identity keys.Identity, keysDir string) (field.Config, error) {
	cfg, err := scene.Config(s.campaign)
	if err != nil {
		return field.Config{}, err
	}
	cfg.FilesDir = s.archive.Dir() // the copies that the run keeps
	if cfg.FilesDir, err = filepath.Abs(cfg.FilesDir); err != nil {
		return field.Config{}, fmt.Errorf("find the run's folder: %w", err)
	}
	cfg.VirtualTime = s.archive.Info().Clock.Virtual()
	cfg.MAC80211 = s.archive.Info().Radio == archive.RadioMAC80211
	cfg.Dir, cfg.Agent, cfg.ControllerKeys, cfg.Run, cfg.Seed = dir, agent, keysDir, s.plan.Run, s.plan.Seed
	cfg.Authorized = []keys.Peer{{Name: identity.Name, Role: wire.RoleController, Pin: identity.Pin}}
	return cfg, nil
}
