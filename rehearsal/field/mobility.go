package field

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
)

// MobilityConfig is a campaign's `field.mobility:` section: where nodes are
// that no course places.
type MobilityConfig struct {
	// chain | grid | placed | random_waypoint | setdest | ns2 | bonnmotion | tracks
	Model       string            `json:"model"`
	Area        *AreaConfig       `json:"area,omitempty"`
	SpacingM    float64           `json:"spacing_m,omitempty"` // chain, grid
	Columns     int               `json:"columns,omitempty"`   // grid
	Start       Point             `json:"start"`               // of chain's or grid's first node
	Positions   map[string]Point  `json:"positions,omitempty"` // node → where it stands or starts
	Moves       []MoveConfig      `json:"moves,omitempty"`
	SpeedMinMps float64           `json:"speed_min_mps,omitempty"` // random_waypoint
	SpeedMaxMps float64           `json:"speed_max_mps,omitempty"` // and setdest
	PauseS      float64           `json:"pause_s,omitempty"`
	File        string            `json:"file,omitempty"`   // ns2, bonnmotion; below Config.FilesDir
	Tracks      map[string]string `json:"tracks,omitempty"` // node → .gpx or .nmea below Config.FilesDir
	Align       string            `json:"align,omitempty"`  // tracks: start (default) or clock
}

// AreaConfig is the rectangle that nodes move in, a corner at the origin.
type AreaConfig struct {
	WidthM  float64 `json:"width_m"`
	HeightM float64 `json:"height_m"`
}

// Point is a place in the field's plane: x east, y north.
type Point struct {
	XM float64 `json:"x_m"`
	YM float64 `json:"y_m"`
}

// MoveConfig sends a node to a place in a straight line.
type MoveConfig struct {
	Node     string  `json:"node"`
	AtS      float64 `json:"at_s"`
	XM       float64 `json:"x_m"`
	YM       float64 `json:"y_m"`
	SpeedMps float64 `json:"speed_mps"`
}

// movement makes every node's path for trials, which it tells apart only by
// their repetition, their area and their speeds: in Random Waypoint each repetition is a
// scenario of its own, and all cells of one that move alike see the same.
type movement struct {
	cfg   *MobilityConfig
	seed  uint64
	names []string
	area  mobility.Area
	fixed map[string]mobility.Path // those that are the same in every trial
}

