package preflight

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// starts is a plan whose car must have stood at its start, which is measured from a roadside node whose place the
// campaign does not say.
func starts() wire.RunPlan {
	p := need()
	p.Trials[0].Gate.AtStart, p.Trials[0].Course = true, wire.Course{Kind: "depart", StartM: 10}
	return p
}

func roadside() Told {
	n := well()
	n.Status.Node, n.Status.AtStart = "road", true
	n.Status.GPS.LatDeg, n.Status.GPS.LonDeg, n.Status.GPS.HorizErrM = new(50.0), new(8.0), new(4.0)
	return n
}

func TestAStartIsMeasuredFromAGoodFixOnly(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*wire.RunPlan, *wire.GPS)
		want  []string
	}{
		"a good fix":            {func(*wire.RunPlan, *wire.GPS) {}, []string{Met}},
		"no height":             {func(_ *wire.RunPlan, g *wire.GPS) { g.Mode = 2 }, []string{Unmet}},
		"a fix of long ago":     {func(_ *wire.RunPlan, g *wire.GPS) { g.FixAgeMs = new(60e3) }, []string{Unmet}},
		"no position":           {func(_ *wire.RunPlan, g *wire.GPS) { g.LatDeg = nil }, []string{Unmet}},
		"after a cold start":    {func(_ *wire.RunPlan, g *wire.GPS) { g.HorizErrM = new(60.0) }, []string{Unmet}},
		"no estimate":           {func(_ *wire.RunPlan, g *wire.GPS) { g.HorizErrM = nil }, []string{Met}},
		"the campaign says one": {func(p *wire.RunPlan, _ *wire.GPS) { p.Trials[0].Course.SiteLatDeg = new(1.0) }, nil},
		"nobody must stand":     {func(p *wire.RunPlan, _ *wire.GPS) { p.Trials[0].Gate.AtStart = false }, nil},
	} {
		p, n := starts(), roadside()
		c.spoil(&p, n.Status.GPS)
		if states, words := told(Judge(p, "road", 3600, n), "site"); !slices.Equal(states, c.want) {
			t.Errorf("%s: %v %s", name, states, words)
		}
	}
}

// A run has the place at which its roadside node stood when it was begun, or that the campaign says. Where the node
// stands now is held against it: a car would be sent to a start that is nearer or farther than the plan has it.
func TestARoadsideNodeStandsWhereStartsAreMeasuredFrom(t *testing.T) {
	const metre = 180 / math.Pi / earth.MeanRadiusM // in degrees of latitude
	at := func(northM float64) func(*wire.RunPlan, *wire.GPS) {
		return func(p *wire.RunPlan, _ *wire.GPS) {
			c := &p.Trials[0].Course
			c.SiteLatDeg, c.SiteLonDeg = new(50+northM*metre), new(8.0)
		}
	}
	for name, c := range map[string]struct {
		spoil func(*wire.RunPlan, *wire.GPS)
		want  []string
	}{
		"there":              {at(0), []string{Met}},
		"at the same tree":   {at(28), []string{Met}},
		"within both errors": {at(33), []string{Unknown}}, // 4 m now, and 25 m that a gate allows
		"along the road":     {at(36), []string{Unmet}},
		"on another road":    {at(-12400), []string{Unmet}},
		"with a worse fix now": {func(p *wire.RunPlan, g *wire.GPS) {
			at(36)(p, g)
			g.HorizErrM = new(20.0)
		}, []string{Met}},
		"without an estimate": {func(p *wire.RunPlan, g *wire.GPS) { at(54)(p, g); g.HorizErrM = nil }, []string{Met}},
		"far, without one": {func(p *wire.RunPlan, g *wire.GPS) {
			at(59)(p, g)
			g.HorizErrM = nil
		}, []string{Unknown}},
		"in its cold start": {func(p *wire.RunPlan, g *wire.GPS) {
			at(12400)(p, g)
			g.Mode, g.FixAgeMs = 1, nil
		}, []string{Unmet}},
		"with a rough fix": {func(p *wire.RunPlan, g *wire.GPS) {
			at(0)(p, g)
			g.HorizErrM = new(60.0)
		}, []string{Unmet}},
		"without a receiver": {func(p *wire.RunPlan, g *wire.GPS) { at(100)(p, g); *g = wire.GPS{} }, nil},
		"cold where nobody must stand": {func(p *wire.RunPlan, g *wire.GPS) {
			at(100)(p, g)
			p.Trials[0].Gate.AtStart, g.Mode = false, 1
		}, nil},
		"nobody must stand": {func(p *wire.RunPlan, g *wire.GPS) {
			at(100)(p, g)
			p.Trials[0].Gate.AtStart = false
		}, nil},
		"at one of two sites": {func(p *wire.RunPlan, g *wire.GPS) {
			p.Trials = append(p.Trials, p.Trials[0])
			at(100)(p, g)
			p.Trials[1].Course.SiteLatDeg, p.Trials[1].Course.SiteLonDeg = new(50.0), new(8.0)
		}, []string{Met}},
		"in the car in another trial": {func(p *wire.RunPlan, g *wire.GPS) {
			at(100)(p, g)
			p.Trials = append(p.Trials, p.Trials[0])
			p.Trials[1].Car, p.Trials[1].Roadside = "road", "car"
		}, nil},
	} {
		p, n := starts(), roadside()
		c.spoil(&p, n.Status.GPS)
		states, words := told(Judge(p, "road", 3600, n), "site")
		if !slices.Equal(states, c.want) {
			t.Errorf("%s: %v %s", name, states, words)
		}
		if slices.Contains(states, Unmet) && !strings.Contains(words, "; where nothing is left to drive, "+
			"`fieldmesh pull RUN` collects and judges without it; ") {
			t.Errorf("%s: the cure begins with something else: %s", name, words)
		}
	}
}

