package influx

import (
	"fmt"
	"strconv"
)

// Column is one value of a measurement's rows, in a table instead of a point.
type Column struct {
	Name          string
	Type          Type
	Unit, Meaning string
}

// Columns are what every row has (run, trial, attempt, node, epoch, seq,
// t_boot_ns), then the measurement's tags and fields.
func (m Measurement) Columns() []Column {
	out := []Column{
		{"run", Text, "", "run; absent when the node holds none"},
		{"trial", Integer, "", "trial's place in the schedule, from 1; absent outside trials"},
		{"attempt", Integer, "", "attempt at the trial, from 1; absent outside trials"},
		{"node", Text, "", "node that made the record"},
		{"epoch", Text, "", "the spool that numbers the record; (node, epoch, seq) names it"},
		{"seq", Integer, "", "the record's number in its spool"},
		{"t_boot_ns", Integer, "ns", "the node's boot clock"},
	}
	for _, t := range m.Tags {
		out = append(out, Column{Name: t.Name, Type: Text, Meaning: t.Meaning})
	}
	for _, f := range m.Fields {
		out = append(out, Column{Name: f.Name, Type: f.Type, Unit: f.Unit, Meaning: f.Meaning})
	}
	return out
}

// Members are a record's own values that the measurement has, by their names in
// the record, without those that every record has.
func (m Measurement) Members() (out []Column) {
	for _, t := range m.Tags {
		out = append(out, Column{Name: t.Name, Type: Text, Meaning: t.Meaning})
	}
	for _, f := range m.Fields {
		out = append(out, Column{Name: f.source(), Type: f.Type, Unit: f.Unit, Meaning: f.Meaning})
	}
	return out
}

// Cell is a column's value in one row; the column's type says which member
// counts. Absent is neither zero nor empty.
type Cell struct {
	Present bool
	Integer int64
	Float   float64
	Boolean bool
	Text    string
}

// Row reads a point's cells, in the order of Columns, into dst's memory, and
// names the measurement. Its texts are whole, unlike those of a point.
func (e *Encoder) Row(dst []Cell, p *Point) ([]Cell, string, error) {
	if p.layout == nil {
		return dst, "", fmt.Errorf("tabulate record %s/%d of kind %q: %w", p.Header.Node, p.Header.Seq, p.Header.Kind,
			ErrNoMeasurement)
	}
	h := p.Header
	dst = append(dst[:0], textCell(h.Run), countCell(h.Trial), countCell(h.Attempt), textCell(h.Node),
		textCell(h.Epoch),
		Cell{Present: true, Integer: int64(h.Seq)}, Cell{Present: true, Integer: h.TBootNs})
	for i, t := range p.layout.Tags {
		c := textCell(t.absent)
		if raw := p.values[i]; raw != nil {
			s, err := e.name(member{value: raw})
			if err != nil {
				return dst, "", fmt.Errorf("tabulate record %s/%d: %s: %w", h.Node, h.Seq, t.Name, err)
			}
			c = textCell(s)
		}
		dst = append(dst, c)
	}
	for i, f := range p.layout.Fields {
		c := Cell{}
		if raw := p.values[len(p.layout.Tags)+i]; raw != nil {
			var err error
			if c, err = cell(f.Type, member{value: raw}); err != nil {
				return dst, "", fmt.Errorf("tabulate record %s/%d: %s: %w", h.Node, h.Seq, f.Name, err)
			}
		}
		dst = append(dst, c)
	}
	return dst, p.layout.Name, nil
}

// cell reads a value of a type; an integer beyond 64 bits is absent, as in a point.
func cell(t Type, m member) (Cell, error) {
	switch t {
	case Integer:
		fits, err := m.integer()
		if err != nil || !fits {
			return Cell{}, err
		}
		n, err := strconv.ParseInt(string(m.value), 10, 64)
		return Cell{Present: true, Integer: n}, err
	case Float:
		if err := m.float(); err != nil {
			return Cell{}, err
		}
		x, err := strconv.ParseFloat(string(m.value), 64)
		return Cell{Present: true, Float: x}, err
	case Boolean:
		b, err := strconv.ParseBool(string(m.value))
		return Cell{Present: true, Boolean: b}, err
	}
	s, err := m.text()
	return textCell(s), err
}

func textCell(s string) Cell { return Cell{Present: s != "", Text: s} }

func countCell(n int) Cell { return Cell{Present: n > 0, Integer: int64(n)} }
