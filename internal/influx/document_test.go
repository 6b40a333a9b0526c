package influx

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestDocumentIsUpToDate(t *testing.T) {
	const path = "../../protocols/wire/INFLUX.md"
	if *update {
		if err := os.WriteFile(path, []byte(document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != document() {
		t.Errorf("%s does not agree with the schema: go generate ./protocols/wire", path)
	}
}

// document is the schema as Markdown, for protocols/wire/INFLUX.md.
func document() string {
	var b strings.Builder
	b.WriteString(preface)
	b.WriteString("\n| tag | meaning |\n|---|---|\n")
	for _, t := range commonTags() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", t.Name, t.Meaning)
	}
	writeFields(&b, commonFields())
	for _, m := range Schema() {
		fmt.Fprintf(&b, "\n## %s\n\n%s Made of records of kind `%s`.\n", m.Name, m.Meaning, m.Kind)
		writeTags(&b, m.Tags)
		writeFields(&b, m.Fields)
		if len(m.LeftOut) > 0 {
			b.WriteString("\nOnly in the archive: ")
		}
		for i, l := range m.LeftOut {
			if i > 0 {
				b.WriteString("; ")
			}
			fmt.Fprintf(&b, "`%s` (%s)", l.Name, l.Why)
		}
		if len(m.LeftOut) > 0 {
			b.WriteString(".\n")
		}
	}
	b.WriteString(computedPreface)
	for _, m := range Computed() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", m.Name, m.Meaning)
		writeTags(&b, m.Tags)
		writeFields(&b, m.Fields)
	}
	return b.String()
}

func writeTags(b *strings.Builder, tags []Tag) {
	if len(tags) > 0 {
		b.WriteString("\n| tag | meaning |\n|---|---|\n")
	}
	for _, t := range tags {
		fmt.Fprintf(b, "| `%s` | %s |\n", t.Name, t.Meaning)
	}
}

func writeFields(b *strings.Builder, fields []Field) {
	b.WriteString("\n| field | type | unit | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, f.Unit, f.Meaning)
	}
}

const preface = `# Records in InfluxDB

<!-- Made by go generate ./protocols/wire -->

Every record of a kind below becomes one point, from the controller (` + "`--influx`" + ` during a run, ` +
	"`fieldmesh publish`" + ` afterwards)
or from ` + "`fieldmesh-agent log`" +
	`. The archive is the truth; the database can be wiped and rebuilt from it at any time.

- One write path serves InfluxDB 1.x, 2.x and 3: ` + "`POST /write?db=…&precision=ns`" +
	`, gzip, Basic authentication. For 2.x any user with the token as password.
- Tags and fields have the names that they have in the record. What is unknown is absent from the point, never zero.
- A field's type never changes. No name is a tag in one measurement and a field in another.
- The timestamp is UTC in nanoseconds: the node's boot clock, put on the controller's wall clock by the clock estimate of the
  attempt (without one: by that of the attempt before it on the same node). So all nodes of a run stand on one time axis. Its last three digits are
  the record's number modulo 1000: two records of one instant stay two points, and a record that is sent twice stays one.
- A text is at most 8 KiB; control characters in it become spaces.

## On every point
`

const computedPreface = `
# What the controller computes

Besides the records, from the plan and, when an attempt has been judged, from all of its records, with the report's own
definitions (` + "`metrics.csv`" + ` states them in full). These points have no tag ` + "`node`" +
	` and none of the fields above. A run that
goes on, or records that come late, write the same point again.
`
