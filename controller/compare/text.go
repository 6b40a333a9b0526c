package compare

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Write tells the comparison to a person.
func (t *Table) Write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s (%s) and %s (%s), accepted trials; mean ± half of its 95 %% interval (number of "+
		"trials)\n\n", t.A.Run, t.A.Place, t.B.Run, t.B.Place); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintf(table, "cell\tnumber\t%s\t%s\tdifference\tthe second is\n", t.A.Run, t.B.Run); err != nil {
		return err
	}
	for _, d := range t.Differences {
		if _, err := fmt.Fprintf(table, "%s\t%s, %s\t%s\t%s\t%s\t%s\n", d.Cell, d.Number.Name, d.Number.Unit,
			d.A.told(), d.B.told(), d.told(), d.surely()); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, n := range t.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", n); err != nil {
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
