package export

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// column is one of results.csv and results.parquet.
type column struct {
	name, unit, meaning string
	kind                influx.Type
}

// resultsTable is one row for each accepted attempt, with all that was planned and
// measured: results.csv and results.parquet. The columns of numbers are those that
// any attempt has.
type resultsTable struct {
	columns []column
	rows    []map[string]influx.Cell // by the columns' names
}

// resultsOf makes the table of a run's numbers as metrics.csv has them, each with its
// unit and definition. It is held whole: some hundred numbers an attempt.
func resultsOf(a *archive.Archive, numbers string) (*resultsTable, error) {
	rows, err := readMetrics(numbers)
	if err != nil {
		return nil, fmt.Errorf("gather results: %w", err)
	}
	attempts, err := a.Trials()
	if err != nil {
		return nil, err
	}
	r := &resultsTable{}
	for _, at := range attempts {
		if t, planned := a.Trial(at.Trial); planned && at.Verdict != nil && at.Verdict.Outcome == wire.Accepted {
			r.add(a, t, at, rows[at.TrialKey])
		}
	}
	return r, nil
}

// readMetrics reads metrics.csv back.
func readMetrics(path string) (map[wire.TrialKey][]metrics.Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := csv.NewReader(f)
	if _, err := in.Read(); err != nil { // the header
		return nil, err
	}
	out := map[wire.TrialKey][]metrics.Row{}
	for {
		line, err := in.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		row := metrics.Row{Flow: line[3], Name: line[4], Unit: line[5], Definition: line[7]}
		trial, terr := strconv.Atoi(line[1])
		attempt, aerr := strconv.Atoi(line[2])
		value, verr := strconv.ParseFloat(line[6], 64)
		if err := errors.Join(terr, aerr, verr); err != nil {
			return nil, err
		}
		row.Value = value
		k := wire.TrialKey{Trial: trial, Attempt: attempt}
		out[k] = append(out[k], row)
	}
}

// Columns of results.csv: what was planned ends with the first; the others are
// sums over flows, beside the numbers of metrics.csv.
const (
	lastPlanned   = "duration_s"
	sumThroughput = "throughput_mbps"
	sumArrived    = "transferred_mb"
)

// ReadResults reads results.csv back: the numbers of each accepted attempt, without
// their units and definitions.
func ReadResults(in io.Reader) (map[wire.TrialKey][]metrics.Row, error) {
	table := csv.NewReader(in)
	head, err := table.Read()
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	trial, attempt := slices.Index(head, "trial"), slices.Index(head, "attempt")
	planned := slices.Index(head, lastPlanned)
	if trial < 0 || attempt < 0 || planned < 0 {
		return nil, fmt.Errorf("read results: the first line has no columns trial, attempt and %s: it is not a "+
			"results.csv of `fieldmesh export`", lastPlanned)
	}
	out := map[wire.TrialKey][]metrics.Row{}
	for {
		line, err := table.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		t, terr := strconv.Atoi(line[trial])
		a, aerr := strconv.Atoi(line[attempt])
		k := wire.TrialKey{Trial: t, Attempt: a}
		if err := errors.Join(terr, aerr); err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		out[k] = []metrics.Row{}
		for i := planned + 1; i < len(line); i++ {
			if line[i] == "" || head[i] == sumThroughput || head[i] == sumArrived {
				continue
			}
			row := metrics.Row{Trial: k.Trial, Attempt: k.Attempt, Name: head[i]}
			if flow, name, of := strings.Cut(head[i], "."); of {
				row.Flow, row.Name = flow, name
			}
			if row.Value, err = strconv.ParseFloat(line[i], 64); err != nil {
				return nil, fmt.Errorf("read results: trial %d, %s: %w", k.Trial, head[i], err)
			}
			out[k] = append(out[k], row)
		}
	}
}

