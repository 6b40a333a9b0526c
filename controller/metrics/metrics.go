// Package metrics turns an archive into one long table of numbers, each with
// its unit and its definition, and into a timeline per attempt. It draws no
// conclusions; the report does.
package metrics

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics/inorder"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Row is one number of one attempt. Flow is empty for a number of the whole
// attempt.
type Row struct {
	Run        string
	Trial      int
	Attempt    int
	Flow       string
	Name       string
	Unit       string
	Value      float64
	Definition string
}

// Attempt is one attempt's records, read once, from which its numbers and its
// timeline are computed.
type Attempt struct {
	run     string
	key     wire.TrialKey
	trial   wire.Trial
	plan    wire.RunPlan
	records []wire.Record
}

// With is the attempt as if it held these records.
func (at Attempt) With(records []wire.Record) Attempt {
	at.records = records
	return at
}

// Records are all that is held of the attempt. They must not be changed.
func (at Attempt) Records() []wire.Record { return at.records }

// ByNode are the records of each node in their order. They must not be changed.
func (at Attempt) ByNode() map[string][]wire.Record {
	out := map[string][]wire.Record{}
	for from, to := 0, 0; from < len(at.records); from = to { // most nodes have one file, and need no copy
		node := at.records[from].Node
		for to < len(at.records) && at.records[to].Node == node {
			to++
		}
		if had, twice := out[node]; twice {
			out[node] = append(had, at.records[from:to]...)
		} else {
			out[node] = at.records[from:to:to]
		}
	}
	return out
}

// Of computes the rows of one attempt, those of its captures among them. A
// capture that cannot be read is counted in a row; AllRows says what is wrong
// with it.
func Of(a *archive.Archive, k wire.TrialKey) ([]Row, error) {
	at, err := Load(a, k)
	if err != nil {
		return nil, err
	}
	rows, _ := at.AllRows(a)
	return rows, nil
}

// AllRows are Rows and those of the attempt's captures in the archive that it
// is from; unreadable says what is wrong with captures that cannot be read.
func (at Attempt) AllRows(a *archive.Archive) (rows []Row, unreadable error) {
	captured, unreadable := at.captured(a)
	return append(at.Rows(), captured...), unreadable
}

// Load reads an attempt; it is small enough to be held.
func Load(a *archive.Archive, k wire.TrialKey) (Attempt, error) {
	return load(a, k, func() ([]wire.Record, error) { return a.All(k.Trial, k.Attempt) })
}

// LoadNew does so, and reads only what came since the tail was read. The attempt is
// valid until the tail is read again.
func LoadNew(a *archive.Archive, k wire.TrialKey, tail *archive.Tail) (Attempt, error) {
	return load(a, k, func() ([]wire.Record, error) { return tail.Read(a, k) })
}

func load(a *archive.Archive, k wire.TrialKey, read func() ([]wire.Record, error)) (Attempt, error) {
	t, planned := a.Trial(k.Trial)
	if !planned {
		return Attempt{}, unplanned(a, k)
	}
	records, err := read()
	if err != nil {
		return Attempt{}, fmt.Errorf("read trial %d attempt %d: %w", k.Trial, k.Attempt, err)
	}
	return Attempt{run: a.Info().Run, key: k, trial: t, plan: a.Info().Plan, records: records}, nil
}

func unplanned(a *archive.Archive, k wire.TrialKey) error {
	return fmt.Errorf("trial %d is not in the plan of run %q", k.Trial, a.Info().Run)
}

