package terminal_test

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/terminal"
)

//attack:archive a text of an archive that a terminal would obey: cursor, title, clipboard, direction of writing | every
//attack:and command that reads archives escapes what it prints
func TestTextsMoveNoTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b]0;OWNED\x07é":     `a\x1b]0;OWNED\aé`,
		"\x1b]52;c;cm0gLXJm\x07": `\x1b]52;c;cm0gLXJm\a`,
		"\u009b2J":               `\u009b2J`,
		"\x9b2J":                 `\x9b2J`,
		"file\u202egpj.exe":      `file\u202egpj.exe`,
		"over\rwritten":          `over\rwritten`,
		"back\b\b":               `back\b\b`,
		"\x7f":                   `\x7f`,
		"µ ≤ 1 % \ufffd":         "µ ≤ 1 % \ufffd",
		"two\n\tlines":           "two\n\tlines",
	} {
		if got := terminal.Lines(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
		for cut := range len(text) { // however it is cut into writes
			var out strings.Builder
			w := terminal.Writer(&out)
			for _, part := range []string{text[:cut], text[cut:], "."} {
				if n, err := w.Write([]byte(part)); err != nil || n != len(part) {
					t.Fatalf("wrote %d of %q: %v", n, part, err)
				}
			}
			if out.String() != want+"." {
				t.Errorf("%q, cut at %d, is printed as %q, want %q", text, cut, out.String(), want)
			}
		}
	}
	if got := terminal.Text("two\nlines"); got != `two\nlines` {
		t.Errorf("a line is %q", got)
	}
}
