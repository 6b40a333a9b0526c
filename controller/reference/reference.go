// Package reference knows every key of the files that people write, every column
// of the records, every number and every exit status, each with its meaning. It
// gathers what others declare: the JSON Schemas, the records' schema, the metrics'
// definitions, the tables of an export. The pages of the field guides and `fieldmesh explain` are made of it.
package reference

import (
	_ "embed" // keys.json
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/internal/influx"
)

// Formats in the order of the reference.
const (
	Campaign = "campaign"
	Agent    = "agent.yaml"
	Fleet    = "fleet.yaml"
	Record   = "record"
	Metric   = "metric"
	Table    = "table"
	Status   = "exit status"
)

// Formats are all of them, each with what it is.
func Formats() [][2]string {
	return [][2]string{
		{Campaign, "the campaign file, which `fieldmesh plan check`, `rehearse` and `run` read"},
		{Agent, "a node's configuration, /etc/fieldmesh/agent.yaml"},
		{Fleet, "the controller's list of nodes, which `fieldmesh keys init` and `keys pair` write"},
		{Record, "what nodes record: columns of the Parquet tables of an export and, with fm_ before the kind, " +
			"measurements in InfluxDB"},
		{Metric, "numbers of an attempt, in metrics.csv and as columns of results.csv: there FLOW.NAME for a flow's"},
		{Table, "other columns of an export, in results.csv, trials.csv, timelines.csv and places.csv"},
		{Status, "what the program fieldmesh ends with"},
	}
}

// Entry is one key.
type Entry struct {
	Format  string `json:"format"`
	Key     string `json:"key"` // dotted; NAME stands for a name that is free, [] for the elements of a list
	Type    string `json:"type,omitempty"`
	Unit    string `json:"unit,omitempty"`
	Range   string `json:"range,omitempty"` // what it may be
	Default string `json:"default,omitempty"`
	Needed  bool   `json:"required,omitempty"`
	Meaning string `json:"meaning"`
}

//go:generate go test -run TestKeysAreCurrent -update .
//go:embed keys.json
var keysJSON []byte

// All are the keys of all formats.
func All() ([]Entry, error) {
	var out []Entry
	if err := json.Unmarshal(keysJSON, &out); err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	for _, m := range influx.Schema() {
		out = append(out, Entry{Format: Record, Key: m.Kind, Meaning: m.Meaning})
		for _, c := range m.Columns() {
			out = append(out, Entry{Format: Record, Key: m.Kind + "." + c.Name, Type: string(c.Type), Unit: c.Unit,
				Meaning: c.Meaning})
		}
	}
	for _, d := range metrics.Definitions() {
		out = append(out, Entry{Format: Metric, Key: d.Name, Unit: d.Unit, Meaning: d.Text})
	}
	for _, t := range export.Tables() {
		out = append(out, Entry{Format: Table, Key: t.Name, Meaning: t.Meaning})
		for _, c := range t.Columns {
			out = append(out, Entry{Format: Table, Key: t.Name + "." + c.Name, Type: string(c.Type), Unit: c.Unit,
				Meaning: c.Meaning})
		}
	}
	for _, s := range Statuses() {
		out = append(out, Entry{Format: Status, Key: fmt.Sprint(s.Code), Meaning: s.Meaning})
	}
	return out, nil
}

// ExitStatus is one that the program ends with.
type ExitStatus struct {
	Code    int
	Meaning string
}

// Exit statuses that are not a shell's own convention.
const (
	StatusUsage  = 2
	StatusUnmet  = 3
	StatusResume = 75 // EX_TEMPFAIL of sysexits.h: batch systems can be told that it asks to be run again
)

// Statuses are all exit statuses.
func Statuses() []ExitStatus {
	return []ExitStatus{
		{0, "it was done"},
		{1, "it could not be done"},
		{StatusUsage, "the command line is wrong, and nothing was begun"},
		{StatusUnmet, "it was done, and found what is not well: trials that were not accepted, needs that are not " +
			"met, nodes with problems, files that do not match"},
		{StatusResume, "a rehearsal in virtual time was cut off, and can be resumed"},
		{130, "it was interrupted"},
	}
}

// Find returns the keys that a word means: those that are called so, or else that lie
// below it, or else whose path ends with it. A word may begin with a format, or be a
// column of results.csv with the name of a flow or a factor in it.
func Find(all []Entry, word string) []Entry {
	pick := func(is func(e Entry) bool) []Entry {
		var out []Entry
		for _, e := range all {
			if is(e) {
				out = append(out, e)
			}
		}
		return out
	}
	_, number, _ := strings.Cut(word, ".")
	for _, is := range []func(e Entry) bool{
		func(e Entry) bool { return e.Key == word || e.Format+"."+e.Key == word || e.Format+" "+e.Key == word },
		func(e Entry) bool { return e.Format == word && !strings.Contains(e.Key, ".") },
		func(e Entry) bool { return strings.HasSuffix(plain(e.Key), "."+word) },
		func(e Entry) bool { return e.Format == Metric && e.Key == number },
		func(e Entry) bool {
			before, free := strings.CutSuffix(strings.TrimPrefix(e.Key, "results."), "NAME")
			return e.Format == Table && free && strings.HasPrefix(word, before)
		},
	} {
		if out := pick(is); len(out) > 0 {
			return out
		}
	}
	return nil
}

// plain is a key without the marks of list elements.
func plain(key string) string { return strings.ReplaceAll(key, "[]", "") }

// Below are the keys one step below a key.
func Below(all []Entry, of Entry) []Entry {
	var out []Entry
	for _, e := range all {
		rest, below := strings.CutPrefix(e.Key, of.Key)
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "[]"), ".")
		rest = strings.TrimPrefix(rest, "NAME.")
		if below && e.Format == of.Format && e.Key != of.Key && rest != "" && !strings.Contains(rest, ".") &&
			strings.HasPrefix(strings.TrimPrefix(e.Key, of.Key), nextMark(e.Key, of.Key)) {
			out = append(out, e)
		}
	}
	return out
}

// nextMark is what has to follow a key that another begins with, so that course is
// not above course_kind.
func nextMark(key, above string) string {
	if strings.HasPrefix(strings.TrimPrefix(key, above), "[]") {
		return "[]"
	}
	return "."
}

// Near are keys whose last part is spelt like a word.
func Near(all []Entry, word string, nearest func(string, []string) string) string {
	var names []string
	for _, e := range all {
		names = append(names, e.Key, e.Key[strings.LastIndexByte(e.Key, '.')+1:])
	}
	slices.Sort(names)
	return nearest(word, slices.Compact(names))
}

// Traits are a key's type, range, default and whether it is required, in words.
func (e Entry) Traits() string {
	var out []string
	for _, t := range []string{e.Type, e.Range} {
		if t != "" {
			out = append(out, t)
		}
	}
	if e.Unit != "" && e.Unit != "1" {
		out = append(out, "in "+e.Unit)
	}
	if e.Needed {
		out = append(out, "required")
	}
	if e.Default != "" {
		out = append(out, "default "+e.Default)
	}
	return strings.Join(out, "; ")
}
