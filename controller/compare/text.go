package compare

import (
	"fmt"
	"io"

	"fieldmesh.dev/fieldmesh/internal/screen"
)

// Write tells the comparison to a person.
func (t *Table) Write(w io.Writer) error {
	columns := screen.Columns(w)
	head := fmt.Sprintf("%s (%s) and %s (%s), accepted trials; mean ± half of its 95 %% interval (number of "+
		"trials)\n\n", t.A.Run, t.A.Place, t.B.Run, t.B.Place)
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
	for _, n := range t.Notes {
		if _, err := io.WriteString(w, screen.Fold("note: "+n+"\n", columns)); err != nil {
			return err
		}
	}
	return nil
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
