// Package predict works out before a drive what the emulated radio of a campaign's field
// would carry straight from sender to receiver. TCP, routing and other flows stay out: so
// what it tells is an upper bound, and no measurement.
package predict

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/controller/plan/show"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
)

// MostSeeds bounds the draws of one prediction.
const MostSeeds = 1000

// Prediction is what `plan predict --json` prints.
type Prediction struct {
	Campaign      string           `json:"campaign"`
	SHA256        string           `json:"campaign_sha256"`
	What          string           `json:"what"`
	DatagramBytes int              `json:"datagram_bytes"` // with the headers of IP and UDP; goodput is without
	Seeds         []uint64         `json:"seeds"`          // each draws shadowing, fading, back-off and waypoints
	Confidence    float64          `json:"confidence"`
	Defaults      map[string]any   `json:"defaults"` // of the file's keys that it does not give
	Without       []string         `json:"without"`  // what draws would differ by, and the field has not
	Cells         []Cell           `json:"cells"`
	Distances     []Radio          `json:"by_distance"`
	Open          []Open           `json:"not_predicted"`
	Estimate      drive.Estimate   `json:"estimate"`
	Estimable     design.Estimable `json:"estimable"`
}

// Cell is what to expect of the trials in which the same nodes, or nodes of the same role,
// drive the same course at the same speed on the same radio.
type Cell struct {
	Factors     map[string]string `json:"factors"`             // those that all its trials have alike
	Motion      string            `json:"motion"`              // the course's kind; none: field.mobility moves the nodes
	Direction   string            `json:"direction,omitempty"` // of travel, where the other is another cell's
	SpeedMps    *float64          `json:"speed_mps,omitempty"`
	WindowS     float64           `json:"window_s"`
	Trials      int               `json:"trials"`
	NearestM    float64           `json:"nearest_m"` // sender and receiver, in all draws
	FarthestM   float64           `json:"farthest_m"`
	WithinReach Expected          `json:"within_reach_share"`
	GoodputMbps Expected          `json:"goodput_mbps"`
}

// Expected is a mean over the draws, and its interval within what is possible; absent below three
// draws, and where all are alike.
type Expected struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// Radio is the goodput of one radio by distance.
type Radio struct {
	Trial    int        `json:"trial"` // the first that has it
	Sender   string     `json:"sender"`
	Receiver string     `json:"receiver"`
	Radio    wire.Radio `json:"radio"`
	Points   []Point    `json:"points"`
}

// Point is one distance.
type Point struct {
	DistanceM   float64  `json:"distance_m"`
	GoodputMbps Expected `json:"goodput_mbps"`
}

// Open are trials of which nothing can be predicted.
type Open struct {
	Trials int    `json:"trials"`
	First  int    `json:"first_trial"`
	Why    string `json:"why"`
}

const what = "an upper bound for TCP, and no measurement: what an emulated radio carries straight from sender to " +
	"receiver, in datagrams of UDP without a pause"

// Of predicts what the campaign's trials would find, by so many draws of the field.
func Of(ctx context.Context, c *plan.Campaign, seeds int) (*Prediction, error) {
	trials, err := c.Schedule()
	if err != nil {
		return nil, err
	}
	cfg, err := scene.Config(c)
	if err != nil {
		return nil, err
	}
	p := &Prediction{Campaign: c.Name, SHA256: c.SHA256, What: what, DatagramBytes: field.DatagramBytes,
		Confidence: stats.Confidence, Cells: []Cell{}, Distances: []Radio{}, Open: []Open{}, Without: []string{},
		Estimate: c.Estimate(), Estimable: show.Estimable(c, trials)}
	for k := range seeds {
		p.Seeds = append(p.Seeds, cfg.Seed+uint64(k))
	}
	var cells []kind
	for _, t := range trials {
		if why := notPredicted(cfg, t); why != "" {
			p.leaveOpen(t, why)
			continue
		}
		cells = among(cells, p.inCell(cfg, t), t)
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("%s: nothing can be predicted: %s", c.Path, p.whyNot())
	}
	if err := p.assume(c, cfg.Field, cells); err != nil {
		return nil, err
	}
	if err := p.drive(ctx, cfg, cells); err != nil {
		return nil, err
	}
	return p, p.standApart(ctx, cfg, cells)
}

