package export

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/internal/influx"
)

const dictionaryHead = `# Data dictionary

Every table of ` + "`records/`" +
	` holds the records of one kind, one a row. (node, epoch, seq) names a record. A value that is not
known is absent (null), never zero. Times are of the node's own boot clock; what lies between the clocks of two nodes, with
its uncertainty, is in ` + "`records/clock.parquet`" + `. The numbers of ` + "`metrics.csv`" +
	` carry unit and definition in their own lines.
` + "`trials.csv`" + ` says of every attempt what was planned and what happened to it: ` + "`target_mps`" +
	` is the car's speed as planned, in m/s,
` + "`duration_s`" + ` the length of the measuring window, ` + "`pass`" + ` says ` + "`calibration`" +
	` of what answers no question of the campaign's, and a
column that has a factor's name its level. A trial has as many attempts as it took: (trial, attempt) is the key of every table, and
only attempts whose ` + "`counts`" + ` is 1 are results: accepted, no calibration, and driven before the run had enough. ` + "`counts`" + ` is
absent while an attempt is not judged.
`

// writeDictionary says what the columns of the tables that were written mean,
// and what is in no table.
func writeDictionary(w io.Writer, results []column, tables []string, unknown map[string]int) error {
	var b strings.Builder
	b.WriteString(dictionaryHead)
	b.WriteString("\n## results.csv and results.parquet\n\nEvery accepted attempt, one a row. A number of one flow " +
		"has the flow's name and a dot before its own.\n\n| column | unit | meaning |\n|---|---|---|\n")
	// Factors and flows have names from outside.
	plain := strings.NewReplacer("|", `\|`, "`", "'", "<", "&lt;", "\n", " ", "\r", " ")
	for _, c := range results {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", plain.Replace(c.name), c.unit, plain.Replace(c.meaning))
	}
	for _, m := range influx.Schema() {
		if !slices.Contains(tables, fileOf(m.Name)) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| column | type | unit | meaning |\n|---|---|---|---|\n", fileOf(m.Name),
			m.Meaning)
		for _, c := range columnsOf(m) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, c.Type, c.Unit, c.Meaning)
		}
		for _, l := range m.LeftOut {
			fmt.Fprintf(&b, "\n`%s` is in `records.ndjson` only: %s.\n", l.Name, l.Why)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(unknown)) {
		fmt.Fprintf(&b, "\nRecords of kind `%s` (%d) are of no table that this version knows; they are in "+
			"`records.ndjson`.\n",
			strings.ReplaceAll(kind, "`", "'"), unknown[kind])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
