package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one fault of a campaign file. Line and Column count from 1;
// Message names the key, the offending value and what is allowed.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// Error renders the problem as FILE:LINE:COL: message, which editors can jump to.
func (p Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Problems are all faults of a file, in the file's order, each once.
type Problems []Problem

// Error gives one line per problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds what one file can make us say; beyond it a reader has
// long begun to mend the file.
const maxProblems = 200

// Position is a place in the file, from 1.
type Position struct{ line, column int }

// finding is a problem that may have been met in several cells of the design.
type finding struct {
	at      Position
	message string
	cells   []string // the cells it was met in; empty for a fault outside cells
}

// Findings collects faults, each once.
type Findings struct {
	list []*finding
	seen map[sameness]*finding
}

type sameness struct {
	at      Position
	message string
}

// Add notes a fault at a place.
func (f *Findings) Add(at Position, format string, args ...any) {
	f.AddIn("", at, format, args...)
}

// AddIn notes a fault met in a cell; the same fault in another cell is joined to it.
func (f *Findings) AddIn(cell string, at Position, format string, args ...any) {
	if at.line < 1 {
		at = Position{1, 1}
	}
	key := sameness{at, fmt.Sprintf(format, args...)}
	if f.seen == nil {
		f.seen = map[sameness]*finding{}
	}
	found := f.seen[key]
	if found == nil {
		found = &finding{at: key.at, message: key.message}
		f.seen[key] = found
		f.list = append(f.list, found)
	}
	if cell != "" && !slices.Contains(found.cells, cell) {
		found.cells = append(found.cells, cell)
	}
}

// Len is how many faults were noted.
func (f *Findings) Len() int { return len(f.list) }

// Problems gives the findings in the file's order. A fault that only some of
// the design's cells have names the first of them, because its place alone
// does not tell what it clashes with.
func (f *Findings) Problems(file string, cells int) Problems {
	slices.SortStableFunc(f.list, func(a, b *finding) int {
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	var out Problems
	for _, x := range f.list {
		if len(out) == maxProblems {
			break
		}
		message := x.message
		if n := len(x.cells); n > 0 && n < cells {
			message += fmt.Sprintf(" (in %d of %d cells, first %s)", n, cells, x.cells[0])
		}
		out = append(out, Problem{File: file, Line: x.at.line, Column: x.at.column, Message: message})
	}
	return out
}
