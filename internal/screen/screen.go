// Package screen fits what people read to the terminal on which they read it. What goes
// elsewhere, into a pipe or a file, is not its business: that has no width.
package screen

import (
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// narrowest is the width below which nothing is fitted.
const narrowest = 20

// Columns is how wide the terminal is that w writes to; 0: it writes elsewhere.
func Columns(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < narrowest {
		return 0
	}
	return columns
}

// Fold breaks the lines of a text that are wider than so many columns, between words; 0
// breaks none. What follows stands below the second column of a line that has two, or is
// indented.
func Fold(text string, columns int) string {
	if columns == 0 {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		if width(body) <= columns {
			out.WriteString(line)
			continue
		}
		first, hang := begin(body, columns)
		for i, part := range wrap(body[len(first):], hang, width(first), columns) {
			if i > 0 {
				first = "\n" + strings.Repeat(" ", hang)
			}
			out.WriteString(first + part)
		}
		out.WriteString(line[len(body):])
	}
	return out.String()
}

// Cut shortens a line to so many columns, and shows that it did.
func Cut(line string, columns int) string {
	if columns < 1 || width(line) <= columns {
		return line
	}
	return line[:byteOf(line, columns-1)] + "…"
}

func width(text string) int { return utf8.RuneCountInString(text) }

// byteOf is where a column of a line begins.
func byteOf(line string, column int) int {
	for i := range line {
		if column == 0 {
			return i
		}
		column--
	}
	return len(line)
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// begin is what is left as it is of a line that is broken, and the column at which the
// rest goes on: that of its second column, behind two spaces or more, or two more than the
// line is indented.
func begin(line string, columns int) (first string, hang int) {
	indent := indentOf(line)
	if at := strings.Index(line[indent:], "  "); at >= 0 {
		at += indent
		first = line[:at+indentOf(line[at:])]
		if hang = width(first); hang <= columns/2 {
			return first, hang
		}
	}
	return line[:indent], indent + 2
}

// wrap breaks a text into lines that end before so many columns, where the first begins
// at one column and the others at another. A word that is wider is left whole.
func wrap(text string, begin, first, columns int) (lines []string) {
	if width(text) <= columns-first {
		return []string{text}
	}
	line, room := "", columns-first
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= room:
			line += " " + word
		default:
			lines, line, room = append(lines, strings.TrimRight(line, " ")), word, columns-begin
		}
	}
	return append(lines, line)
}
