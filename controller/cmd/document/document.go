// Package document has the JSON documents that commands print with --json.
package document

import (
	"encoding/json"
	"io"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/calibrate"
	"fieldmesh.dev/fieldmesh/controller/compare"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/plan/show"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Check is what `plan check --json` prints.
type Check struct {
	File     string        `json:"file"`
	OK       bool          `json:"ok"`
	Campaign string        `json:"campaign,omitempty"`
	Trials   int           `json:"trials,omitempty"`
	Problems tree.Problems `json:"problems"`
	Warnings []string      `json:"warnings"`
}

// Plan writes what `plan show --json` prints.
func Plan(w io.Writer, c *plan.Campaign) error {
	trials, err := c.Schedule()
	if err != nil {
		return err
	}
	return Write(w, struct {
		Campaign  string             `json:"campaign"`
		Title     string             `json:"title"`
		SHA256    string             `json:"campaign_sha256"`
		Nodes     []plan.Node        `json:"nodes"`
		Factors   []plan.Factor      `json:"factors"`
		Design    plan.Design        `json:"design"`
		Paper     *plan.Paper        `json:"paper,omitempty"`
		Site      *environment.Site  `json:"site,omitempty"`
		Field     *environment.Field `json:"field,omitempty"`
		Trials    []wire.Trial       `json:"trials"`
		Estimate  drive.Estimate     `json:"estimate"`
		Estimable design.Estimable   `json:"estimable"`
	}{c.Name, c.Title, c.SHA256, c.Nodes, c.Factors, c.Design, c.Paper, c.Site, c.Field, trials, c.Estimate(),
		show.Estimable(c, trials)})
}

// Finding is a file that is not as the run wrote it.
type Finding struct {
	Path    string `json:"path"`
	Problem string `json:"problem"`
	Detail  string `json:"detail,omitempty"`
}

// Findings are what `verify` found, none as an empty list.
func Findings(all []archive.Finding) []Finding {
	out := []Finding{}
	for _, f := range all {
		out = append(out, Finding{f.Path, f.Problem, f.Detail})
	}
	return out
}

// Verify is what `verify --json` prints.
type Verify struct {
	Run      string    `json:"run"`
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
	Signed   []string  `json:"signed"` // who signed what, as verify says it; null where files were altered
}

// Report is what `report --json` prints.
type Report struct {
	Report  string    `json:"report"`
	PDF     string    `json:"pdf,omitempty"` // with --pdf
	Metrics string    `json:"metrics"`
	Altered []Finding `json:"altered"`
}

// Number is one number of `metrics --json`.
type Number struct {
	Trial      int     `json:"trial"`
	Attempt    int     `json:"attempt"`
	Flow       string  `json:"flow,omitempty"`
	Name       string  `json:"name"`
	Unit       string  `json:"unit"`
	Value      float64 `json:"value"`
	Definition string  `json:"definition"`
}

// Metrics writes every number of a run.
func Metrics(w io.Writer, a *archive.Archive) error {
	rows, err := metrics.Table(a)
	if err != nil {
		return err
	}
	out := struct {
		Run     string   `json:"run"`
		Numbers []Number `json:"numbers"`
	}{a.Info().Run, []Number{}}
	for _, r := range rows {
		out.Numbers = append(out.Numbers, Number{r.Trial, r.Attempt, r.Flow, r.Name, r.Unit, r.Value, r.Definition})
	}
	return Write(w, out)
}

// meanJSON is of the trials of a cell; what is not known is absent.
type meanJSON struct {
	N         int      `json:"n"`
	Value     float64  `json:"value"`
	HalfWidth *float64 `json:"half_width,omitempty"`
}

// Cell is one number of one cell in both runs.
type Cell struct {
	Cell       string    `json:"cell"`
	Name       string    `json:"name"`
	Unit       string    `json:"unit"`
	Road       *meanJSON `json:"road,omitempty"`
	Rehearsal  *meanJSON `json:"rehearsal,omitempty"`
	Difference *float64  `json:"difference,omitempty"` // the rehearsal less the road
	HalfWidth  *float64  `json:"difference_half_width,omitempty"`
}

// Compared is what `compare --json` prints.
type Compared struct {
	Road       string   `json:"road"`
	Rehearsal  string   `json:"rehearsal"`
	Confidence float64  `json:"confidence"`
	Cells      []Cell   `json:"cells"`
	Replay     *replay  `json:"replay,omitempty"`
	Notes      []string `json:"notes"`
}

// replay is how well a calibrated rehearsal foretold what was held out from the calibration.
type replay struct {
	HeldOut []int         `json:"held_out_repetitions"`
	Errors  []replayError `json:"errors"`
}

type replayError struct {
	Of            string   `json:"of"`
	RoadMbps      float64  `json:"road_mbps"`
	RehearsalMbps float64  `json:"rehearsal_mbps"`
	ErrorPercent  *float64 `json:"error_percent,omitempty"` // of the road's; absent where that is 0
	LowPercent    *float64 `json:"low_percent,omitempty"`   // the ends of the error's interval; absent: none is known
	HighPercent   *float64 `json:"high_percent,omitempty"`
}

func replayOf(r *compare.Replay) *replay {
	if r == nil {
		return nil
	}
	percent := func(share *float64) *float64 {
		if share == nil {
			return nil
		}
		return new(100 * *share)
	}
	out := &replay{HeldOut: r.HeldOut, Errors: []replayError{}}
	for _, e := range r.Errors {
		out.Errors = append(out.Errors, replayError{e.Of, e.Held, e.Rehearsed, percent(e.Share), percent(e.Low),
			percent(e.High)})
	}
	return out
}

// Compare is a road run beside its rehearsal.
func Compare(t *compare.Table) Compared {
	mean := func(m *compare.Mean) *meanJSON {
		if m == nil {
			return nil
		}
		return &meanJSON{m.N, m.Value, m.HalfWide}
	}
	out := Compared{t.A.Run, t.B.Run, t.Confidence(), []Cell{}, replayOf(t.Replay),
		append([]string{}, t.Notes...)}
	for _, d := range t.Differences {
		out.Cells = append(out.Cells, Cell{d.Cell, d.Number.Name, d.Number.Unit, mean(d.A), mean(d.B), d.Apart,
			d.HalfWide})
	}
	return out
}

// estimateJSON is a fitted value with its 95 % interval.
type estimateJSON struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Calibrated is what `calibrate --json` prints; what the run cannot tell is absent.
type Calibrated struct {
	Run               string                  `json:"run"`
	Scenario          string                  `json:"scenario"`
	Attempts          int                     `json:"attempts"`
	HeldOut           []int                   `json:"held_out_repetitions"`
	Used              int                     `json:"used"`
	PathLossExponent  *estimateJSON           `json:"path_loss_exponent,omitempty"`
	AntennaGainDbi    *estimateJSON           `json:"antenna_gain_dbi,omitempty"`
	ShadowingDb       *estimateJSON           `json:"shadowing_sigma_db,omitempty"`
	DecorrelationM    *estimateJSON           `json:"shadowing_decorrelation_m,omitempty"`
	SampleDb          estimateJSON            `json:"sample_sigma_db"`
	UnitPowerOffsetDb map[string]estimateJSON `json:"unit_power_offset_db"`
	UnitGainOffsetDb  map[string]estimateJSON `json:"unit_gain_offset_db"`
	Open              []string                `json:"not_known"`
}

// Calibration is what was fitted, and the campaign file that was written.
func Calibration(r *calibrate.Result, scenario string) Calibrated {
	one := func(e *calibrate.Estimate) *estimateJSON {
		if e == nil {
			return nil
		}
		return &estimateJSON{e.Value, e.Low, e.High}
	}
	each := func(of map[string]calibrate.Estimate) map[string]estimateJSON {
		out := map[string]estimateJSON{}
		for unit, e := range of {
			out[unit] = estimateJSON{e.Value, e.Low, e.High}
		}
		return out
	}
	return Calibrated{Run: r.Run, Scenario: scenario, Attempts: r.Attempts,
		HeldOut: append([]int{}, r.HeldOut...), Used: r.Used,
		PathLossExponent: one(r.Exponent), AntennaGainDbi: one(r.GainDbi), ShadowingDb: one(r.ShadowDb),
		DecorrelationM: one(r.CorrelationM), SampleDb: *one(&r.OwnDb), UnitPowerOffsetDb: each(r.PowerDb),
		UnitGainOffsetDb: each(r.AntennaDb), Open: append([]string{}, r.Open...)}
}

// Write writes one document, indented.
func Write(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
