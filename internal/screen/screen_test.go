package screen

import (
	"bytes"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"
)

func TestFold(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"as it is, however wide it may be\n", 0, "as it is, however wide it may be\n"},
		{"one two three four\nfive\n", 10, "one two\n  three\n  four\nfive\n"},
		{"  --flag int   what it is good for, in words\n", 30,
			"  --flag int   what it is good\n               for, in words\n"},
		{"a-word-that-no-terminal-has-room-for and more", 20, "a-word-that-no-terminal-has-room-for\n  and more"},
		{"two spaces are far out here, at the end  where no column begins", 40,
			"two spaces are far out here, at the end\n  where no column begins"},
		{"of three words the first is as wide as what is indented", 20,
			"of three words the\n  first is as wide\n  as what is\n  indented"},
		{"± 1 µs ± 2 µs ± 3 µs", 20, "± 1 µs ± 2 µs ± 3 µs"},
	} {
		if got := Fold(c.text, c.columns); got != c.want {
			t.Errorf("%q in %d columns:\n%q, want\n%q", c.text, c.columns, got, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	for line, want := range map[string]string{"": "", "short": "short", "ten and two": "ten and t…",
		"µµµµµµµµµµµ": "µµµµµµµµµ…"} {
		if got := Cut(line, 10); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// schedule is a table as `plan show` has it, 83 columns wide.
func schedule() (t Table) {
	t.Row("trial", "section", "car", "speed m/s", "direction of travel", "window s", "what is asked for")
	t.Row("1", "A", "alpha", "16.7", "inbound", "10.0", "hold")
	t.Row("2", "B", "alpha", "8.3", "outbound", "10.0", "hold for as long as it takes")
	t.Row("3", "B", "alpha", "2.8", "-", "10.0", "-")
	return t
}

// Where there is no width a table is what text/tabwriter makes of it.
func TestATableWithoutAWidthIsWhole(t *testing.T) {
	table := schedule()
	var got, want bytes.Buffer
	w := tabwriter.NewWriter(&want, 0, 0, 2, ' ', 0)
	for _, row := range table.rows {
		if _, err := w.Write([]byte(strings.Join(row, "\t") + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := table.Write(&got, 0); err != nil || got.String() != want.String() {
		t.Errorf("%v\n%s\nwant\n%s", err, got.String(), want.String())
	}
}

// On a terminal a table is no wider than that, and holds the same words.
func TestATableFits(t *testing.T) {
	table := schedule()
	for _, columns := range []int{200, 80, 60, 50, 40, 30} {
		got := table.text(columns)
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("%d of %d columns: %s", n, columns, line)
			}
		}
		for _, row := range table.rows {
			for _, cell := range row {
				for word := range strings.FieldsSeq(cell) {
					if word != "-" && word != "trial" && !strings.Contains(got, word) {
						t.Errorf("%q is not in %d columns:\n%s", word, columns, got)
					}
				}
			}
		}
	}
	const want = `trial  section  speed m/s  direction  what is asked
                           of travel  for
1      A        16.7       inbound    hold
2      B        8.3        outbound   hold for as long
                                      as it takes
3      B        2.8        -          -
the same in every row: car alpha; window s 10.0
`
	if got := table.text(54); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	const records = `trial 1
  section A; car alpha;
    speed m/s 16.7; direction of
    travel inbound; window s 10.0;
    what is asked for hold
`
	if got := table.text(35); !strings.HasPrefix(got, records) {
		t.Errorf("%s\nwant it to begin with\n%s", got, records)
	}
	var indented Table
	indented.Row("what", "found")
	indented.Row("radio", "")
	indented.Row("", "  of no interface")
	if got, want := indented.text(80), "what   found\nradio\n         of no interface\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var twice Table
	twice.Row("trial", "speed", "speed m/s", "goes")
	twice.Row("1", "2.8", "2.8", "outbound")
	twice.Row("2", "5.6", "5.6", "inbound")
	const once = `trial  speed m/s  goes
1      2.8        outbound
2      5.6        inbound
the same in every row: speed as
  speed m/s
`
	if got := twice.text(32); got != once {
		t.Errorf("%s\nwant\n%s", got, once)
	}
}