// notPredicted is why a trial cannot be predicted, or empty.
func notPredicted(cfg field.Config, t wire.Trial) string {
	switch {
	case t.Pass != "":
		return "parked for calibration, and no trial of the campaign's question"
	case t.Radio.HasAccessPoint():
		return "every frame goes by way of an access point, and the emulated radio is an ad hoc one"
	case len(t.Nodes()) > 2:
		return "more than two nodes take part, and data may go over others, which only a rehearsal shows"
	case t.Course.Kind == "none" && cfg.Field.Mobility == nil:
		return "nothing says where its nodes are: give trial.course a kind, or the field a mobility"
	}
	return ""
}

func (p *Prediction) leaveOpen(t wire.Trial, why string) {
	for i := range p.Open {
		if p.Open[i].Why == why {
			p.Open[i].Trials++
			return
		}
	}
	p.Open = append(p.Open, Open{Trials: 1, First: t.Number, Why: why})
}

func (p *Prediction) whyNot() string {
	var out []string
	for _, o := range p.Open {
		out = append(out, o.words())
	}
	return strings.Join(out, "; ")
}

func (o Open) words() string {
	return fmt.Sprintf("%s from trial %d on: %s", words.Count(o.Trials, "trial"), o.First, o.Why)
}

// kind is trials that are alike in something.
type kind struct {
	key    string
	trials []wire.Trial
}

// among puts a trial to those of its kind.
func among(kinds []kind, key string, t wire.Trial) []kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.key == key })
	if i < 0 {
		return append(kinds, kind{key, []wire.Trial{t}})
	}
	kinds[i].trials = append(kinds[i].trials, t)
	return kinds
}

// onRadio is what the radio of a trial depends on where nodes stand still.
func onRadio(cfg field.Config, t wire.Trial) string {
	s, ends := cfg.Field, []string(nil)
	if len(s.UnitPowerOffsetDb)+len(s.UnitGainOffsetDb)+len(s.UnitNoiseOffsetDb)+len(s.Channels) > 0 {
		ends = []string{t.Sender, t.Receiver}
	}
	return text(t.Radio, t.Conditions, ends)
}

// inCell is what a window depends on but for the direction of travel, whose courses are mostly
// mirror images: where the car is when it opens, and no more of the gate.
func (p *Prediction) inCell(cfg field.Config, t wire.Trial) string {
	ends := []string{fmt.Sprint(t.Sender == t.Car)}
	if cfg.Field.Mobility != nil {
		ends = []string{t.Sender, t.Receiver}
	}
	e := p.Estimate.Trials[t.Number-1]
	opens := fmt.Sprintf("%.3f m %.3f s", e.ApproachM+e.LeadM, e.ApproachS+e.LeadS)
	return onRadio(cfg, t) + text(t.Course, t.SpeedMps, opens, t.DurationS, t.Still, ends, oneWay(t))
}

// oneWay is the direction of a trial whose window ends before its segment does, or empty. A segment
// is mirrored about its own middle: such a window covers another strip of road each way.
func oneWay(t wire.Trial) string {
	const rounding = 1e-3
	if t.Course.Kind == "segment" && t.DurationS < orZero(t.Course.LengthM)/orZero(t.SpeedMps)-rounding {
		return t.Direction
	}
	return ""
}

func text(of ...any) string {
	out, err := json.Marshal(of)
	if err != nil {
		return err.Error() // cannot be: a plan is JSON
	}
	return string(out)
}

