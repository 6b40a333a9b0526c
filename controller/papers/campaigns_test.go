package papers_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// shipped is a campaign of a paper's, whose first repetition was driven whole.
// Its i-th trial has i as every one of its values, so that a point tells whose it
// is.
type shipped struct {
	paper     plan.Paper
	trials    []papers.Trial
	protocols []string // of routing, that its trials have
}

// allShipped are the campaigns that name a paper, by file; they are expanded once.
var allShipped = sync.OnceValues(func() (map[string]shipped, error) {
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil {
		return nil, err
	}
	out := map[string]shipped{}
	for _, file := range files {
		c, err := plan.Load(file)
		if err != nil {
			return nil, err
		}
		if c.Paper == nil {
			continue
		}
		if c.Crosses() { // by no links: who has a flow does not matter here
			err = c.DrawAcross(func(wire.Trial, float64) (*draw.Links, error) { return &draw.Links{}, nil })
			if err != nil {
				return nil, err
			}
		}
		schedule, err := c.Schedule()
		if err != nil {
			return nil, err
		}
		one := shipped{paper: *c.Paper}
		for _, s := range schedule {
			if s.Repetition > 1 || s.Pass != "" {
				continue
			}
			if s.Routing.HoldsData() && !slices.Contains(one.protocols, s.Routing.Protocol) {
				one.protocols = append(one.protocols, s.Routing.Protocol)
			}
			v := float64(len(one.trials))
			values := map[string]float64{papers.HopsMean: v}
			for name := range papers.ValueUnits {
				values[name] = v
			}
			if s.DurationS != 10 { // as the report has it
				delete(values, papers.TransferredIn10S)
			}
			one.trials = append(one.trials, papers.Trial{Repetition: 1, Facts: papers.Facts(s), Factors: s.Factors,
				Values: values})
		}
		out[filepath.Base(file)] = one
	}
	return out, nil
})

func read(t *testing.T) (papers.Published, map[string]shipped) {
	t.Helper()
	published, err := papers.Read()
	if err != nil {
		t.Fatal(err)
	}
	campaigns, err := allShipped()
	if err != nil {
		t.Fatal(err)
	}
	return published, campaigns
}

func alone(v []float64) (mean float64, half *float64) { return v[0], nil }

// A routing daemon of ours is never to the letter the one that a paper ran. In what it is another, each campaign that
// has it says: a deviation begins with its name.
func TestEachRoutingDaemonOfOursIsNamedInADeviation(t *testing.T) {
	_, campaigns := read(t)
	names := 0
	for file, c := range campaigns {
		for _, protocol := range c.protocols {
			name, _, _ := strings.Cut(protocol, "-")
			is := regexp.MustCompile(`^([A-Z]+ and )?` + strings.ToUpper(name) + `\b`)
			if !slices.ContainsFunc(c.paper.Deviations, is.MatchString) {
				t.Errorf("%s: %s routes, and no deviation names it", file, protocol)
			}
			names++
		}
	}
	if names < 15 {
		t.Errorf("the campaigns have %d protocols in all", names)
	}
}

// The shipped campaigns, driven whole, feed every one of the papers' sweeps: a
// campaign has two points or more of each of its panels, and none is of a mixture.
func TestTheCampaignsFeedThePapersFigures(t *testing.T) {
	published, campaigns := read(t)
	fed := map[string]bool{}
	for file, c := range campaigns {
		for _, f := range papers.Figures(c.paper.Name) {
			if f.Kind != papers.Sweep || f.Scenario != "" && f.Scenario != c.paper.Scenario {
				continue
			}
			d := published.Plotted(f, c.trials, alone)
			whole := len(d.Missing) == 0
			for _, p := range d.Plots {
				for _, curve := range p.Curves {
					whole = whole && len(curve.Ours) > 1
				}
			}
			for _, m := range d.Missing {
				if strings.Contains(m, "differ in") {
					t.Errorf("%s, %s %s: %s", file, f.Paper, f.Number, m)
				}
			}
			if whole {
				fed[f.Paper+" "+f.Number] = true
			}
		}
	}
	for _, paper := range papers.IDs() {
		for _, f := range papers.Figures(paper) {
			if name := f.Paper + " " + f.Number; f.Kind == papers.Sweep && !fed[name] {
				t.Errorf("no campaign feeds %s whole", name)
			}
		}
	}
	if !slices.Contains(papers.IDs(), "p5") || len(fed) < 20 {
		t.Errorf("%d figures are fed", len(fed))
	}
}

