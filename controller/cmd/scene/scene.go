// Package scene makes an emulated field's configuration of a campaign, and holds the
// campaign to what a rehearsal can be.
package scene

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
)

// Read reads a campaign at one of its scales, and leads those of its flows
// that cross others over their relays, by the links of the emulated field.
func Read(path, scale string) (*plan.Campaign, error) {
	c, err := plan.LoadAt(path, scale)
	if err != nil || !c.Crosses() {
		return c, err
	}
	cfg, err := Config(c)
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
		atS = movedS(cfg.Field.Mobility, t, atS)
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

// movedS is how long nodes have moved at a time of a trial's window: a drawn movement
// begins with the warm-up.
func movedS(m *field.MobilityConfig, t wire.Trial, atS float64) float64 {
	if m != nil && m.Drawn() {
		return atS + t.WarmupS()
	}
	return atS
}

// Config is what a field must know of a campaign's nodes and field,
// wherever it is made.
func Config(c *plan.Campaign) (field.Config, error) {
	settings, err := Settings(c)
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

// Rehearsed makes a campaign's plan one for the emulated field: nodes without
// an agent are not in it, and every course has the field's site, so that a
// gate can wait for a place.
func Rehearsed(p *wire.RunPlan, c *plan.Campaign) error {
	field, err := Settings(c)
	if err != nil {
		return err
	}
	if err := moved(p.Trials, field); err != nil {
		return err
	}
	for i := range p.Trials {
		if course := &p.Trials[i].Course; course.SiteLatDeg == nil {
			course.SiteLatDeg, course.SiteLonDeg = field.SiteLatDeg, field.SiteLonDeg
		}
	}
	taking := c.Participants()
	p.Nodes = slices.DeleteFunc(p.Nodes, func(n wire.PlanNode) bool { return !slices.Contains(taking, n.Name) })
	return Check(c)
}

// moved refuses a trial that waits for a speed which nobody drives.
func moved(trials []wire.Trial, f field.Settings) error {
	t := waitsForNobody(trials)
	if t == nil || f.Mobility != nil {
		return nil
	}
	return fmt.Errorf("trial %d waits until %s has %g m/s, and in a rehearsal nobody moves it: give trial.course "+
		"a kind, or run the campaign on real nodes, where `fieldmesh-agent simulate-gps` can stand in for the "+
		"car's gpsd", t.Number, t.Car, *t.SpeedMps)
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

// Check works every trial's field out once, so that a movement file with
// a fault is told before anything is made.
func Check(c *plan.Campaign) error {
	cfg, err := Config(c)
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

// assumed is what the field has to know of a campaign's section, all but by whom it is used and whence it comes.
func assumed(section *environment.Field) (f field.Settings, err error) {
	if section == nil {
		return f, nil
	}
	own := *section
	own.Agents, own.CalibratedBy = "", nil
	text, err := json.Marshal(own)
	if err != nil {
		return f, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return f, d.Decode(&f)
}

// Settings hands the campaign's field section, whose keys are the field's
// own, to the field; what the file does not say, the field's defaults say.
func Settings(c *plan.Campaign) (field.Settings, error) {
	f, err := assumed(c.Field)
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
