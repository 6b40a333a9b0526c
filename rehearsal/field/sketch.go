package field

import (
	"fmt"
	"net"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// Sketch is a field at one moment of a trial, for a picture. Links and reaches
// are means: fading is left out.
type Sketch struct {
	AtS         float64 // since the car set off; for nodes that follow the field's mobility, its own time
	Title       string
	Area        *AreaConfig // absent: the field has no bounds
	LowestMbps  float64
	HighestMbps float64
	Nodes       []SketchNode
	Links       []SketchLink
}

// SketchNode is one node and where it comes by.
type SketchNode struct {
	Name       string
	Role       string // car | roadside | sender | receiver | relay; empty for the others
	XM, YM     float64
	SpeedMps   float64
	TrackDeg   float64
	Channel    int
	LowReachM  float64 // of the lowest rate
	HighReachM float64 // of the highest
	Way        []Point // of the whole trial; empty for a node that stands
}

// SketchLink is a pair of nodes that can notice each other.
type SketchLink struct {
	From, To  int     // indices of Nodes
	SignalDbm float64 // of the weaker direction
	SNRDb     float64
	RateMbps  float64 // the highest that carries data both ways, 0 for none
}

// silent takes what a radio would do; nothing is sent in a sketch.
type silent struct{}

func (silent) Deliver(int, time.Duration, []byte) bool         { return false }
func (silent) TxFailed(int, time.Duration, medium.MAC, []byte) {}

// NewSketch works a trial's field out without making it: no root is needed.
// Of the configuration Nodes, Field, Seed and FilesDir count.
func NewSketch(cfg Config, t wire.Trial, at time.Duration) (Sketch, error) {
	f, scene, core, err := still(cfg, t, at)
	if err != nil {
		return Sketch{}, err
	}
	out := Sketch{AtS: at.Seconds(), Title: title(t)}
	if m := cfg.Field.Mobility; m != nil {
		out.Area = m.Area
	}
	rates := core.RatesMbps()
	out.LowestMbps, out.HighestMbps = rates[0], rates[len(rates)-1]
	for i := range f.nodes {
		out.Nodes = append(out.Nodes, f.sketchNode(core, scene, t, i, at, out.LowestMbps, out.HighestMbps))
	}
	for i := range f.nodes {
		for j := range i {
			if l, ok := sketchLink(core, j, i); ok {
				out.Links = append(out.Links, l)
			}
		}
	}
	return out, nil
}

// still works a trial's field out at one moment.
func still(cfg Config, t wire.Trial, at time.Duration) (*Field, *scene, *medium.Core, error) {
	f, standing, err := desk(cfg, t)
	if err != nil {
		return nil, nil, nil, err
	}
	standing.lead = 0
	scene := standing.departing(0)
	locate := func(node int, _ time.Duration) (xM, yM float64) {
		s := scene.at(node, at)
		return s.XM, s.YM
	}
	core, err := medium.NewCore(f.trialConfig(t), locate, silent{})
	return f, scene, core, err
}

// CheckChannel reports whether the emulated radio can be what a trial asks for. What counts
// of the configuration is as in NewSketch.
func CheckChannel(cfg Config, t wire.Trial) error {
	_, _, _, err := still(cfg, t, 0)
	return err
}

// desk is a trial's field without its processes: what can be worked out needs none.
func desk(cfg Config, t wire.Trial) (*Field, *scene, error) {
	var err error
	if cfg.Field, err = cfg.Field.WithDefaults(); err != nil {
		return nil, nil, err
	}
	f := &Field{cfg: cfg}
	if f.stage, err = newStage(cfg.Field, namesOf(cfg.Nodes), cfg.Seed, cfg.FilesDir); err != nil {
		return nil, nil, err
	}
	for i, n := range cfg.Nodes {
		f.nodes = append(f.nodes, &node{Node: n, index: i, mac: net.HardwareAddr{0x02, 0, 0, 0, byte(i >> 8), byte(i)}})
	}
	standing, err := f.stage.arrange(t)
	return f, standing, err
}

// Links are the nodes of a trial that carry each other's data so long after its
// movement began, by their names: on average over fading, at the trial's rate or,
// where it fixes none, at any. What counts of the configuration is as in NewSketch.
func Links(cfg Config, t wire.Trial, at time.Duration) (map[string][]string, error) {
	f, _, core, err := still(cfg, t, at)
	if err != nil {
		return nil, err
	}
	least := leastRateMbps(core, t)
	var taking []int
	nodes := t.Nodes()
	for i, n := range f.nodes {
		if slices.Contains(nodes, n.Name) {
			taking = append(taking, i)
		}
	}
	out := map[string][]string{}
	for at, i := range taking {
		for _, j := range taking[:at] {
			if l, ok := sketchLink(core, j, i); ok && l.RateMbps >= least {
				a, b := f.nodes[i].Name, f.nodes[j].Name
				out[a], out[b] = append(out[a], b), append(out[b], a)
			}
		}
	}
	return out, nil
}

// leastRateMbps is the rate that a link must carry: the trial's or, where it fixes none, any.
func leastRateMbps(core *medium.Core, t wire.Trial) float64 {
	if t.Radio.RateMbps != nil {
		return *t.Radio.RateMbps
	}
	return core.RatesMbps()[0]
}

// CheckScenes reports whether the field of every trial can be made at all:
// whether its movement files can be read, and every node has a place. What counts
// of the configuration is as in NewSketch.
func CheckScenes(cfg Config, trials []wire.Trial) error {
	field, err := cfg.Field.WithDefaults()
	if err != nil {
		return err
	}
	s, err := newStage(field, namesOf(cfg.Nodes), cfg.Seed, cfg.FilesDir)
	if err != nil {
		return err
	}
	type scene struct { // what mobility sees of a trial
		repetition                 int
		course                     string
		still, waits               bool
		least, most, width, height float64
	}
	seen := map[scene]bool{}
	for _, t := range trials {
		k := scene{repetition: t.Repetition, course: t.Course.Kind, still: t.Still, waits: waitsForCar(t)}
		if c := t.Conditions; c != nil {
			k.least, k.most = orZero(c.SpeedMinMps), orZero(c.SpeedMaxMps)
			k.width, k.height = orZero(c.WidthM), orZero(c.HeightM)
		}
		if seen[k] && cfg.Field.Mobility != nil {
			continue
		}
		seen[k] = true
		if _, err := s.arrange(t); err != nil {
			return err
		}
	}
	return nil
}

func title(t wire.Trial) string {
	s := fmt.Sprintf("trial %d", t.Number)
	if t.SpeedMps != nil {
		s += fmt.Sprintf(", course %s at %g m/s %s", t.Course.Kind, *t.SpeedMps, t.Direction)
	}
	return s
}

func role(t wire.Trial, name string) string {
	switch name {
	case t.Car:
		return "car"
	case t.Roadside:
		return "roadside"
	case t.Sender:
		return "sender"
	case t.Receiver:
		return "receiver"
	}
	for _, r := range t.Relays {
		if r == name {
			return "relay"
		}
	}
	return ""
}

// waySteps is how finely a way is drawn.
const waySteps = 120

func (f *Field) sketchNode(core *medium.Core, s *scene, t wire.Trial, i int, at time.Duration, low,
	high float64) SketchNode {
	state := s.at(i, at)
	n := SketchNode{Name: f.nodes[i].Name, Role: role(t, f.nodes[i].Name), XM: state.XM, YM: state.YM,
		SpeedMps: state.SpeedMps, TrackDeg: state.TrackDeg, Channel: core.Caps(i).Channel,
		LowReachM: core.ReachM(i, low), HighReachM: core.ReachM(i, high)}
	if !s.moves(i) {
		return n
	}
	// The car gathers speed and holds it before the window.
	whole := t.DurationS
	if i == s.mover && t.SpeedMps != nil && t.Course.AccelMps2 > 0 {
		whole += *t.SpeedMps/t.Course.AccelMps2 + t.Gate.HoldS + t.Gate.LeadS
	}
	end := max(time.Duration(whole*float64(time.Second)), at)
	for k := range waySteps + 1 {
		p := s.at(i, end*time.Duration(k)/waySteps)
		n.Way = append(n.Way, Point{p.XM, p.YM})
	}
	return n
}

func sketchLink(core *medium.Core, i, j int) (SketchLink, bool) {
	if core.Caps(i).Channel != core.Caps(j).Channel || !core.Hears(i, j) && !core.Hears(j, i) {
		return SketchLink{}, false
	}
	there, snr := core.Strength(i, j)
	back, backSNR := core.Strength(j, i)
	return SketchLink{From: i, To: j, SignalDbm: min(there, back), SNRDb: min(snr, backSNR),
		RateMbps: min(core.BestRateMbps(i, j), core.BestRateMbps(j, i))}, true
}