// newMovement reads what it needs from files below dir; nil without a mobility
// section.
func newMovement(c *MobilityConfig, names []string, seed uint64, dir string, site earth.Site) (*movement, error) {
	if c == nil {
		return nil, nil
	}
	m := &movement{cfg: c, seed: seed, names: names, fixed: map[string]mobility.Path{}}
	if c.Area != nil {
		m.area = mobility.Area{WidthM: c.Area.WidthM, HeightM: c.Area.HeightM}
	}
	var err error
	switch c.Model {
	case "chain":
		err = m.script(mobility.Chain(len(names), mobility.Place(c.Start), c.SpacingM))
	case "grid":
		if c.Columns < 1 {
			return nil, fmt.Errorf("check field's mobility: a grid of %d columns", c.Columns)
		}
		err = m.script(mobility.Grid(len(names), c.Columns, mobility.Place(c.Start), c.SpacingM))
	case "placed":
		places := make([]mobility.Place, len(names))
		for i, n := range names {
			p, ok := c.Positions[n]
			if !ok {
				return nil, fmt.Errorf("check field's mobility: node %q has no position", n)
			}
			places[i] = mobility.Place(p)
		}
		err = m.script(places)
	case "random_waypoint", "setdest":
		err = errors.Join(m.drawing(nil).Check(), m.stand(c.Positions))
	case "ns2", "bonnmotion":
		err = m.readFile(dir)
	case "tracks":
		err = errors.Join(m.readTracks(dir, site), m.stand(c.Positions))
	default:
		err = fmt.Errorf("check field's mobility: model %q is none of chain, grid, placed, random_waypoint, setdest, "+
			"ns2, bonnmotion, tracks", c.Model)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *movement) stand(positions map[string]Point) error {
	for name, p := range positions {
		if !slices.Contains(m.names, name) {
			return fmt.Errorf("check field's mobility: position of %q, which is not a node", name)
		}
		if err := m.area.Check(p.XM, p.YM); err != nil {
			return fmt.Errorf("check field's mobility: node %q: %w", name, err)
		}
		m.fixed[name] = mobility.Stand(p.XM, p.YM)
	}
	return nil
}

func (m *movement) script(places []mobility.Place) error {
	moves := map[string][]mobility.Move{}
	for i, v := range m.cfg.Moves {
		if !slices.Contains(m.names, v.Node) {
			return fmt.Errorf("check field's mobility: move %d: %q is not a node", i+1, v.Node)
		}
		if err := m.area.Check(v.XM, v.YM); err != nil {
			return fmt.Errorf("check field's mobility: move %d: %w", i+1, err)
		}
		moves[v.Node] = append(moves[v.Node], mobility.Move{At: time.Duration(v.AtS * float64(time.Second)), XM: v.XM,
			YM: v.YM, SpeedMps: v.SpeedMps})
	}
	for i, name := range m.names {
		if err := m.area.Check(places[i].XM, places[i].YM); err != nil {
			return fmt.Errorf("check field's mobility: node %q: %w", name, err)
		}
		p, err := mobility.Script(places[i].XM, places[i].YM, moves[name]...)
		if err != nil {
			return fmt.Errorf("check field's mobility: node %q: %w", name, err)
		}
		m.fixed[name] = p
	}
	return nil
}

// Drawn reports whether movement is drawn, and begins with what warms the network up.
func (c *MobilityConfig) Drawn() bool { return c.Model == "random_waypoint" || c.Model == "setdest" }

// drawing draws a node's path.
type drawing interface {
	Check() error
	Path(seed uint64, node int, until time.Duration) (mobility.Path, error)
}

// drawing is the campaign's, with the area and at the speeds of a trial that has its own.
func (m *movement) drawing(c *wire.Conditions) drawing {
	w := mobility.Waypoint{Area: m.area, SpeedMinMps: m.cfg.SpeedMinMps, SpeedMaxMps: m.cfg.SpeedMaxMps,
		Pause: time.Duration(m.cfg.PauseS * float64(time.Second))}
	if c != nil && c.WidthM != nil {
		w.Area.WidthM = *c.WidthM
	}
	if c != nil && c.HeightM != nil {
		w.Area.HeightM = *c.HeightM
	}
	if c != nil && c.SpeedMinMps != nil {
		w.SpeedMinMps = *c.SpeedMinMps
	}
	if c != nil && c.SpeedMaxMps != nil {
		w.SpeedMaxMps = *c.SpeedMaxMps
	}
	if m.cfg.Model == "setdest" {
		return mobility.Setdest(w)
	}
	return w
}

// open opens a movement file, whose path must lie below the folder.
func open(dir, path string, f func(io.Reader) error) error {
	if !filepath.IsLocal(path) {
		return fmt.Errorf("read movement: %q is not below the campaign file's folder", path)
	}
	root, err := os.OpenRoot(dir) // a campaign from elsewhere may have a link that leads out
	if err != nil {
		return fmt.Errorf("read movement: %w", err)
	}
	defer root.Close()
	switch info, err := root.Stat(path); {
	case err != nil:
		return fmt.Errorf("read movement: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("read movement: %s is not a file", path)
	}
	file, err := root.Open(path)
	if err != nil {
		return fmt.Errorf("read movement: %w", err)
	}
	defer file.Close()
	return f(file)
}

func (m *movement) readFile(dir string) error {
	read := mobility.ReadNS2
	if m.cfg.Model == "bonnmotion" {
		read = mobility.ReadBonnMotion
	}
	return open(dir, m.cfg.File, func(r io.Reader) error {
		paths, err := read(m.cfg.File, r, m.area)
		if err != nil {
			return err
		}
		if len(paths) != len(m.names) {
			return fmt.Errorf("%s: it moves %d nodes and the campaign has %d; allowed: as many, taken in order",
				m.cfg.File, len(paths), len(m.names))
		}
		for i, p := range paths {
			m.fixed[m.names[i]] = p
		}
		return nil
	})
}

func readTrack(dir, path string) (t mobility.Track, err error) {
	read := mobility.ReadGPX
	if strings.HasSuffix(path, ".nmea") {
		read = mobility.ReadNMEA
	}
	err = open(dir, path, func(r io.Reader) (err error) { t, err = read(path, r); return err })
	return t, err
}

// AtTracks gives a field whose nodes play tracks back, and that has no place
// on Earth of its own, the place where the first of the nodes' tracks begins.
func (c Settings) AtTracks(names []string, dir string) (Settings, error) {
	if c.Mobility == nil || c.Mobility.Model != "tracks" || c.SiteLatDeg != nil {
		return c, nil
	}
	for _, name := range names {
		if path, ok := c.Mobility.Tracks[name]; ok {
			t, err := readTrack(dir, path)
			if err != nil {
				return c, err
			}
			c.SiteLatDeg, c.SiteLonDeg = &t[0].LatDeg, &t[0].LonDeg
			break
		}
	}
	return c, nil
}

func (m *movement) readTracks(dir string, site earth.Site) error {
	tracks := map[string]mobility.Track{}
	var first time.Time
	for name, path := range m.cfg.Tracks {
		t, err := readTrack(dir, path)
		if err != nil {
			return err
		}
		tracks[name] = t
		if first.IsZero() || t[0].At.Before(first) {
			first = t[0].At
		}
	}
	begin := time.Time{}
	if m.cfg.Align == "clock" {
		begin = first
	}
	for name, t := range tracks {
		p, err := t.Path(site, begin, m.area)
		if err != nil {
			return fmt.Errorf("%s: node %q: %w", m.cfg.Tracks[name], name, err)
		}
		m.fixed[name] = p
	}
	return nil
}

// slack is what a movement has beyond the longest that a trial can take.
const slack = 2 * time.Minute

// paths are the nodes' for a trial, by node.
func (m *movement) paths(t wire.Trial) ([]mobility.Path, error) {
	until := time.Duration((t.Gate.TimeoutS+t.Gate.LeadS+t.DurationS)*float64(time.Second)) + slack
	out := make([]mobility.Path, len(m.names))
	for i, name := range m.names {
		p, ok := m.fixed[name]
		if !ok && m.cfg.Drawn() {
			var err error
			if p, err = m.drawing(t.Conditions).Path(m.seed+uint64(t.Repetition)<<32, i, until); err != nil {
				return nil, fmt.Errorf("move node %q: %w", name, err)
			}
		} else if !ok {
			return nil, fmt.Errorf("move node %q: the mobility does not say where it is", name)
		}
		if begin := p.At(0); t.Still {
			p = mobility.Stand(begin.XM, begin.YM)
		}
		out[i] = p
	}
	return out, nil
}
