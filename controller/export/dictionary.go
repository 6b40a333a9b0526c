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
A trial has as many attempts as it took: (trial, attempt) is the key of every table, and
only attempts whose ` + "`counts`" + ` is 1 are results: accepted, no calibration, and driven before the run had enough.
`

// windowColumns are those that timelines.csv and places.csv begin with.
var windowColumns = []column{
	{name: "run", meaning: "name of the run"},
	{name: "trial", meaning: "number of the trial in the schedule"},
	{name: "attempt", meaning: "which attempt at the trial; trials.csv has its outcome"},
}

// timed are the tables of what was so at a moment of a window, or in a second of it.
var timed = []struct {
	name, meaning string
	columns       []column
}{
	{"timelines.csv", "Every attempt that opened a window, rejected, failed and interrupted ones and calibration " +
		"passes too, ten rows a second.", []column{
		{name: "s", unit: "s", meaning: "since the window opened"},
		{name: "throughput_bps", unit: "bit/s", meaning: "what arrived in all measured flows together over the tenth " +
			"of a second that ends here; in metrics.csv a number of this name is of one flow and the whole window"},
		{name: "speed_mps", unit: "m/s", meaning: "of the car, by its newest fix; absent where that is too old"},
		{name: "distance_m", unit: "m", meaning: "of the two nodes by their GPS positions"},
		{name: "signal_dbm", unit: "dBm", meaning: "at the receiver, of the sender's frames"},
		{name: "cwnd_segments", unit: "segments", meaning: "sum over the sender's data sockets of measured flows"},
		{name: "truth_speed_mps", unit: "m/s", meaning: "of the car in the emulated field; of a rehearsal only"},
		{name: "wifi_signal_dbm", unit: "dBm", meaning: "of the access point's frames at the car, or where none " +
			"drives at the receiver, as Android told it; at each reading only"},
	}},
	{"places.csv", "Every attempt with a car that opened a window, however it ended, a row a second: only rows whose " +
		"`counts` is 1 are of results. Means are of the moments of timelines.csv in that second.", []column{
		{name: "s", unit: "s", meaning: "since the window opened, at the second's begin"},
		{name: "time_utc", meaning: "of the fix that the place is of, by the receiver; empty: it lies between fixes"},
		{name: "lat_deg", unit: "°", meaning: "of the car, by the fix nearest to the second's middle, else " +
			"between fixes"},
		{name: "lon_deg", unit: "°", meaning: "the same"},
		{name: "distance_m", unit: "m", meaning: "of the two nodes, mean"},
		{name: "speed_mps", unit: "m/s", meaning: "of the car, mean"},
		{name: "signal_dbm", unit: "dBm", meaning: "at the receiver, mean"},
		{name: "throughput_bps", unit: "bit/s", meaning: "of all measured flows together, mean"},
		{name: "datagrams_sent", meaning: "those of flows of kind delay that were due in this second, and whose " +
			"answer was waited for to the end"},
		{name: "datagrams_lost_percent", unit: "%", meaning: "share of them without an answer"},
		{name: "wifi_signal_dbm", unit: "dBm", meaning: "as in timelines.csv, mean of the readings"},
		{name: "outcome", meaning: "outcome of the attempt; empty while it is not judged"},
		{name: "counts", meaning: "as in trials.csv: 1 where the attempt is a result"},
	}},
}

const (
	resultsMeaning = "Every accepted attempt, one a row. A number of one flow has the flow's name and a dot before " +
		"its own."
	trialsMeaning = "Every attempt, one a row: what was planned and what happened to it. A factor's level is in a " +
		"column of its name."
)

// Table is one of an export that has other columns than the records and metrics.csv.
type Table struct {
	Name, Meaning string
	Columns       []influx.Column
}

// Tables are all of them, by the names of their files without their endings.
func Tables() []Table {
	out := []Table{{"results", resultsMeaning, withTypes(resultColumns)},
		{"trials", trialsMeaning, withTypes(trialColumns)}}
	for _, t := range timed {
		out = append(out, Table{strings.TrimSuffix(t.name, ".csv"), t.meaning,
			withTypes(slices.Concat(windowColumns, t.columns))})
	}
	return out
}

// withTypes are columns as a Parquet table has them.
func withTypes(columns []column) []influx.Column {
	var out []influx.Column
	for _, c := range columns {
		out = append(out, influx.Column{Name: c.name, Type: c.kind, Unit: c.unit, Meaning: c.meaning})
	}
	return out
}

// writeDictionary says what the columns of the tables that were written mean,
// and what is in no table.
func writeDictionary(w io.Writer, results []column, files []file, tables []string, unknown map[string]int) error {
	var b strings.Builder
	b.WriteString(dictionaryHead)
	// Factors and flows have names from outside.
	plain := strings.NewReplacer("|", `\|`, "`", "'", "<", "&lt;", "\n", " ", "\r", " ")
	table := func(name, meaning string, columns []column) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| column | unit | meaning |\n|---|---|---|\n", name, meaning)
		for _, c := range columns {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", plain.Replace(c.name), c.unit, plain.Replace(c.meaning))
		}
	}
	table("results.csv and results.parquet", resultsMeaning, results)
	table("trials.csv", trialsMeaning, trialColumns)
	for _, t := range timed {
		if slices.ContainsFunc(files, func(f file) bool { return f.name == t.name }) {
			table(t.name, t.meaning, slices.Concat(windowColumns, t.columns))
		}
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
