package compare

import (
	"fmt"
	"io"
	"strings"

	"fieldmesh.dev/fieldmesh/internal/screen"
)

// Write tells the comparison to a person.
func (t *Table) Write(w io.Writer) error {
	columns := screen.Columns(w)
	head := fmt.Sprintf("%s (%s) and %s (%s), accepted trials; mean ± half of its %.3g %% interval (number "+
		"of trials)\n\n", t.A.Run, t.A.Place, t.B.Run, t.B.Place, 100*t.Confidence())
	if _, err := io.WriteString(w, screen.Fold(head, columns)); err != nil {
		return err
	}
	var table screen.Table
	table.Row("cell", "number", t.A.Run, t.B.Run, "difference", "the second is")
	for _, d := range t.Differences {
		table.Row(d.Cell, d.Number.Name+", "+d.Number.Unit, d.A.told(), d.B.told(), d.told(), d.surely())
	}
	if err := table.Write(w, columns); err != nil {
		return err
	}
	if err := t.Replay.write(w, columns, t); err != nil {
		return err
	}
	for _, n := range t.Notes {
		if _, err := io.WriteString(w, screen.Fold("note: "+n+"\n", columns)); err != nil {
			return err
		}
	}
	return nil
}

// write tells how well the rehearsal foretold what was held out.
func (r *Replay) write(w io.Writer, columns int, t *Table) error {
	if r == nil {
		return nil
	}
	var out []string
	for _, repetition := range r.HeldOut {
		out = append(out, fmt.Sprint(repetition))
	}
	head := fmt.Sprintf("\nReplay: mean throughput in Mbit/s, beside repetitions %s of %s, by which the rehearsal's "+
		"field was not calibrated\n\n", strings.Join(out, ", "), t.A.Run)
	if _, err := io.WriteString(w, screen.Fold(head, columns)); err != nil {
		return err
	}
	var table screen.Table
	table.Row("of", t.A.Run, t.B.Run, "error", fmt.Sprintf("its %.3g %% interval", 100*t.Confidence()))
	for _, e := range r.Errors {
		off, interval := "-", "-"
		if e.Share != nil {
			off = fmt.Sprintf("%+.1f %%", 100**e.Share)
		}
		if e.Low != nil {
			interval = fmt.Sprintf("%+.1f to %+.1f %%", 100**e.Low, 100**e.High)
		}
		table.Row(e.Of, fmt.Sprintf("%.2f", e.Held), fmt.Sprintf("%.2f", e.Rehearsed), off, interval)
	}
	if err := table.Write(w, columns); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (m *Mean) told() string {
	switch {
	case m == nil:
		return "-"
	case m.HalfWide == nil:
		return fmt.Sprintf("%.2f (%d)", m.Value, m.N)
	}
	return fmt.Sprintf("%.2f ± %.2f (%d)", m.Value, *m.HalfWide, m.N)
}

func (d Difference) told() string {
	switch {
	case d.Apart == nil:
		return "-"
	case d.HalfWide == nil:
		return fmt.Sprintf("%+.2f", *d.Apart)
	}
	return fmt.Sprintf("%+.2f ± %.2f", *d.Apart, *d.HalfWide)
}

// surely reports whether zero lies outside of the interval.
func (d Difference) surely() string {
	switch {
	case d.HalfWide == nil:
		return "-"
	case *d.Apart > *d.HalfWide:
		return "higher"
	case *d.Apart < -*d.HalfWide:
		return "lower"
	}
	return "not told apart"
}
