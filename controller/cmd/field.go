package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/rehearsal/picture"
)

// FieldCommand is `fieldmesh field`: pictures of a rehearsal's field, and,
// hidden, the field's own process.
func FieldCommand() *cobra.Command {
	return group("field", "Draw the field that a campaign is rehearsed in",
		fieldShowCommand(), fieldServeCommand(), fieldBootCommand(), fieldDriveCommand())
}

// fieldServeCommand is the process of its own that owns a rehearsal's field.
// People do not call it; rehearse does.
func fieldServeCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:    "serve",
		Short:  "Own a rehearsal's field (started by rehearse)",
		Hidden: true,
		Args:   flags.None,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := field.LoadConfig(dir)
			if err != nil {
				return err
			}
			return field.Serve(c.Context(), c.InOrStdin(), c.OutOrStdout(), cfg)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the field's folder, with field.json")
	return c
}

func fieldShowCommand() *cobra.Command {
	var atS float64
	var trial int
	var file string
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "Draw the field at a moment of a trial, as SVG",
		Long: "Show draws where the nodes of the campaign in FILE are T seconds after a trial has set off, how far " +
			"their lowest and\n" +
			"highest rates reach, the links between them by their signal, and the ways that they take. For nodes " +
			"that follow\n" +
			"field.mobility T is the movement's own time. The SVG goes to standard output, or to a file with " +
			"--output.\n\n" +
			"The picture shows what the emulated radio assumes, on average over fading. A rehearsal is no evidence " +
			"about velocity,\n" +
			"only about the campaign.",
		Args: exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !(atS >= 0 && atS <= 86400) {
				return misused("--at %g: from 0 to 86400 seconds are possible", atS)
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
		},
	}
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
	cfg, err := sceneConfig(c)
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

// readCampaign reads a campaign at one of its scales, and leads those of its flows
// that cross others over their relays, by the links of the emulated field.
func readCampaign(path, scale string) (*plan.Campaign, error) {
	c, err := plan.LoadAt(path, scale)
	if err != nil || !c.Crosses() {
		return c, err
	}
	cfg, err := sceneConfig(c)
	if err != nil {
		return nil, err
	}
	known := map[string]*draw.Links{} // many cells of a repetition have the same
	return c, c.DrawAcross(func(t wire.Trial, atS float64) (*draw.Links, error) {
		place := wire.Conditions{}
		if own := t.Conditions; own != nil {
			place = wire.Conditions{WidthM: own.WidthM, HeightM: own.HeightM, SpeedMinMps: own.SpeedMinMps,
				SpeedMaxMps: own.SpeedMaxMps}
		}
		key, err := json.Marshal([]any{t.Repetition, t.Still, t.Course, place, t.Radio, t.Nodes(), atS})
		if err != nil {
			return nil, fmt.Errorf("name the links of trial %d: %w", t.Number, err)
		}
		if known[string(key)] == nil {
			links, err := field.Links(cfg, t, time.Duration(atS*float64(time.Second)))
			if err != nil {
				return nil, err
			}
			known[string(key)] = draw.LinksOf(links)
		}
		return known[string(key)], nil
	})
}

// sceneConfig is what a field must know of a campaign's nodes and field,
// wherever it is made.
func sceneConfig(c *plan.Campaign) (field.Config, error) {
	settings, err := fieldConfig(c)
	if err != nil {
		return field.Config{}, err
	}
	dir, err := filepath.Abs(filepath.Dir(c.Path))
	if err != nil {
		return field.Config{}, fmt.Errorf("find the campaign's folder: %w", err)
	}
	cfg := field.Config{Seed: c.Design.Seed, Field: settings, FilesDir: dir}
	taking := c.Participants()
	for _, n := range c.Nodes {
		cfg.Nodes = append(cfg.Nodes, field.Node{Name: n.Name, Unit: n.Unit, MeshAddress: n.MeshAddress,
			Bare: !slices.Contains(taking, n.Name)})
	}
	return cfg, nil
}

// rehearsed makes a campaign's plan one for the emulated field: nodes without
// an agent are not in it, and every course has the field's site, so that a
// gate can wait for a place.
func rehearsed(p *wire.RunPlan, c *plan.Campaign) error {
	field, err := fieldConfig(c)
	if err != nil {
		return err
	}
	if t := waitsForNobody(p.Trials); t != nil && field.Mobility == nil {
		return fmt.Errorf("trial %d waits until %s has %g m/s, and in a rehearsal nobody moves it: give trial.course "+
			"a kind, or run the campaign on real nodes, where `fieldmesh-agent simulate-gps` can stand in for the "+
			"car's gpsd", t.Number, t.Car, *t.SpeedMps)
	}
	for i := range p.Trials {
		if course := &p.Trials[i].Course; course.SiteLatDeg == nil {
			course.SiteLatDeg, course.SiteLonDeg = field.SiteLatDeg, field.SiteLonDeg
		}
	}
	taking := c.Participants()
	p.Nodes = slices.DeleteFunc(p.Nodes, func(n wire.PlanNode) bool { return !slices.Contains(taking, n.Name) })
	return checkScene(c)
}

// waitsForNobody is the first trial that opens at a speed and has no course, nil for none.
func waitsForNobody(trials []wire.Trial) *wire.Trial {
	at := slices.IndexFunc(trials, func(t wire.Trial) bool {
		return t.Gate.SpeedBand && t.SpeedMps != nil && t.Course.Kind == "none"
	})
	if at < 0 {
		return nil
	}
	return &trials[at]
}

// checkScene works every trial's field out once, so that a movement file with
// a fault is told before anything is made.
func checkScene(c *plan.Campaign) error {
	cfg, err := sceneConfig(c)
	if err != nil {
		return err
	}
	trials, err := c.Schedule()
	if err != nil {
		return err
	}
	if err := field.CheckScenes(cfg, trials); err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	return nil
}

// fieldConfig hands the campaign's field section, whose keys are the field's
// own, to the field; what the file does not say, the field's defaults say.
func fieldConfig(c *plan.Campaign) (field.Settings, error) {
	var f field.Settings
	text, err := json.Marshal(c.Field)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return f, fmt.Errorf("read the campaign's field: %w", err)
	}
	var names []string
	for _, n := range c.Nodes {
		names = append(names, n.Name)
	}
	if f, err = f.AtTracks(names, filepath.Dir(c.Path)); err != nil {
		return f, err
	}
	return f.WithDefaults()
}

// checkKernelRadios refuses what cannot be rehearsed with the kernel's own radios.
func checkKernelRadios(c *plan.Campaign, trials []wire.Trial) error {
	cfg, err := sceneConfig(c)
	if err != nil {
		return err
	}
	return field.CheckKernelRadios(cfg, trials)
}

func (s *session) fieldConfigOf(dir, agent string, identity keys.Identity, keysDir string) (field.Config, error) {
	cfg, err := sceneConfig(s.campaign)
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
