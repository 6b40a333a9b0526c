// Package synthetic makes runs for tests: plans, records and whole archives
// with known answers, from a seed. It is not a simulation: nothing in it claims
// to be what a radio would do.
package synthetic

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// P1Speeds are the six speeds of the main job, in m/s.
var P1Speeds = []float64{2.8, 5.6, 8.3, 11.1, 13.9, 16.7}

// Options shape a run of speed × section. The zero value of each is described
// beside it.
type Options struct {
	Scale       *plan.Scale // nil: the campaign as its file has it
	Seed        uint64
	Campaign    string    // "velocity"
	Paper       string    // whose question the campaign puts; nobody's
	Speeds      []float64 // P1Speeds
	Repetitions int       // 2
	Units       []string  // of the car's node, in turn by block; one: "laptop-1"
	Confounded  bool      // section B is driven with the other unit in the car, as in P1
	Course      string    // "depart"
	Place       string    // "rehearsal"
	Begun       time.Time // 14 March 2026, 9:30 UTC
	Raw         []byte    // the campaign file; nil: a line that is none

	CampaignSHA256 string // as the plan has it; zeros

	Draws    string         // which trials of a rehearsal share one draw of the channel; all
	StopWhen *plan.StopWhen // when it has enough; nil: never

	NoField bool // a road: no records of an emulated field
	Relays  int  // nodes in rows of ten beside the road, besides the two
	Roam    bool // they go round their places, and are sampled once a second; else they stand, at 10 Hz
	Enough  int  // blocks after which the run had enough, and went on; 0: it never had

	// MB gives the megabytes of a trial; nil: 20, less 0.4 for each m/s in
	// section A, with noise.
	MB func(t wire.Trial, noise *rand.Rand) float64
	// WindowS gives the length of a trial's window in seconds; nil: 10.
	WindowS func(t wire.Trial) float64
	// Change may change a trial of the plan; nil: none.
	Change func(t *wire.Trial)
	// Mishap may change an attempt's conditions; nil: none. Attempts go on until
	// one is accepted.
	Mishap func(t wire.Trial, attempt int, c *Conditions)
}

func (o Options) withDefaults() Options {
	if o.Campaign == "" {
		o.Campaign = "velocity"
	}
	if o.CampaignSHA256 == "" {
		o.CampaignSHA256 = strings.Repeat("0", 64)
	}
	if o.Raw == nil {
		o.Raw = []byte("campaign: " + o.Campaign + "\n")
	}
	if o.Speeds == nil {
		o.Speeds = P1Speeds
	}
	if o.Repetitions == 0 {
		o.Repetitions = 2
	}
	if o.Units == nil {
		o.Units = []string{"laptop-1"}
	}
	if o.Course == "" {
		o.Course = "depart"
	}
	if o.Place == "" {
		o.Place = "rehearsal"
	}
	if o.Begun.IsZero() {
		o.Begun = time.Date(2026, 3, 14, 9, 30, 0, 0, time.UTC)
	}
	if o.MB == nil {
		o.MB = func(t wire.Trial, noise *rand.Rand) float64 {
			mb := 20 + noise.NormFloat64()*0.8
			if t.Factors["section"] == "A" {
				mb -= 0.4 * *t.SpeedMps
			}
			return max(mb, 0)
		}
	}
	return o
}

// Plan is the schedule of the options: every cell once in each block, in an
// order drawn from the seed.
func Plan(o Options) wire.RunPlan {
	o = o.withDefaults()
	p := wire.RunPlan{
		Run: "synthetic-" + fmt.Sprint(o.Seed), Campaign: o.Campaign, Seed: o.Seed, AttemptsMax: 3,
		CampaignSHA256: o.CampaignSHA256,
		Key:            []byte("a key that must not be archived!"),
		Nodes: []wire.PlanNode{
			{Name: "car", Unit: o.Units[0], MeshPrefix: "10.77.0.1/24", GoPort: 5577},
			{Name: "roadside", Unit: "laptop-2", MeshPrefix: "10.77.0.2/24", GoPort: 5577},
		},
	}
	var relays []string
	for i := range o.Relays {
		relays = append(relays, fmt.Sprintf("relay-%03d", i+1))
		p.Nodes = append(p.Nodes, wire.PlanNode{Name: relays[i], Unit: relays[i],
			MeshPrefix: fmt.Sprintf("10.77.%d.%d/16", 1+i/200, 1+i%200), GoPort: 5577})
	}
	order := rand.New(rand.NewPCG(o.Seed, 1))
	for block := 1; block <= o.Repetitions; block++ {
		var cells []wire.Trial
		for _, section := range []string{"A", "B"} {
			for i, speed := range o.Speeds {
				direction := []string{"outbound", "inbound"}[(i+block)%2]
				cells = append(cells, trial(o, section, speed, block, direction))
			}
		}
		order.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
		for _, t := range cells {
			t.Number, t.Relays = len(p.Trials)+1, relays
			if o.Roam {
				t.RelaySampleHz = new(1)
			}
			if o.WindowS != nil {
				t.DurationS = o.WindowS(t)
				t.Traffic[0].DurationS = t.DurationS
			}
			if o.Change != nil {
				o.Change(&t)
			}
			p.Trials = append(p.Trials, t)
		}
	}
	return p
}

func trial(o Options, section string, speed float64, block int, direction string) wire.Trial {
	unit := o.Units[(block-1)%len(o.Units)]
	if o.Confounded {
		unit = map[string]string{"A": "laptop-1", "B": "laptop-2"}[section]
	}
	t := wire.Trial{
		Block: block, Repetition: block, Direction: direction,
		Factors: map[string]string{"speed_mps": fmt.Sprint(speed), "section": section, "car_unit": unit},
		Car:     "car", Roadside: "roadside", Sender: "car", Receiver: "roadside", Initiator: "car",
		SpeedMps: &speed, DurationS: 10,
		Course:  wire.Course{Kind: o.Course, AccelMps2: 1.5, BrakeMps2: 2, OffsetM: 5},
		Gate:    wire.Gate{SpeedBand: true, HoldS: 1, TimeoutS: 60, LeadS: 0.5},
		Radio:   wire.Radio{Mode: "adhoc", Standard: "802.11g", Channel: 6, TxPowerDbm: new(20.0)},
		Routing: wire.Routing{Protocol: "static"}, TCP: wire.TCP{Variant: "reno"},
		Acceptance: wire.Acceptance{
			SpeedBandMps: new(0.8), InBandShareMin: new(0.9), FixModeMin: new(3), FixAgeMsMax: new(1500.0),
			ClockErrorMsMax: new(20.0), LatenessShareMax: new(0.02),
		},
	}
	if section == "B" {
		t.Sender, t.Receiver = t.Receiver, t.Sender
	}
	t.Traffic = []wire.Flow{{
		Name: "bulk", Kind: "iperf3_tcp", From: t.Sender, To: t.Receiver, Port: 5000, Streams: 6,
		WindowBytes: new(65536), DurationS: 10, ClientPort: 42000,
	}}
	return t
}
