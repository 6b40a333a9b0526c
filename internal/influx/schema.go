// Package influx writes records as InfluxDB's line protocol and sends them: the
// same points from the controller's archive and from an agent that logs by
// itself. Which measurement, tags and fields a record becomes is one table,
// which is generated from the record kinds in protocols/wire. It keeps nothing
// on disk and reads no clock; where a node's boot clock stands against wall
// time comes in as an argument.
package influx

import (
	"strings"
	"unicode/utf8"
)

// Type is a field's type. It never changes: InfluxDB refuses a point whose
// field has another type than the first one had.
type Type string

// The types of fields.
const (
	Integer Type = "integer"
	Float   Type = "float"
	Boolean Type = "boolean"
	Text    Type = "string"
)

// Measurement says what the records of one kind become. Values are taken from
// the record's JSON by their names; the table is all that there is to know.
type Measurement struct {
	Name    string // in InfluxDB
	Kind    string // of the record
	Meaning string
	Tags    []Tag   // besides those that every point has
	Fields  []Field // besides those that every point has
	LeftOut []LeftOut
}

// Tag is an indexed text; few different values each, for every combination is a
// series that the server keeps in memory.
type Tag struct {
	Name, Meaning string
	absent        string // the value where the record has none; "" leaves the tag out
}

// Field is a value. One that is unknown is absent from its point, never zero.
type Field struct {
	Name          string
	Type          Type
	Unit, Meaning string
	from          string // the record's name for it, where that is another
}

// source is the record's name for the field.
func (f Field) source() string {
	if f.from != "" {
		return f.from
	}
	return f.Name
}

// LeftOut is part of a record that stays in the archive only.
type LeftOut struct{ Name, Why string }

// textLimit bounds a text: InfluxDB 1.x takes 64 KiB a field.
const textLimit = 8 << 10

func tag(name, meaning string) Tag { return Tag{Name: name, Meaning: meaning} }

func integer(name, unit, meaning string) Field {
	return Field{Name: name, Type: Integer, Unit: unit, Meaning: meaning}
}

func float(name, unit, meaning string) Field {
	return Field{Name: name, Type: Float, Unit: unit, Meaning: meaning}
}

// text is absent when it is empty.
func text(name, meaning string) Field { return Field{Name: name, Type: Text, Meaning: meaning} }

// printable makes a text fit one line: valid UTF-8, a space for each control
// character, no more than limit bytes.
func printable(s string, limit int) string {
	if len(s) > limit {
		cut := limit
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, control) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// tagValue makes a text fit a tag, where a backslash at the end would escape
// the comma after it.
func tagValue(s string) string {
	return strings.TrimRight(printable(s, 256), `\`)
}

// commonTags are on every point, as far as they are known.
func commonTags() []Tag {
	return []Tag{
		{Name: "attempt", Meaning: "attempt at the trial, from 1; absent outside trials"},
		{Name: "node", Meaning: "node that made the record"},
		{Name: "run", Meaning: "run; absent when the node holds none"},
		{Name: "trial", Meaning: "trial's place in the schedule, from 1; absent outside trials"},
	}
}

// commonFields are on every point.
func commonFields() []Field {
	return []Field{
		{Name: "seq", Type: Integer, Meaning: "the record's number in its spool"},
		{Name: "t_boot_ns", Type: Integer, Unit: "ns", Meaning: "the node's boot clock"},
	}
}