// Table computes the rows of every attempt of an archive.
func Table(a *archive.Archive) ([]Row, error) {
	var out []Row
	for rows, err := range inorder.Read(a, func(e archive.Attempt) ([]Row, error) { return Of(a, e.TrialKey) }) {
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

// set collects the rows of one attempt.
type set struct {
	at   Attempt
	rows []Row
}

// put adds a number; nil is not measured and adds nothing.
func (s *set) put(flow string, d definition, value *float64) {
	if value == nil {
		return
	}
	s.rows = append(s.rows, Row{
		Run: s.at.run, Trial: s.at.key.Trial, Attempt: s.at.key.Attempt,
		Flow: flow, Name: d.name, Unit: d.unit, Value: *value, Definition: d.text,
	})
}

// Rows computes the attempt's numbers.
func (at Attempt) Rows() []Row {
	s := &set{at: at}
	for _, f := range at.trial.Traffic {
		s.flow(f)
	}
	s.constantRate()
	s.motion()
	s.radio()
	s.routing()
	s.quality()
	s.disturbed()
	return s.rows
}

// Value finds a number among rows; nil when it was not measured.
func Value(rows []Row, flow, name string) *float64 {
	for i := range rows {
		if rows[i].Flow == flow && rows[i].Name == name {
			return &rows[i].Value
		}
	}
	return nil
}

// csvHeader is the first line of metrics.csv.
var csvHeader = []string{"run", "trial", "attempt", "flow", "name", "unit", "value", "definition"}

// csvTable writes rows with a header line.
type csvTable struct{ w *csv.Writer }

// newTable begins a table.
func newTable(w io.Writer) (*csvTable, error) {
	t := &csvTable{csv.NewWriter(w)}
	if err := t.w.Write(csvHeader); err != nil {
		return nil, fmt.Errorf("write metrics: %w", err)
	}
	return t, nil
}

// Cell makes a text from outside one that a spreadsheet does not take for a
// formula: an apostrophe comes before what would begin one. Names that a
// campaign file may have never begin so.
func Cell(text string) string {
	if strings.IndexAny(text, "=+-@\t\r\n") == 0 {
		return "'" + text
	}
	return text
}

// write adds rows.
func (t *csvTable) write(rows []Row) error {
	for _, r := range rows {
		line := []string{Cell(r.Run), strconv.Itoa(r.Trial), strconv.Itoa(r.Attempt), Cell(r.Flow), r.Name, r.Unit,
			Number(r.Value), r.Definition}
		if err := t.w.Write(line); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
	}
	return nil
}

// flush writes what is still held.
func (t *csvTable) flush() error {
	t.w.Flush()
	if err := t.w.Error(); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// WriteCSV writes rows with a header line.
func WriteCSV(w io.Writer, rows []Row) error {
	t, err := newTable(w)
	if err != nil {
		return err
	}
	if err := t.write(rows); err != nil {
		return err
	}
	return t.flush()
}

// Streamed is what a table holds that StreamCSV has written.
type Streamed struct {
	Numbers, Attempts int
	Unreadable        error // what is wrong with captures that cannot be read
}

// StreamCSV writes the table of an archive attempt by attempt, and to timelines, unless
// that is nil, their timelines (10 Hz), for which each is read only once.
func StreamCSV(numbers, timelines io.Writer, a *archive.Archive) (out Streamed, err error) {
	t, err := newTable(numbers)
	if err != nil {
		return out, err
	}
	var lines *timelineTable
	if timelines != nil {
		if lines, err = newTimelineTable(timelines, a.Info().Run); err != nil {
			return out, err
		}
	}
	type whole struct {
		key        wire.TrialKey
		rows       []Row
		points     []Point
		unreadable error
	}
	for at, err := range inorder.Read(a, func(e archive.Attempt) (whole, error) {
		at := whole{key: e.TrialKey}
		loaded, err := Load(a, e.TrialKey)
		if err != nil {
			return at, err
		}
		if at.rows, at.unreadable = loaded.AllRows(a); lines != nil {
			at.points = loaded.Timeline()
		}
		return at, nil
	}) {
		if err != nil {
			return out, err
		}
		if err := t.write(at.rows); err != nil {
			return out, err
		}
		if err := lines.write(at.key, at.points); err != nil {
			return out, err
		}
		out.Unreadable = errors.Join(out.Unreadable, at.unreadable)
		out.Numbers, out.Attempts = out.Numbers+len(at.rows), out.Attempts+1
	}
	return out, errors.Join(t.flush(), lines.flush())
}

// Number writes the shortest decimal that reads back as the same value.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