// Of P4's two campaigns each figure takes the cells that the paper has in it, at
// their place on its axis, and no others.
func TestP4sFiguresTakeTheirCells(t *testing.T) {
	published, campaigns := read(t)
	cells := func(format string, levels ...string) (out []string) {
		for _, l := range levels {
			out = append(out, fmt.Sprintf(format, l))
		}
		return out
	}
	speeds := []string{"0", "1", "2", "5", "10", "15", "20"}
	for file, want := range map[string]map[string][]string{
		"reference-tcp.yaml": {
			"Figure 3 mobility only":                              cells("%[1]s: none 0 %[1]s", speeds...),
			"Figure 3 mobility + congestion":                      cells("%[1]s: udp 0 %[1]s", speeds...),
			"Figure 3 mobility + channel error 1 %":               cells("%[1]s: none 1 %[1]s", speeds...),
			"Figure 4 mobility + channel error 10 %":              cells("%[1]s: none 10 %[1]s", speeds...),
			"Figure 4 mobility + congestion + channel error 1 %":  cells("%[1]s: udp 1 %[1]s", speeds...),
			"Figure 4 mobility + congestion + channel error 10 %": cells("%[1]s: udp 10 %[1]s", speeds...),
			"Figure 5, plot 4 ":                                   {"udp 1 5"}, // of the default of section 3.6
		},
		"reference-tcp-settings.yaml": {
			"Figure 4 mobility + congestion + channel error 1 %": {"5: default"},
			"Figure 5, plot 1 ": slices.Insert(cells("%[1]s: window_%[1]s", "1", "2", "4", "16", "32"), 3,
				"8: default"),
			"Figure 5, plot 2 ": cells("%[1]s: aodv_%[1]s", "0", "1", "5", "10", "15", "20"),
			"Figure 5, plot 3 ": slices.Insert(cells("%[1]s: queue_%[1]s", "5", "10", "25", "100"), 3,
				"50: default"),
			"Figure 5, plot 4 ": append(cells("hops_%s", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11",
				"12"), "default"),
		},
	} {
		c := campaigns[file]
		got := map[string]bool{}
		for _, f := range papers.Figures("p4") {
			for _, p := range published.Plotted(f, c.trials, alone).Plots {
				name := f.Number + " " + p.Name
				got[name] = true
				for i, variant := range []string{"newreno", "reference"} {
					var of []string
					for _, m := range p.Curves[i].Ours {
						factors := c.trials[int(m.Y/1000+0.5)].Factors // kbit/s, drawn as bit/s
						cell := strings.TrimSpace(strings.Join([]string{factors["congestion"], factors["error"],
							factors["node_speed"]}, " ") + factors["setting"])
						if f.X.Value == "" {
							cell = fmt.Sprintf("%g: %s", m.X, cell)
						}
						of = append(of, cell)
						if factors["variant"] != variant || m.N != 1 {
							t.Errorf("%s, %s, %s: %+v is of %v", file, name, variant, m, factors)
						}
					}
					expected := slices.Clone(want[name])
					if f.X.Value != "" {
						slices.Sort(of)
						slices.Sort(expected)
					}
					if !slices.Equal(of, expected) {
						t.Errorf("%s, %s, %s: %q, want %q", file, name, variant, of, expected)
					}
				}
			}
		}
		for name := range want {
			if !got[name] {
				t.Errorf("%s: %s is not drawn", file, name)
			}
		}
	}
}

// P4's reference TCP and NewReno have one least RTO: neither waits longer than the
// other before it tries again.
func TestTheReferenceAndItsBaselineHaveOneLeastRTO(t *testing.T) {
	_, campaigns := read(t)
	least := map[string]map[string]bool{} // variant → ms
	for _, c := range campaigns {
		if c.paper.Name != "p4" {
			continue
		}
		for _, trial := range c.trials {
			variant := trial.Facts["variant"]
			if least[variant] == nil {
				least[variant] = map[string]bool{}
			}
			least[variant][trial.Facts["rto_min_ms"]] = true
		}
	}
	want := map[string]bool{"1000": true}
	if len(least) != 2 || !maps.Equal(least["reference"], want) || !maps.Equal(least["newreno"], want) {
		t.Errorf("least RTOs in ms by variant are %v, want 1000 of newreno and reference", least)
	}
}

