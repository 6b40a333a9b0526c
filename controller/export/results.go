package export

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// column is one of results.csv.
type column struct{ name, unit, meaning string }

// resultsTable is one row for each accepted attempt, with all that was planned and
// measured: results.csv. The columns of numbers are those that any attempt has.
type resultsTable struct {
	columns []column
	rows    []map[string]string // by the columns' names
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

func (r *resultsTable) add(a *archive.Archive, t wire.Trial, at archive.Attempt, rows []metrics.Row) {
	row := map[string]string{}
	put := func(name, unit, meaning, value string) {
		if !slices.ContainsFunc(r.columns, func(c column) bool { return c.name == name }) {
			r.columns = append(r.columns, column{name, unit, meaning})
		}
		row[name] = value
	}
	number := func(name, unit, meaning string, value *float64) {
		if value != nil {
			put(name, unit, meaning, metrics.Number(*value))
		}
	}
	info := a.Info()
	pass := design.Of(info.Plan.Nodes, t)
	mb, mbps := metrics.Measured(t, rows)
	put("run", "", "name of the run", metrics.Cell(info.Run))
	put("trial", "", "number of the trial in the schedule", strconv.Itoa(t.Number))
	put("attempt", "", "which attempt at the trial was accepted", strconv.Itoa(at.Attempt))
	counts := "0"
	if archive.Counts(t, at.Verdict, a.Stopped()) {
		counts = "1"
	}
	put("counts", "", "1 where the attempt is a result: no calibration, and driven before the run had enough", counts)
	put("block", "", "block of the design", strconv.Itoa(t.Block))
	put("repetition", "", "repetition of the cell", strconv.Itoa(t.Repetition))
	put("section", "", "section: A, B and so on; empty where the campaign has none", metrics.Cell(pass.Section))
	put("direction", "", "direction of travel", metrics.Cell(t.Direction))
	put("sender", "", "node that sends", metrics.Cell(t.Sender))
	put("receiver", "", "node that receives", metrics.Cell(t.Receiver))
	put("car", "", "node in the car", metrics.Cell(t.Car))
	put("car_unit", "", "hardware in the car", metrics.Cell(pass.Unit))
	put("tcp_variant", "", "congestion control", metrics.Cell(t.TCP.Variant))
	put("routing_protocol", "", "routing protocol", metrics.Cell(t.Routing.Protocol))
	for _, name := range factorsOf(info.Plan) {
		put("factor_"+name, "", "level of the factor "+name, metrics.Cell(t.Factors[name]))
	}
	put("duration_s", "s", "length of the measuring window", metrics.Number(t.DurationS))
	number("throughput_mbps", "Mbit/s", "throughput of the measured flows together", mbps)
	number("transferred_mb", "MB", "what arrived in the measured flows together", mb)
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
			line = append(line, row[col.name])
		}
		if err := c.Write(line); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	c.Flush()
	return c.Error()
}
