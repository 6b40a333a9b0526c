package influx

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ErrNoMeasurement is what a record gives whose kind has no measurement, one
// from a newer node for instance. The archive has it all the same.
var ErrNoMeasurement = errors.New("no measurement for this kind of record")

// Encoder makes points of records, straight from their JSON: a run has hundreds
// of thousands, and making each a Go value first costs ten times as much. It is
// for one goroutine at a time.
type Encoder struct {
	layouts map[string]*layout // by kind of record
	point   Point
	names   map[string]string // texts that come with every record, kept once
}

// layout is where a measurement's values go.
type layout struct {
	Measurement
	slots    map[string]int // name in the record → place in Point.values: tags, then fields
	prefixes [][]byte       // of the fields: ",name="
}

// Point is a record that has been read and not yet written.
type Point struct {
	Header wire.Header
	layout *layout // nil: of a kind that has no measurement
	values [][]byte
	member []member
}

// NewEncoder returns an encoder of every kind in Schema.
func NewEncoder() *Encoder {
	e := &Encoder{layouts: map[string]*layout{}, names: map[string]string{}}
	for _, m := range Schema() {
		l := &layout{Measurement: m, slots: map[string]int{}}
		for i, t := range m.Tags {
			l.slots[t.Name] = i
		}
		for i, f := range m.Fields {
			l.slots[f.source()] = len(m.Tags) + i
			l.prefixes = append(l.prefixes, []byte(","+f.Name+"="))
		}
		e.layouts[m.Kind] = l
	}
	return e
}

// Parse reads a record's line of JSON. The point is valid until the next Parse,
// and as long as the line is not changed.
func (e *Encoder) Parse(line []byte) (*Point, error) {
	p := &e.point
	var err error
	if p.member, err = members(p.member[:0], line); err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	if err := e.header(p); err != nil {
		return nil, err
	}
	p.layout = e.layouts[p.Header.Kind]
	if p.layout == nil {
		return p, nil
	}
	p.values = append(p.values[:0], make([][]byte, len(p.layout.Tags)+len(p.layout.Fields))...)
	for _, m := range p.member {
		if slot, ok := p.layout.slots[string(m.key)]; ok && !m.null() {
			p.values[slot] = m.value
		}
	}
	return p, nil
}

// header reads what every record has.
func (e *Encoder) header(p *Point) error {
	h := wire.Header{}
	for _, m := range p.member {
		var err error
		switch string(m.key) {
		case "kind":
			h.Kind, err = e.name(m)
		case "version":
			h.Version, err = m.small()
		case "node":
			h.Node, err = e.name(m)
		case "epoch":
			h.Epoch, err = e.name(m)
		case "seq":
			h.Seq, err = strconv.ParseUint(string(m.value), 10, 63)
		case "t_boot_ns":
			h.TBootNs, err = strconv.ParseInt(string(m.value), 10, 64)
		case "run":
			h.Run, err = e.name(m)
		case "trial":
			h.Trial, err = m.small()
		case "attempt":
			h.Attempt, err = m.small()
		}
		if err != nil {
			return fmt.Errorf("read record: %s: %w", m.key, err)
		}
	}
	if h.Kind == "" {
		return errors.New("read record: it has no kind")
	}
	p.Header = h
	return nil
}

// name is a text of which there are few different ones.
func (e *Encoder) name(m member) (string, error) {
	if known, ok := e.names[string(m.value)]; ok {
		return known, nil
	}
	s, err := m.text()
	if err != nil {
		return "", err
	}
	if len(e.names) > 1000 {
		clear(e.names)
	}
	e.names[string(m.value)] = s
	return s, nil
}

// Append adds a point to dst as one line with a timestamp in nanoseconds.
// wallOffsetNs is wall time minus the boot clock of the record's node. A record
// that cannot become a valid point gives an error and leaves dst as it was.
func (e *Encoder) Append(dst []byte, p *Point, wallOffsetNs int64) ([]byte, error) {
	h := p.Header
	if p.layout == nil {
		return dst, fmt.Errorf("encode record %s/%d of kind %q: %w", h.Node, h.Seq, h.Kind, ErrNoMeasurement)
	}
	at, err := Timestamp(h, wallOffsetNs)
	if err != nil {
		return dst, err
	}
	line := append(dst, p.layout.Name...)
	if line, err = e.appendTags(line, p); err == nil {
		line, err = appendFields(line, p)
	}
	if err != nil {
		return dst, fmt.Errorf("encode record %s/%d as %s: %w", h.Node, h.Seq, p.layout.Name, err)
	}
	line = append(line, ' ')
	return append(strconv.AppendInt(line, at, 10), '\n'), nil
}