// A claim names all that its campaign varies, so that a run of a part of the campaign
// cannot answer for the whole.
func TestClaimsNameWhatTheirCampaignVaries(t *testing.T) {
	published, campaigns := read(t)
	named := func(c papers.Condition, trial papers.Trial) bool {
		for fact, values := range c {
			if !slices.Contains(values, trial.Facts[fact]) {
				return false
			}
		}
		return true
	}
	for file, campaign := range campaigns {
		for _, c := range published.Claims(campaign.paper.Name, campaign.paper.Scenario) {
			cells := map[string]map[string]map[string]bool{} // by what the claim names: fact → values
			asked := [2]bool{false, len(c.B) == 0}
			for _, trial := range campaign.trials {
				if c.Relation == papers.None || !named(c.Where, trial) || !named(c.A, trial) && !named(c.B, trial) {
					continue
				}
				asked[0], asked[1] = asked[0] || named(c.A, trial), asked[1] || named(c.B, trial)
				key := ""
				for _, k := range []papers.Condition{c.Where, c.A, c.B} {
					for _, fact := range slices.Sorted(maps.Keys(k)) {
						key += fact + "=" + trial.Facts[fact] + " "
					}
				}
				if cells[key] == nil {
					cells[key] = map[string]map[string]bool{}
				}
				for fact, value := range trial.Facts {
					if cells[key][fact] == nil {
						cells[key][fact] = map[string]bool{}
					}
					cells[key][fact][value] = true
				}
			}
			var pooled []string
			for _, cell := range cells {
				for fact, values := range cell {
					if fact != "ends" && fact != "tcp" && len(values) > 1 && !slices.Contains(pooled, fact) {
						pooled = append(pooled, fact)
					}
				}
			}
			if len(pooled) > 0 && asked[0] && asked[1] {
				slices.Sort(pooled)
				t.Errorf("%s: %s is a mean over all of %v, of which it names no value", file, c.ID, pooled)
			}
		}
	}
}

// A campaign that is driven whole has every combination of values over which a claim that it asks
// has a mean.
func TestAWholeCampaignLacksNoCombination(t *testing.T) {
	published, campaigns := read(t)
	answered, lacking := map[string]bool{}, map[string]string{}
	for file, campaign := range campaigns {
		var all []papers.Trial
		for rep := 1; rep <= 3; rep++ {
			for _, one := range campaign.trials {
				one.Repetition = rep
				all = append(all, one)
			}
		}
		claims := published.Claims(campaign.paper.Name, campaign.paper.Scenario)
		for _, a := range papers.Answers(claims, all, func(int) papers.Summariser { return alone }) {
			for _, p := range a.Parts {
				part := a.ID + ", " + p.What
				if _, lacks, without := strings.Cut(p.Test, "not asked of "); without {
					lacking[part] = file + " lacks " + lacks
				} else if p.N > 0 {
					answered[part] = true
				}
			}
		}
	}
	for part, lacks := range lacking {
		if !answered[part] {
			t.Errorf("%s: %s", part, lacks)
		}
	}
	if len(answered) < 200 {
		t.Errorf("only %d parts are asked", len(answered))
	}
}

// Campaigns of one paper name alike in what they all are not it.
func TestCampaignsOfAPaperNameWhatTheyShare(t *testing.T) {
	_, campaigns := read(t)
	for _, k := range []struct{ says, files, of string }{
		{"1.2 GHz", "velocity.yaml velocity-powered.yaml velocity-phones.yaml", "the radio's channel"},
		{"with Iperf under Windows", "velocity.yaml velocity-powered.yaml velocity-phones.yaml", "its tool"},
		{"Where the car was", "velocity.yaml velocity-phones.yaml", "where the car starts"},
		{"Windows are of", "variants-chain.yaml variants-grid.yaml variants-random.yaml", "its windows"},
		{"11 Mbit/s", "variants-chain.yaml variants-grid.yaml variants-random.yaml", "its rate"},
		{"window opens when", "variants-chain.yaml variants-grid.yaml", "when the window opens"},
		{"does not answer ARP", "variants-random.yaml variants-grid.yaml fixed-rto.yaml reference-tcp.yaml " +
			"reference-tcp-settings.yaml six-variants.yaml", "when a client gives up"},
		{"ends stand in opposite corners", "reference-tcp.yaml reference-tcp-settings.yaml", "the ends of TCP"},
	} {
		for file := range strings.SplitSeq(k.files, " ") {
			if !slices.ContainsFunc(campaigns[file].paper.Deviations, func(d string) bool {
				return strings.Contains(d, k.says)
			}) {
				t.Errorf("%s does not say in what it differs from the paper in %s", file, k.of)
			}
		}
	}
}
