package influx

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ErrNoMeasurement is what a record gives whose kind has no measurement, one
// from a newer node for instance. The archive has it all the same.
var ErrNoMeasurement = errors.New("no measurement for this kind of record")

// Encoder makes points of records. It is for one goroutine at a time.
type Encoder struct {
	byKind map[string]*Measurement
	line   lineprotocol.Encoder
}

// NewEncoder returns an encoder of every kind in Schema.
func NewEncoder() *Encoder {
	e := &Encoder{byKind: map[string]*Measurement{}}
	schema := Schema()
	for i := range schema {
		e.byKind[schema[i].Kind] = &schema[i]
	}
	return e
}

// Append adds a record to dst as one line with a timestamp in nanoseconds.
// wallOffsetNs is wall time minus the boot clock of the record's node. A record
// that cannot become a valid point gives an error and leaves dst as it was.
func (e *Encoder) Append(dst []byte, r wire.Record, wallOffsetNs int64) ([]byte, error) {
	if r.Body == nil {
		return dst, fmt.Errorf("encode record %s/%d: no body", r.Node, r.Seq)
	}
	m := e.byKind[r.Body.Kind()]
	if _, unknown := r.Body.(wire.Unknown); m == nil || unknown {
		return dst, fmt.Errorf("encode record %s/%d of kind %q: %w", r.Node, r.Seq, r.Body.Kind(), ErrNoMeasurement)
	}
	at, err := Timestamp(r.Header, wallOffsetNs)
	if err != nil {
		return dst, err
	}
	if r.Seq > math.MaxInt64 {
		return dst, fmt.Errorf("encode record %s/%d: the number is too large", r.Node, r.Seq)
	}
	e.line.ClearErr()
	e.line.SetBuffer(dst)
	e.line.StartLine(m.Name)
	e.tags(r, m)
	e.fields(r, m)
	e.line.EndLine(time.Unix(0, at))
	if err := e.line.Err(); err != nil {
		return dst, fmt.Errorf("encode record %s/%d as %s: %w", r.Node, r.Seq, m.Name, err)
	}
	return e.line.Bytes(), nil
}

// Timestamp is a record's time in nanoseconds since 1970, UTC. Its last three
// digits are those of the record's number: two records of one instant stay two
// points, and the same record is the same point however often it is sent.
func Timestamp(h wire.Header, wallOffsetNs int64) (int64, error) {
	at := h.TBootNs + wallOffsetNs
	overflow := wallOffsetNs > 0 && at < h.TBootNs || wallOffsetNs < 0 && at > h.TBootNs
	if overflow || at < 1000 || at > math.MaxInt64-1000 {
		return 0, fmt.Errorf("encode record %s/%d: boot clock %d ns with offset %d ns is no wall time", h.Node, h.Seq, h.TBootNs, wallOffsetNs)
	}
	return at - at%1000 + int64(h.Seq%1000), nil
}

// tags writes the common and the measurement's tags in the order of their
// names, as the server wants to store them.
func (e *Encoder) tags(r wire.Record, m *Measurement) {
	common := [...]struct{ name, value string }{
		{"attempt", positive(r.Attempt)}, {"node", r.Node}, {"run", r.Run}, {"trial", positive(r.Trial)},
	}
	next := 0
	for _, t := range m.Tags {
		for ; next < len(common) && common[next].name < t.Name; next++ {
			e.tag(common[next].name, common[next].value)
		}
		e.tag(t.Name, t.get(r.Body))
	}
	for ; next < len(common); next++ {
		e.tag(common[next].name, common[next].value)
	}
}

// tag leaves out what is unknown: an empty tag is not allowed.
func (e *Encoder) tag(name, value string) {
	if v := tagValue(value); v != "" {
		e.line.AddTag(name, v)
	}
}

func (e *Encoder) fields(r wire.Record, m *Measurement) {
	e.line.AddField("seq", lineprotocol.IntValue(int64(r.Seq)))
	e.line.AddField("t_boot_ns", lineprotocol.IntValue(r.TBootNs))
	for _, f := range m.Fields {
		if v, ok := f.get(r.Body); ok {
			e.line.AddField(f.Name, v)
		}
	}
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Document is the schema as Markdown, for protocols/wire/INFLUX.md.
func Document() string {
	var b strings.Builder
	b.WriteString(preface)
	b.WriteString("\n| tag | meaning |\n|---|---|\n")
	for _, t := range commonTags() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", t.Name, t.Meaning)
	}
	writeFields(&b, commonFields())
	for _, m := range Schema() {
		fmt.Fprintf(&b, "\n## %s\n\n%s Made of records of kind `%s`.\n", m.Name, m.Meaning, m.Kind)
		if len(m.Tags) > 0 {
			b.WriteString("\n| tag | meaning |\n|---|---|\n")
		}
		for _, t := range m.Tags {
			fmt.Fprintf(&b, "| `%s` | %s |\n", t.Name, t.Meaning)
		}
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
	return b.String()
}

func writeFields(b *strings.Builder, fields []Field) {
	b.WriteString("\n| field | type | unit | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, f.Unit, f.Meaning)
	}
}

const preface = `# Records in InfluxDB

<!-- Made by protocols/influx: go test ./protocols/influx -run Document -update -->

Every record of a kind below becomes one point, from the controller (` + "`--influx`" + ` during a run, ` + "`fieldmesh publish`" + ` afterwards)
or from ` + "`fieldmesh-agent log`" + `. The archive is the truth; the database can be wiped and rebuilt from it at any time.

- One write path serves InfluxDB 1.x, 2.x and 3: ` + "`POST /write?db=…&precision=ns`" + `, gzip, Basic authentication. For 2.x any user with the token as password.
- Tags and fields have the names that they have in the record. What is unknown is absent from the point, never zero.
- A field's type never changes. No name is a tag in one measurement and a field in another.
- The timestamp is UTC in nanoseconds: the node's boot clock, put on the controller's wall clock by the clock estimate of the
  attempt (without one: by that of the attempt before it on the same node). So all nodes of a run stand on one time axis. Its last three digits are
  the record's number modulo 1000: two records of one instant stay two points, and a record that is sent twice stays one.
- A text is at most 8 KiB; control characters in it become spaces.

## On every point
`