// Timestamp is a record's time in nanoseconds since 1970, UTC. Its last three
// digits are those of the record's number: two records of one instant stay two
// points, and the same record is the same point however often it is sent.
func Timestamp(h wire.Header, wallOffsetNs int64) (int64, error) {
	at := h.TBootNs + wallOffsetNs
	overflow := wallOffsetNs > 0 && at < h.TBootNs || wallOffsetNs < 0 && at > h.TBootNs
	if overflow || at < 1000 || at > math.MaxInt64-1000 {
		return 0, fmt.Errorf("encode record %s/%d: boot clock %d ns with offset %d ns is not a wall time", h.Node,
			h.Seq, h.TBootNs, wallOffsetNs)
	}
	return at - at%1000 + int64(h.Seq%1000), nil
}

// appendTags writes the common and the measurement's tags in the order of their
// names, as the server wants to store them.
func (e *Encoder) appendTags(line []byte, p *Point) ([]byte, error) {
	h := p.Header
	common := [...]struct{ name, value string }{
		{"attempt", positive(h.Attempt)}, {"node", h.Node}, {"run", h.Run}, {"trial", positive(h.Trial)},
	}
	next := 0
	for i, t := range p.layout.Tags {
		for ; next < len(common) && common[next].name < t.Name; next++ {
			line = appendTag(line, common[next].name, common[next].value)
		}
		value := t.absent
		if raw := p.values[i]; raw != nil {
			var err error
			if value, err = e.name(member{value: raw}); err != nil {
				return line, fmt.Errorf("%s: %w", t.Name, err)
			}
		}
		line = appendTag(line, t.Name, value)
	}
	for ; next < len(common); next++ {
		line = appendTag(line, common[next].name, common[next].value)
	}
	return line, nil
}

// appendTag leaves out what is unknown: an empty tag is not allowed.
func appendTag(line []byte, name, value string) []byte {
	value = tagValue(value)
	if value == "" {
		return line
	}
	line = append(append(append(line, ','), name...), '=')
	for i := range len(value) {
		switch c := value[i]; c {
		case ',', '=', ' ':
			line = append(line, '\\', c)
		default:
			line = append(line, c)
		}
	}
	return line
}

func appendFields(line []byte, p *Point) ([]byte, error) {
	line = strconv.AppendUint(append(line, " seq="...), p.Header.Seq, 10)
	line = strconv.AppendInt(append(line, "i,t_boot_ns="...), p.Header.TBootNs, 10)
	line = append(line, 'i')
	for i, f := range p.layout.Fields {
		raw := p.values[len(p.layout.Tags)+i]
		if raw == nil {
			continue
		}
		before := len(line)
		line = append(line, p.layout.prefixes[i]...)
		grown, ok, err := appendValue(line, f.Type, member{value: raw})
		switch {
		case err != nil:
			return line, fmt.Errorf("%s: %w", f.Name, err)
		case ok:
			line = grown
		default:
			line = line[:before]
		}
	}
	return line, nil
}

// appendValue writes a value of a type; ok is false for one that a point cannot
// hold, which is then absent. A number's text in JSON is its text here.
func appendValue(line []byte, t Type, m member) (grown []byte, ok bool, err error) {
	switch t {
	case Integer:
		fits, err := m.integer()
		return append(append(line, m.value...), 'i'), fits, err
	case Float:
		return append(line, m.value...), true, m.float()
	case Boolean:
		if string(m.value) != "true" && string(m.value) != "false" {
			return line, false, fmt.Errorf("%.40q is neither true nor false", m.value)
		}
		return append(line, m.value...), true, nil
	}
	s, err := m.text()
	if err != nil || s == "" {
		return line, false, err
	}
	return appendText(line, s), true, nil
}

// appendText quotes a text.
func appendText(line []byte, s string) []byte {
	line = append(line, '"')
	s = printable(s, textLimit)
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			line = append(line, '\\')
		}
		line = append(line, s[i])
	}
	return append(line, '"')
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
