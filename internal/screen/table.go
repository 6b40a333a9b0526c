package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// gap is what lies between two columns of a table.
const gap = 2

// Table is rows of cells, the first of which is the head.
type Table struct{ rows [][]string }

// Row adds a row; all have as many cells.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Write writes the table with its columns aligned: as it is where columns is 0, and else
// so that it fits. In a terminal that is too narrow, columns that have the same in every
// row are put into a line below, then cells are broken between words, and at last each row
// gets lines of its own. Nothing is left out.
func (t *Table) Write(w io.Writer, columns int) error {
	if len(t.rows) == 0 {
		return nil
	}
	_, err := io.WriteString(w, t.text(columns))
	return err
}

func (t *Table) text(columns int) string {
	rows, below := t.rows, ""
	widths := widthsOf(rows, width)
	if columns > 0 && total(widths) > columns {
		var same []string
		if rows, same = common(rows); len(same) > 0 {
			below = foldItems("the same in every row: ", same, columns)
		}
		if widths = narrowed(rows, columns); widths == nil {
			return records(t.rows, columns)
		}
	}
	var out strings.Builder
	for _, row := range rows {
		out.WriteString(lines(row, widths, columns))
	}
	return out.String() + below
}

// lines are one row, whose cells may need several lines.
func lines(row []string, widths []int, columns int) string {
	cells, most := make([][]string, len(row)), 1
	for i, cell := range row {
		cells[i] = []string{cell}
		if columns > 0 {
			cells[i] = wrap(cell, 0, 0, widths[i])
		}
		most = max(most, len(cells[i]))
	}
	var out strings.Builder
	for k := range most {
		line := ""
		for i, cell := range cells {
			part := ""
			if k < len(cell) {
				part = cell[k]
			}
			line += part + strings.Repeat(" ", max(0, widths[i]-width(part))+gap)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

func widthsOf(rows [][]string, of func(string) int) (widths []int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], of(cell))
		}
	}
	return widths
}

func total(widths []int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// common takes out of rows the columns that have the same in every row but the head, or
// what a column before them has, and says so.
func common(rows [][]string) (others [][]string, said []string) {
	if len(rows) < 3 {
		return rows, nil
	}
	out := map[int]bool{}
	for i := 1; i < len(rows[0]); i++ { // the first is the row's name
		alike := func(cell func(row []string) string) bool {
			return !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != cell(row) })
		}
		if alike(func([]string) string { return rows[1][i] }) {
			said, out[i] = append(said, rows[0][i]+" "+rows[1][i]), true
			continue
		}
		for k := range i {
			if out[i] || out[k] || !alike(func(row []string) string { return row[k] }) {
				continue
			}
			more, less := k, i
			if k > 0 && strings.HasPrefix(rows[0][i], rows[0][k]+" ") { // with its unit
				more, less = i, k
			}
			said, out[less] = append(said, rows[0][less]+" as "+rows[0][more]), true
		}
	}
	for _, row := range rows {
		var kept []string
		for i, cell := range row {
			if !out[i] {
				kept = append(kept, cell)
			}
		}
		others = append(others, kept)
	}
	return others, said
}

// leastCell is what a column of texts keeps, though its words are shorter.
const leastCell = 16

// narrowed are the widths at which rows fit, the widest column first made narrower; nil if
// they do not.
func narrowed(rows [][]string, columns int) []int {
	widths := widthsOf(rows, width)
	least := widthsOf(rows, func(cell string) int {
		longest := 0
		for word := range strings.SplitSeq(cell, " ") {
			longest = max(longest, width(word))
		}
		return longest
	})
	for i, w := range widthsOf(rows[1:], width) { // a head may be broken after every word
		if w > leastCell {
			least[i] = max(least[i], leastCell)
		} else {
			least[i] = max(least[i], w)
		}
	}
	for total(widths) > columns {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return nil
		}
		widths[widest]--
	}
	return widths
}

// records writes each row by itself: its first cell, and the others with their heads.
// Those that are not known are left out.
func records(rows [][]string, columns int) string {
	var out strings.Builder
	for _, row := range rows[1:] {
		out.WriteString(strings.TrimSpace(rows[0][0]+" "+row[0]) + "\n")
		var cells []string
		for i, cell := range row[1:] {
			if cell != "" && cell != "-" {
				cells = append(cells, strings.TrimSpace(fmt.Sprintf("%s %s", rows[0][i+1], cell)))
			}
		}
		out.WriteString(foldItems("  ", cells, columns))
	}
	return out.String()
}

// foldItems writes a line of items, which is broken between them rather than within.
func foldItems(begin string, items []string, columns int) string {
	const hard = "\u00a0" // a space at which no line is broken
	var whole []string
	for _, item := range items {
		if width(item) < columns/2 {
			item = strings.ReplaceAll(item, " ", hard)
		}
		whole = append(whole, item)
	}
	return strings.ReplaceAll(Fold(begin+strings.Join(whole, "; ")+"\n", columns), hard, " ")
}
