package report

import (
	_ "embed" // the published figures
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

//go:embed papers/p1_velocity.csv
var p1CSV string

// published is P1's results: section → speed in m/s → MB as printed.
type published map[string]map[float64]string

// readPublished parses the embedded table. Its numbers are kept as they are
// printed: nothing is computed from them.
func readPublished(text string) (published, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read published figures: %w", err)
	}
	out := published{}
	for _, l := range lines[1:] {
		speed, err := strconv.ParseFloat(l[0], 64)
		if err != nil {
			return nil, fmt.Errorf("read published figures: %w", err)
		}
		if out[l[1]] == nil {
			out[l[1]] = map[float64]string{}
		}
		out[l[1]][speed] = l[2]
	}
	return out, nil
}

// asksP1 tells whether the campaign puts P1's question, so that P1's answer
// belongs beside it: its name says so and its factors are speed and section.
func asksP1(d *data) bool {
	return strings.HasPrefix(d.info.Campaign, "velocity") && speedBySection(d)
}

// speedBySection tells whether speed and section are what the campaign varies.
func speedBySection(d *data) bool {
	all := d.planned()
	if len(speeds(all)) < 2 {
		return false
	}
	for _, s := range levels(all, section) {
		if s != "A" && s != "B" {
			return false
		}
	}
	return len(levels(all, section)) > 0 && len(furtherFactors(all)) == 0
}

// planned are the plan's ordinary trials, as attempts without numbers.
func (d *data) planned() []attempt {
	var out []attempt
	for _, t := range d.info.Plan.Trials {
		if t.Pass == "" {
			out = append(out, attempt{Trial: t, Section: sectionOf(t), Unit: d.unitOf(t)})
		}
	}
	return out
}
