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
	factor        = "factor_" // and a factor's name
)

// resultColumns are those before the numbers of metrics.csv, in the table's order.
var resultColumns = []column{
	{"run", "", "name of the run", influx.Text},
	{"trial", "", "number of the trial in the schedule", influx.Integer},
	{"attempt", "", "which attempt at the trial was accepted", influx.Integer},
	{"counts", "", "1 where the attempt is a result: no calibration, and driven before the run had enough",
		influx.Integer},
	{"block", "", "block of the design", influx.Integer},
	{"repetition", "", "repetition of the cell", influx.Integer},
	{"section", "", "section: A, B and so on; empty where the campaign has none", influx.Text},
	{"direction", "", "direction of travel", influx.Text},
	{"sender", "", "node that sends", influx.Text},
	{"receiver", "", "node that receives", influx.Text},
	{"car", "", "node in the car", influx.Text},
	{"car_unit", "", "hardware in the car", influx.Text},
	{"tcp_variant", "", "congestion control", influx.Text},
	{"routing_protocol", "", "routing protocol", influx.Text},
	{factor + "NAME", "", "level of the factor of this name", influx.Text},
	{"campaign", "", "campaign of the run", influx.Text},
	{"place", "", "road, rehearsal (the radio was emulated), bench or log", influx.Text},
	{"scale", "", "scale at which the campaign was driven; " + plan.FullScale + ": as its file has it", influx.Text},
	{"shard", "", "which part of its campaign the run is, such as 1/3; empty where it is the whole, or was merged",
		influx.Text},
	{"begun", "", "when the run began, by the controller's clock, in UTC", influx.Text},
	{lastPlanned, "s", "length of the measuring window", influx.Float},
	{sumThroughput, "Mbit/s", "what arrived in the measured flows together × 8 ÷ the time in the window for which " +
		"iperf3 was told to send at least one of them", influx.Float},
	{sumArrived, "MB", "what arrived in the measured flows together", influx.Float},
}

func declared(name string) column {
	return resultColumns[slices.IndexFunc(resultColumns, func(c column) bool { return c.name == name })]
}

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
	put := func(c column, value influx.Cell) {
		if !slices.ContainsFunc(r.columns, func(other column) bool { return other.name == c.name }) {
			r.columns = append(r.columns, c)
		}
		value.Present = c.kind != influx.Text || value.Text != ""
		row[c.name] = value
	}
	text := func(name, value string) {
		put(declared(name), influx.Cell{Text: value})
	}
	whole := func(name string, value int) {
		put(declared(name), influx.Cell{Integer: int64(value)})
	}
	number := func(name string, value *float64) {
		if value != nil {
			put(declared(name), influx.Cell{Float: *value})
		}
	}
	info := a.Info()
	pass := design.Of(info.Plan.Nodes, t)
	mb, mbps := metrics.Measured(t, rows)
	text("run", info.Run)
	whole("trial", t.Number)
	whole("attempt", at.Attempt)
	counts := 0
	if archive.Counts(t, at.Verdict, a.Stopped()) {
		counts = 1
	}
	whole("counts", counts)
	whole("block", t.Block)
	whole("repetition", t.Repetition)
	text("section", pass.Section)
	text("direction", t.Direction)
	text("sender", t.Sender)
	text("receiver", t.Receiver)
	text("car", t.Car)
	text("car_unit", pass.Unit)
	text("tcp_variant", t.TCP.Variant)
	text("routing_protocol", t.Routing.Protocol)
	for _, name := range factorsOf(info.Plan) {
		c := declared(factor + "NAME")
		c.name, c.meaning = factor+name, "level of the factor "+name
		put(c, influx.Cell{Text: t.Factors[name]})
	}
	scale, shard := plan.FullScale, ""
	if info.Scale != nil {
		scale = info.Scale.Name
	}
	if info.Shard != nil {
		shard = info.Shard.String()
	}
	text("campaign", info.Campaign)
	text("place", info.Place)
	text("scale", scale)
	text("shard", shard)
	text("begun", info.CreatedWall.UTC().Format(time.RFC3339))
	number(lastPlanned, &t.DurationS)
	number(sumThroughput, mbps)
	number(sumArrived, mb)
	for _, m := range rows {
		name := m.Name
		if m.Flow != "" {
			name = m.Flow + "." + m.Name // neither has a dot
		}
		put(column{name, m.Unit, m.Definition, influx.Float}, influx.Cell{Float: m.Value})
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
	columns := withTypes(r.columns)
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
