// Package papers holds what five papers published and sets it beside measured
// trials: tables with both, remarks where an order differs, and what a run says
// to each claim. It measures nothing, reads no archive and draws nothing; a
// published number never enters a measured one.
package papers

import (
	_ "embed" // the published figures
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed data/p1_velocity.csv
var p1CSV string

//go:embed data/p2_variants_routing.csv
var p2CSV string

//go:embed data/statements.csv
var statementsCSV string

//go:embed data/claims.csv
var claimsCSV string

//go:embed data/figures.csv
var figuresCSV string

// Paper is one of the five.
type Paper struct {
	ID, Authors, Title string
	Means              string // how it came to its numbers
	Guide              string // the field guide that says what to expect to differ; "": none does
}

const simulated = "It simulated its networks, in ns-2"

// Simulated reports whether the paper measured nothing real.
func (p Paper) Simulated() bool { return strings.HasPrefix(p.Means, simulated) }

var all = []Paper{
	{"p1", "Eleje, Hart and Pepple", "Impact of node velocity on TCP throughput of mobile ad-hoc data network",
		"Its laptops were real, and one of them was driven in a car", ""},
	{"p2", "Oo and Othman", "The effect of packet losses and delay on TCP traffic over wireless ad hoc networks",
		simulated, "paper-variants.md"},
	{"p3", "Dyer and Boppana", "A comparison of TCP performance over three routing protocols for mobile ad hoc " +
		"networks", simulated, "paper-fixed-rto.md"},
	{"p4", "Fu, Meng and Lu", "How bad TCP can perform in mobile ad hoc networks",
		simulated + "; its R-TCP is the variant “reference” of our campaigns", "paper-reference.md"},
	{"p5", "Yuvaraju and Chiplunkar", "Scenario based performance analysis of variants of TCP using NS2", simulated,
		"paper-six-variants.md"},
}

// IDs are what a campaign may name as its paper.
func IDs() []string {
	var out []string
	for _, p := range all {
		out = append(out, p.ID)
	}
	return out
}

// Of finds a paper.
func Of(id string) (Paper, bool) {
	i := slices.IndexFunc(all, func(p Paper) bool { return p.ID == id })
	if i < 0 {
		return Paper{}, false
	}
	return all[i], true
}

// Published is what the papers printed.
type Published struct {
	Velocity   map[string]map[float64]string // P1: section → speed in m/s → MB as printed
	Cells      []Cell                        // P2's tables
	Statements []Statement                   // of the texts
	Tests      []Claim                       // of the statements
	Points     []published                   // what their texts say of points of their figures
}

// Cell is one number of P2's tables.
type Cell struct {
	Scenario, Metric, Unit, Routing, Motion, Variant string
	Value                                            float64
	Printed                                          string
}

// Statement is what a paper states of one of its figures.
type Statement struct{ ID, Paper, Setting, Quantity, Printed string }

// Read reads the embedded figures.
func Read() (Published, error) {
	var p Published
	for _, part := range []struct {
		file, text string
		fields     int
		take       func([]string) error
	}{
		{"p1_velocity.csv", p1CSV, 3, p.velocity},
		{"p2_variants_routing.csv", p2CSV, 7, p.cell},
		{"statements.csv", statementsCSV, 4, p.statement},
		{"claims.csv", claimsCSV, 9, p.claim},
		{"figures.csv", figuresCSV, 9, p.point},
	} {
		lines, err := csv.NewReader(strings.NewReader(part.text)).ReadAll()
		if err != nil {
			return p, fmt.Errorf("read published figures: %s: %w", part.file, err)
		}
		for i, l := range lines[1:] {
			if err := part.take(l); err != nil {
				return p, fmt.Errorf("read published figures: %s, line %d: %w", part.file, i+2, err)
			}
		}
	}
	order := map[string]int{}
	for i, s := range p.Statements {
		order[s.ID] = i
	}
	slices.SortStableFunc(p.Tests, func(a, b Claim) int { return order[a.ID] - order[b.ID] })
	return p, nil
}

func (p *Published) velocity(l []string) error {
	speed, err := strconv.ParseFloat(l[0], 64)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseFloat(l[2], 64); err != nil {
		return err
	}
	if p.Velocity == nil {
		p.Velocity = map[string]map[float64]string{}
	}
	if p.Velocity[l[1]] == nil {
		p.Velocity[l[1]] = map[float64]string{}
	}
	p.Velocity[l[1]][speed] = l[2]
	return nil
}

// metrics of P2, by our names.
var metrics = map[string]string{"packet_loss": "packet_loss_percent", "delay": "one_way_delay_mean_ms",
	"throughput": ThroughputPerConnection} // "to individual destinations"

// ThroughputKbitS is throughput_bps in the papers' unit, over all measured TCP
// connections of a trial.
const ThroughputKbitS = "throughput_kbit_s"

func (p *Published) cell(l []string) error {
	v, err := strconv.ParseFloat(l[6], 64)
	if err != nil {
		return err
	}
	name, known := metrics[l[1]]
	if !known {
		return fmt.Errorf("metric %q", l[1])
	}
	units := map[string]string{"percent": "%", "ms": "ms", "kbit_s": "kbit/s"}
	p.Cells = append(p.Cells, Cell{Scenario: l[0], Metric: name, Unit: units[l[2]], Routing: strings.ToLower(l[3]),
		Motion: l[4], Variant: strings.ToLower(l[5]), Value: v, Printed: l[6]})
	return nil
}

func (p *Published) statement(l []string) error {
	paper, n := strings.ToLower(l[0]), 1
	for _, s := range p.Statements {
		if s.Paper == paper {
			n++
		}
	}
	p.Statements = append(p.Statements, Statement{fmt.Sprintf("%s.%d", l[0], n), paper, l[1], l[2], l[3]})
	return nil
}

func (p *Published) claim(l []string) error {
	c := Claim{ID: l[0], Metric: l[1], Relation: Relation(l[5]), Note: l[8]}
	i := slices.IndexFunc(p.Statements, func(s Statement) bool { return s.ID == l[0] })
	if i < 0 {
		return fmt.Errorf("there is no statement %q", l[0])
	}
	s := p.Statements[i]
	c.Paper, c.Text, c.Printed = s.Paper, s.Setting+": "+s.Quantity, s.Printed
	var err error
	where, but, _ := strings.Cut(l[2], " but ")
	if c.Where, c.Each, err = readCondition(where); err != nil {
		return err
	}
	if but != "" {
		if c.But, _, err = readCondition(but); err != nil {
			return err
		}
	}
	for fact := range c.But {
		if len(c.Where[fact]) < 2 || slices.Contains(c.Each, fact) {
			return fmt.Errorf("condition %q: but excepts %s, over whose values there is no mean", l[2], fact)
		}
	}
	for _, part := range []struct {
		text string
		into *Condition
	}{{l[3], &c.A}, {l[4], &c.B}} {
		var each []string
		if *part.into, each, err = readCondition(part.text); err != nil {
			return err
		} else if each != nil {
			return fmt.Errorf("condition %q: & and * stand in the column where", part.text)
		}
	}
	if !slices.Contains(relations, c.Relation) {
		return fmt.Errorf("relation %q", l[5])
	}
	if c.Low, err = bound(l[6]); err != nil {
		return err
	}
	if c.High, err = bound(l[7]); err != nil {
		return err
	}
	p.Tests = append(p.Tests, c)
	return nil
}

func bound(text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	return &v, err
}
