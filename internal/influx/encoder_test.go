package influx

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

var update = flag.Bool("update", false, "write protocols/wire/INFLUX.md and testdata/points.txt again")

// point is one decoded line.
type point struct {
	name   string
	tags   map[string]string
	fields map[string]lineprotocol.Value
	ns     int64
}

// decode reads lines back with the same care as a server does.
func decode(t testing.TB, lines []byte) []point {
	t.Helper()
	var out []point
	d := lineprotocol.NewDecoderWithBytes(lines)
	for d.Next() {
		name, err := d.Measurement()
		p := point{name: string(name), tags: map[string]string{}, fields: map[string]lineprotocol.Value{}}
		for err == nil {
			var k, v []byte
			if k, v, err = d.NextTag(); k == nil {
				break
			}
			p.tags[string(k)] = string(v)
		}
		for err == nil {
			var k []byte
			var v lineprotocol.Value
			if k, v, err = d.NextField(); k == nil {
				break
			}
			p.fields[string(k)] = v
		}
		var at time.Time
		if err == nil {
			at, err = d.Time(lineprotocol.Nanosecond, time.Time{})
		}
		if err != nil {
			t.Fatalf("decode %q: %v", lines, err)
		}
		p.ns = at.UnixNano()
		out = append(out, p)
	}
	return out
}

