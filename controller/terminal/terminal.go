// Package terminal makes texts of others fit to be printed: what moves a cursor,
// changes a title or turns the direction of writing is escaped.
package terminal

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text of one line without what a terminal would obey.
func Text(text string) string { return escape(text, "") }

func escape(text, keep string) string {
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(r)):
			out.WriteString(strings.Trim(strconv.QuoteToASCII(text[i:i+1]), `"`))
		case unicode.IsPrint(r), strings.ContainsRune(keep, r):
			out.WriteRune(r)
		default:
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return out.String()
}

// Lines is Text of a text of several lines.
func Lines(text string) string { return escape(text, "\n\t") }

// Writer returns a writer of Lines. A character that a write ends within is written
// with the next; one that is never ended is not.
func Writer(to io.Writer) io.Writer { return &writer{to: to} }

type writer struct {
	to   io.Writer
	rest []byte // of a character
}

// Fd is that of the terminal behind, if there is one.
func (w *writer) Fd() uintptr {
	if f, ok := w.to.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0) // of no file
}

func (w *writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if at := len(text) - i; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				whole = at
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(w.to, Lines(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