// An older agent would open the window on the drive back.
func TestAnAgentMustKnowThatACarStandsAtItsStart(t *testing.T) {
	n := roadside()
	n.Status.AtStart = false
	if states, words := told(Judge(starts(), "road", 3600, n), "start"); !slices.Equal(states, []string{Unmet}) {
		t.Errorf("%v %s", states, words)
	}
	if states, words := told(Judge(need(), "road", 3600, n), "start"); states != nil {
		t.Errorf("where nobody must stand: %v %s", states, words)
	}
}

// Where nodes swap their roles one of those beside the road is in the car when the run begins.
func TestNoStartIsMeasuredFromACar(t *testing.T) {
	p := starts()
	other := p.Trials[0]
	other.Number, other.Car, other.Roadside = 2, "road", "car"
	p.Trials = append(p.Trials, other)
	if _, err := Locate(t.Context(), &p, "/nowhere", 0); err == nil || !strings.Contains(err.Error(), "in others") {
		t.Error(err)
	}
	p.Trials[0].Course.SiteLatDeg, p.Trials[0].Course.SiteLonDeg = new(1.0), new(1.0)
	p.Trials[1].Course = p.Trials[0].Course
	if said, err := Locate(t.Context(), &p, "/nowhere", 0); said != "" || err != nil {
		t.Errorf("of a plan that says where: %q, %v", said, err)
	}
}

// The shipped campaign of two phones, of which the one at the roadside has no app: its place has to be in the campaign,
// and then it needs no GPS.
func TestTwoPhonesNeedTheRoadsidesPlace(t *testing.T) {
	const file = "../../campaigns/velocity-phones.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := roadside()
	n.Status.Node, n.Status.GPS, n.Status.GPSRateHz = "bravo", &wire.GPS{}, nil
	n.Status.Problems = []wire.Problem{{Need: "gps", Found: "no app tells where the node is", Cure: "start it"}}
	for name, c := range map[string]struct{ site, gps, want, say string }{
		"the file as it is": {"", Unneeded, Unmet, "no app tells where the node is, and a fresh 3-D fix is needed; " +
			"give course.site_lat_deg"},
		"with its place": {", site_lat_deg: 50.1, site_lon_deg: 8.7", Unneeded, "", ""},
	} {
		campaign := strings.Replace(string(text), "heading_deg: 90}", "heading_deg: 90"+c.site+"}", 1)
		parsed, err := plan.Parse(file, []byte(campaign))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, err := parsed.RunPlan("a", make([]byte, wire.GoKeyBytes))
		if err != nil {
			t.Fatal(err)
		}
		items := Judge(p, "bravo", 3600, n)
		states, words := told(items, "site")
		if strings.Join(states, " ") != c.want || !strings.Contains(words, c.say) {
			t.Errorf("%s: site %v %s", name, states, words)
		}
		if states, words := told(items, "gps"); !slices.Equal(states, []string{c.gps}) {
			t.Errorf("%s: gps %v %s", name, states, words)
		}
	}
}

// A campaign whose nodes swap their places is not driven on a road unless it says where the roadside node stands:
// preflight says so before the run does.
func TestSwappedNodesNeedTheRoadsidesPlace(t *testing.T) {
	text, err := os.ReadFile("../../campaigns/velocity-phones.yaml")
	if err != nil {
		t.Fatal(err)
	}
	swap := "factors:\n  car_unit: {levels: {a: {car: alpha, roadside: bravo}, b: {car: bravo, roadside: alpha}}}\n"
	file := strings.Replace(string(text), "\nfactors:\n", "\n"+swap, 1)
	for name, c := range map[string]struct{ file, want string }{
		"nobody swaps": {string(text), ""},
		"no site":      {file, "which is alpha in some trials and bravo in others"},
		"the file tells it": {strings.Replace(file, "heading_deg: 90}",
			"heading_deg: 90, site_lat_deg: 50.1, site_lon_deg: 8.7}", 1), ""},
	} {
		parsed, err := plan.Parse("f", []byte(c.file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found := ""
		for _, i := range campaign(parsed, Given{}, false) {
			if i.Need == "site" && i.State == Unmet {
				found += i.Found
			}
		}
		if (found == "") != (c.want == "") || !strings.Contains(found, c.want) {
			t.Errorf("%s: %q, want %q", name, found, c.want)
		}
	}
}