// goldens are the records of the schema's golden files, every field filled.
func goldens(t testing.TB) []wire.Record {
	t.Helper()
	files, err := filepath.Glob("../../protocols/wire/golden/record_*.json")
	if err != nil || len(files) < 14 {
		t.Fatalf("golden records: found %d, %v", len(files), err)
	}
	var out []wire.Record
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var line bytes.Buffer
		if err := json.Compact(&line, text); err != nil {
			t.Fatal(err)
		}
		var r wire.Record
		if err := json.Unmarshal(line.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// appendRecord encodes a record by way of its JSON.
func appendRecord(t testing.TB, e *Encoder, dst []byte, r wire.Record, wallOffsetNs int64) ([]byte, error) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Parse(text)
	if err != nil {
		return dst, err
	}
	return e.Append(dst, p, wallOffsetNs)
}

const offset = int64(1_790_000_000_000_000_000)

func TestEveryKindBecomesItsPoint(t *testing.T) {
	e := NewEncoder()
	byKind := map[string]Measurement{}
	for _, m := range Schema() {
		byKind[m.Kind] = m
	}
	for _, r := range goldens(t) {
		lines, err := appendRecord(t, e, nil, r, offset)
		if err != nil {
			t.Errorf("%s: %v", r.Body.Kind(), err)
			continue
		}
		points := decode(t, lines)
		if len(points) != 1 {
			t.Fatalf("%s: %d points of %q", r.Body.Kind(), len(points), lines)
		}
		checkAgainst(t, byKind[r.Body.Kind()], r, points[0])
		compare(t, byKind[r.Body.Kind()], r, points[0])
	}
}

// A database that has points must go on to understand new ones: what a record
// becomes changes on purpose only.
func TestGoldenPoints(t *testing.T) {
	const path = "testdata/points.txt"
	e := NewEncoder()
	var lines []byte
	for _, r := range goldens(t) {
		var err error
		if lines, err = appendRecord(t, e, lines, r, offset); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(path, lines, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.SplitAfter(string(want), "\n")
	for line := range strings.Lines(string(lines)) {
		if !slices.Contains(known, line) {
			t.Errorf("no such point in %s; on purpose? go generate ./protocols/wire\n%s", path, line)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d bytes of points, %d in %s", len(lines), len(want), path)
	}
}

// checkAgainst compares a point of a record whose every field is filled with
// the schema: nothing missing, nothing more, every type as written.
func checkAgainst(t *testing.T, m Measurement, r wire.Record, p point) {
	t.Helper()
	if p.name != m.Name {
		t.Errorf("%s became %s, want %s", m.Kind, p.name, m.Name)
	}
	tags := map[string]bool{}
	for _, tag := range append(commonTags(), m.Tags...) {
		tags[tag.Name] = true
		if p.tags[tag.Name] == "" {
			t.Errorf("%s has no tag %s", m.Name, tag.Name)
		}
	}
	fields := map[string]bool{}
	for _, f := range append(commonFields(), m.Fields...) {
		fields[f.Name] = true
		v, ok := p.fields[f.Name]
		if !ok {
			t.Errorf("%s has no field %s", m.Name, f.Name)
			continue
		}
		want := map[Type]lineprotocol.ValueKind{Integer: lineprotocol.Int, Float: lineprotocol.Float,
			Boolean: lineprotocol.Bool, Text: lineprotocol.String}[f.Type]
		if v.Kind() != want {
			t.Errorf("%s.%s is %v, documented %s", m.Name, f.Name, v.Kind(), f.Type)
		}
	}
	if len(p.tags) != len(tags) || len(p.fields) != len(fields) {
		t.Errorf("%s: tags %v and fields %v beyond the schema", m.Name, p.tags, p.fields)
	}
	if want := r.TBootNs + offset; p.ns/1000 != want/1000 || p.ns%1000 != int64(r.Seq%1000) {
		t.Errorf("%s: time %d, want the microsecond of %d and the record's number %d", m.Name, p.ns, want, r.Seq)
	}
}

// Every field of a body is a tag, a field, or left out with a reason.
func TestNoFieldIsForgotten(t *testing.T) {
	byKind := map[string]Measurement{}
	for _, m := range Schema() {
		byKind[m.Kind] = m
	}
	for _, r := range goldens(t) {
		kind := r.Body.Kind()
		known := map[string]bool{}
		for _, tag := range byKind[kind].Tags {
			known[tag.Name] = true
		}
		for _, f := range byKind[kind].Fields {
			known[f.source()] = true
		}
		for _, l := range byKind[kind].LeftOut {
			known[l.Name] = true
		}
		typ := reflect.TypeOf(r.Body).Elem()
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !known[name] {
				t.Errorf("%s.%s is in the record but neither in the schema nor left out", kind, name)
			}
			delete(known, name)
		}
		for name := range known {
			t.Errorf("%s.%s is in the schema but not in the record", kind, name)
		}
	}
}

func TestNamesKeepTheirMeaning(t *testing.T) {
	tags, fields, measurements := map[string]bool{}, map[string]Type{}, map[string]bool{}
	for _, tag := range commonTags() {
		tags[tag.Name] = true
	}
	for _, m := range slices.Concat(Schema(), Computed()) {
		if measurements[m.Name] {
			t.Errorf("two measurements are called %s", m.Name)
		}
		measurements[m.Name] = true
		for _, tag := range m.Tags {
			tags[tag.Name] = true
		}
		for _, f := range append(commonFields(), m.Fields...) {
			if had, ok := fields[f.Name]; ok && had != f.Type {
				t.Errorf("%s.%s is %s, elsewhere %s", m.Name, f.Name, f.Type, had)
			}
			fields[f.Name] = f.Type
		}
	}
	for name := range fields {
		if tags[name] {
			t.Errorf("%s is a tag and a field", name)
		}
		if name == "time" {
			t.Error("a field may not be called time")
		}
	}
}

func TestUnknownIsAbsent(t *testing.T) {
	r := wire.Record{Header: wire.Header{Node: "car", Seq: 7, TBootNs: 5_000_000_000}, Body: &wire.GPS{}}
	lines, err := appendRecord(t, NewEncoder(), nil, r, offset)
	if err != nil {
		t.Fatal(err)
	}
	const want = "fm_gps,node=car seq=7i,t_boot_ns=5000000000i,mode=0i,connected=false 1790000005000000007\n"
	if string(lines) != want {
		t.Errorf("got  %swant %s", lines, want)
	}
}

func TestAwkwardText(t *testing.T) {
	e := NewEncoder()
	for _, text := range []string{`a "quoted" \ word`, "two\nlines", "tab\tand\x00nul", "Grüße, =x y", `ends in \`,
		strings.Repeat("ü", 6000), "\xff\xfe"} {
		r := wire.Record{Header: wire.Header{Node: "car, one=1", Run: "r", Seq: 1, TBootNs: 1},
			Body: &wire.Event{Level: text, Text: text}}
		lines, err := appendRecord(t, e, nil, r, offset)
		if err != nil {
			t.Errorf("%.20q: %v", text, err)
			continue
		}
		if bytes.Count(lines, []byte("\n")) != 1 {
			t.Errorf("%.20q is more than one line: %q", text, lines)
		}
		p := decode(t, lines)[0]
		if p.tags["node"] != "car, one=1" {
			t.Errorf("node became %q", p.tags["node"])
		}
		if got := p.fields["text"].StringV(); len(got) > textLimit || strings.HasPrefix(text, "a ") && got != text {
			t.Errorf("text %.20q became %.40q", text, got)
		}
	}
}

func TestRefusedRecordsLeaveNoTrace(t *testing.T) {
	e := NewEncoder()
	before := []byte("fm_x a=1i 1\n")
	for name, r := range map[string]wire.Record{
		"unknown kind": {Header: wire.Header{Node: "a", Seq: 1},
			Body: wire.Unknown{Name: "moon", Raw: []byte(`{"kind":"moon","node":"a","seq":1}`)}},
		"out of range": {Header: wire.Header{Node: "a", Seq: 1, TBootNs: math.MaxInt64}, Body: &wire.GPS{}},
		"before 1970":  {Header: wire.Header{Node: "a", Seq: 1, TBootNs: -2 * offset}, Body: &wire.GPS{}},
		"seq":          {Header: wire.Header{Node: "a", Seq: math.MaxUint64}, Body: &wire.GPS{}},
	} {
		got, err := appendRecord(t, e, before, r, offset)
		if err == nil || !bytes.Equal(got, before) {
			t.Errorf("%s: error %v, lines %q", name, err, got)
		}
		if name == "unknown kind" && !errors.Is(err, ErrNoMeasurement) {
			t.Errorf("unknown kind: %v", err)
		}
	}
	// A value that a field cannot hold is absent, and its record stays.
	big := wire.Record{Header: wire.Header{Node: "a", Seq: 1}, Body: &wire.Interface{Name: "w", RxBytes: math.MaxUint64,
		TxBytes: 5}}
	lines, err := appendRecord(t, e, nil, big, offset)
	if err != nil {
		t.Fatal(err)
	}
	p := decode(t, lines)[0]
	if _, there := p.fields["rx_bytes"]; there || p.fields["tx_bytes"].IntV() != 5 {
		t.Errorf("fields %v", p.fields)
	}
}

// Lines that are not records, or whose values have another type than the
// schema.
func TestBadLines(t *testing.T) {
	e := NewEncoder()
	for _, text := range []string{
		``, `[]`, `{`, `{}`, `{"kind":5`, `{"kind":"gps"`, `{"kind":"gps",}`, `{"kind":"gps"}x`,
		`{"kind":"gps" "node":"a"}`, `{"kind":"gps","node":}`,
		`{"kind":"gps","mode":tru}`, `{"kind":"gps","seq":-1}`, `{"kind":"gps","seq":1.5}`,
		`{"kind":"gps","t_boot_ns":"1"}`, `{"kind":"gps","node":{}}`,
		`{"node":"a"}`, "{\"kind\":\"gps\",\"node\":\"a\nb\"}", `{"kind":"gps","node":"\x"}`,
		`{"kind":"gps","x":[{"a":"]}`, `{"kind":"gps","trial":4294967296}`,
		`{"kind":"gps","node":"a","mode":"3"}`, `{"kind":"gps","node":"a","mode":3.5}`,
		`{"kind":"gps","node":"a","connected":1}`,
		`{"kind":"gps","node":"a","speed_mps":1e999}`, `{"kind":"gps","node":"a","speed_mps":0x1p4}`,
		`{"kind":"gps","node":"a","time_utc":[1]}`,
		`{"kind":"event","node":"a","level":{"a":1}}`,
	} {
		p, err := e.Parse([]byte(text))
		if err != nil {
			continue
		}
		if lines, err := e.Append(nil, p, offset); err == nil {
			t.Errorf("%s became %s", text, lines)
		}
	}
	// Order, white space, unknown members and null make no difference.
	p, err := e.Parse([]byte(`{ "mode":2 , "later":{"a":["}"]},"speed_mps":null,"connected":false,"node":"\u0061","t_boot_ns":5,"seq":7,"kind":"gps" }`))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := e.Append(nil, p, offset)
	if want := "fm_gps,node=a seq=7i,t_boot_ns=5i,mode=2i,connected=false 1790000000000000007\n"; err != nil ||
		string(lines) != want {
		t.Errorf("got %s, %v, want %s", lines, err, want)
	}
}

// FuzzEncoder: a line becomes one point or an error; and where the line is a
// record, the point says what the record says.
func FuzzEncoder(f *testing.F) {
	for _, r := range goldens(f) {
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line, offset)
	}
	schema := map[string]Measurement{}
	for _, m := range Schema() {
		schema[m.Kind] = m
	}
	fuzz.Run(f, func(t *testing.T, line []byte, offset int64) {
		e := NewEncoder()
		p, err := e.Parse(line)
		if err != nil {
			return
		}
		lines, err := e.Append(nil, p, offset)
		if err != nil {
			return
		}
		points := decode(t, lines)
		if bytes.Count(lines, []byte("\n")) != 1 || len(points) != 1 {
			t.Fatalf("record %q became %q", line, lines)
		}
		// Written by our own encoder a record has each name once, in its own case.
		var r wire.Record
		if json.Unmarshal(line, &r) != nil {
			return
		}
		if text, err := json.Marshal(r); err != nil || !bytes.Equal(text, line) {
			return
		}
		compare(t, schema[r.Body.Kind()], r, points[0])
	})
}

// compare checks a point's fields against the record's Go value.
func compare(t *testing.T, m Measurement, r wire.Record, p point) {
	t.Helper()
	body := reflect.ValueOf(r.Body).Elem()
	byName := map[string]reflect.Value{}
	for i := range body.NumField() {
		name, _, _ := strings.Cut(body.Type().Field(i).Tag.Get("json"), ",")
		v := body.Field(i)
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				continue
			}
			v = v.Elem()
		}
		if r, is := v.Interface().(wire.Reason); is {
			v = reflect.ValueOf(r.String())
		}
		byName[name] = v
	}
	for _, f := range m.Fields {
		v, there := byName[f.source()]
		got, ok := p.fields[f.Name]
		if !there || f.Type == Text && v.String() == "" {
			if ok {
				t.Errorf("%s.%s is %v, but absent in the record", m.Name, f.Name, got)
			}
			continue
		}
		var want any
		switch {
		case f.Type == Text:
			want = printable(v.String(), textLimit)
		case v.CanUint() && v.Uint() > math.MaxInt64:
			continue
		case v.CanUint():
			want = int64(v.Uint())
		case v.CanInt():
			want = v.Int()
		default:
			want = v.Interface()
		}
		if !ok || got.Interface() != want {
			t.Errorf("%s.%s is %v, want %v", m.Name, f.Name, got, want)
		}
	}
}

func BenchmarkEncoder(b *testing.B) {
	var lines [][]byte
	for _, r := range goldens(b) {
		text, err := json.Marshal(r)
		if err != nil {
			b.Fatal(err)
		}
		lines = append(lines, text)
	}
	e := NewEncoder()
	var buf []byte
	for b.Loop() {
		buf = buf[:0]
		for _, text := range lines {
			p, err := e.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			if buf, err = e.Append(buf, p, offset); err != nil {
				b.Fatal(err)
			}
		}
	}
}