func (r *resultsTable) add(a *archive.Archive, t wire.Trial, at archive.Attempt, rows []metrics.Row) {
	row := map[string]influx.Cell{}
	put := func(name, unit, meaning string, kind influx.Type, value influx.Cell) {
		if !slices.ContainsFunc(r.columns, func(c column) bool { return c.name == name }) {
			r.columns = append(r.columns, column{name, unit, meaning, kind})
		}
		value.Present = kind != influx.Text || value.Text != ""
		row[name] = value
	}
	text := func(name, meaning, value string) {
		put(name, "", meaning, influx.Text, influx.Cell{Text: value})
	}
	whole := func(name, meaning string, value int) {
		put(name, "", meaning, influx.Integer, influx.Cell{Integer: int64(value)})
	}
	number := func(name, unit, meaning string, value *float64) {
		if value != nil {
			put(name, unit, meaning, influx.Float, influx.Cell{Float: *value})
		}
	}
	info := a.Info()
	pass := design.Of(info.Plan.Nodes, t)
	mb, mbps := metrics.Measured(t, rows)
	text("run", "name of the run", info.Run)
	whole("trial", "number of the trial in the schedule", t.Number)
	whole("attempt", "which attempt at the trial was accepted", at.Attempt)
	counts := 0
	if archive.Counts(t, at.Verdict, a.Stopped()) {
		counts = 1
	}
	whole("counts", "1 where the attempt is a result: no calibration, and driven before the run had enough", counts)
	whole("block", "block of the design", t.Block)
	whole("repetition", "repetition of the cell", t.Repetition)
	text("section", "section: A, B and so on; empty where the campaign has none", pass.Section)
	text("direction", "direction of travel", t.Direction)
	text("sender", "node that sends", t.Sender)
	text("receiver", "node that receives", t.Receiver)
	text("car", "node in the car", t.Car)
	text("car_unit", "hardware in the car", pass.Unit)
	text("tcp_variant", "congestion control", t.TCP.Variant)
	text("routing_protocol", "routing protocol", t.Routing.Protocol)
	for _, name := range factorsOf(info.Plan) {
		text("factor_"+name, "level of the factor "+name, t.Factors[name])
	}
	scale, shard := plan.FullScale, ""
	if info.Scale != nil {
		scale = info.Scale.Name
	}
	if info.Shard != nil {
		shard = info.Shard.String()
	}
	text("campaign", "campaign of the run", info.Campaign)
	text("place", "road, rehearsal (the radio was emulated), bench or log", info.Place)
	text("scale", "scale at which the campaign was driven; "+plan.FullScale+": as its file has it", scale)
	text("shard", "which part of its campaign the run is, such as 1/3; empty where it is the whole, or was merged",
		shard)
	text("begun", "when the run began, by the controller's clock, in UTC", info.CreatedWall.UTC().Format(time.RFC3339))
	number(lastPlanned, "s", "length of the measuring window", &t.DurationS)
	number(sumThroughput, "Mbit/s", "what arrived in the measured flows together × 8 ÷ the time in the "+
		"window for which iperf3 was told to send at least one of them", mbps)
	number(sumArrived, "MB", "what arrived in the measured flows together", mb)
	for _, m := range rows {
		name := m.Name
		if m.Flow != "" {
			name = m.Flow + "." + m.Name // neither has a dot
		}
		number(name, m.Unit, m.Definition, &m.Value)
	}
	r.rows = append(r.rows, row)
}

// write writes the table. What an attempt does not have is an empty cell.
func (r *resultsTable) write(w io.Writer) error {
	c := csv.NewWriter(w)
	var head []string
	for _, col := range r.columns {
		head = append(head, metrics.Cell(col.name))
	}
	if err := c.Write(head); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	for _, row := range r.rows {
		var line []string
		for _, col := range r.columns {
			line = append(line, cellText(col.kind, row[col.name]))
		}
		if err := c.Write(line); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	c.Flush()
	return c.Error()
}

// cellText is a cell as CSV has it.
func cellText(kind influx.Type, c influx.Cell) string {
	switch {
	case !c.Present:
		return ""
	case kind == influx.Integer:
		return strconv.FormatInt(c.Integer, 10)
	case kind == influx.Float:
		return metrics.Number(c.Float)
	}
	return metrics.Cell(c.Text)
}

// parquet writes the same table as Parquet, with the columns' types, and reports
// whether there is one: a run without an accepted attempt has no columns.
func (r *resultsTable) parquet(path string) (written bool, err error) {
	if len(r.rows) == 0 {
		return false, nil
	}
	var columns []influx.Column
	for _, c := range r.columns {
		columns = append(columns, influx.Column{Name: c.name, Type: c.kind, Unit: c.unit, Meaning: c.meaning})
	}
	w, err := createTable(path, "results", columns)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, row := range r.rows {
		cells := make([]influx.Cell, len(columns))
		for i, c := range columns {
			cells[i] = row[c.Name]
		}
		if err := w.add(cells); err != nil {
			return false, err
		}
	}
	return true, nil
}