// drive works every cell's window out in every draw, by its first trial: the others' differ in
// nothing that a radio sees.
func (p *Prediction) drive(ctx context.Context, cfg field.Config, cells []kind) error {
	for _, cell := range cells {
		first := cell.trials[0]
		out := Cell{Factors: common(cell.trials), Motion: first.Course.Kind, Direction: oneWay(first),
			SpeedMps: first.SpeedMps, WindowS: first.DurationS, Trials: len(cell.trials), NearestM: math.Inf(1)}
		e := p.Estimate.Trials[first.Number-1]
		opens := time.Duration((e.ApproachS + e.LeadS) * float64(time.Second))
		windows, err := p.eachDraw(ctx, cfg, func(cfg field.Config) (field.Saturation, error) {
			return field.Saturate(cfg, first, opens)
		})
		if err != nil {
			return err
		}
		for _, w := range windows {
			out.NearestM, out.FarthestM = min(out.NearestM, w.NearestM), max(out.FarthestM, w.FarthestM)
		}
		out.GoodputMbps = goodput(windows)
		out.WithinReach = expected(windows, 1, func(w field.Saturation) float64 { return w.WithinReach })
		p.Cells = append(p.Cells, out)
	}
	slices.SortStableFunc(p.Cells, func(a, b Cell) int {
		return cmp.Or(strings.Compare(a.Motion, b.Motion), cmp.Compare(orZero(a.SpeedMps), orZero(b.SpeedMps)),
			strings.Compare(a.name(), b.name()))
	})
	return nil
}

// common are the factors whose level all trials share.
func common(trials []wire.Trial) map[string]string {
	out := maps.Clone(trials[0].Factors)
	for _, t := range trials {
		maps.DeleteFunc(out, func(name, level string) bool { return t.Factors[name] != level })
	}
	return out
}

// stand is how long two nodes stand at each distance.
const stand = time.Second

// ladder are the distances of each of three decades, from 10 m on.
func ladder() []float64 { return []float64{1, 1.5, 2, 3, 5, 7} }

// standApart has two nodes stand farther and farther apart, until nothing comes over.
func (p *Prediction) standApart(ctx context.Context, cfg field.Config, cells []kind) error {
	var radios []kind
	for _, cell := range cells {
		radios = among(radios, onRadio(cfg, cell.trials[0]), cell.trials[0])
	}
	for _, r := range radios {
		t := r.trials[0]
		out := Radio{Trial: t.Number, Sender: t.Sender, Receiver: t.Receiver, Radio: field.RadioOf(t.Radio)}
		steps := ladder()
		for i := range 3 * len(steps) {
			apartM := steps[i%len(steps)] * math.Pow10(1+i/len(steps))
			windows, err := p.eachDraw(ctx, cfg, func(cfg field.Config) (field.Saturation, error) {
				return field.SaturateApart(cfg, t, apartM, stand)
			})
			if err != nil {
				return err
			}
			point := Point{apartM, goodput(windows)}
			out.Points = append(out.Points, point)
			if point.GoodputMbps.Value == 0 {
				break
			}
		}
		p.Distances = append(p.Distances, out)
	}
	return nil
}

// eachDraw works something out in every draw of the field, on every processor.
func (p *Prediction) eachDraw(ctx context.Context, cfg field.Config,
	work func(field.Config) (field.Saturation, error)) ([]field.Saturation, error) {
	out := make([]field.Saturation, len(p.Seeds))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for k, seed := range p.Seeds {
		g.Go(func() (err error) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			drawn := cfg
			drawn.Seed = seed
			out[k], err = work(drawn)
			return err
		})
	}
	return out, g.Wait()
}

func goodput(windows []field.Saturation) Expected {
	return expected(windows, math.Inf(1), func(w field.Saturation) float64 { return w.GoodputMbps })
}

// expected is of a number that is never below 0, nor above most.
func expected(windows []field.Saturation, most float64, of func(field.Saturation) float64) Expected {
	var values []float64
	for _, w := range windows {
		values = append(values, of(w))
	}
	s := stats.Summarise(values)
	out := Expected{Value: s.Mean}
	if s.HalfWide != nil {
		out.Low, out.High = new(max(0, s.Mean-*s.HalfWide)), new(min(most, s.Mean+*s.HalfWide))
	}
	return out
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
