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
	"strings"
	"testing"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var update = flag.Bool("update", false, "write protocols/wire/INFLUX.md")

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
	files, err := filepath.Glob("../wire/golden/record_*.json")
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

const offset = int64(1_790_000_000_000_000_000)

func TestEveryKindBecomesItsPoint(t *testing.T) {
	e := NewEncoder()
	byKind := map[string]Measurement{}
	for _, m := range Schema() {
		byKind[m.Kind] = m
	}
	for _, r := range goldens(t) {
		lines, err := e.Append(nil, r, offset)
		if err != nil {
			t.Errorf("%s: %v", r.Body.Kind(), err)
			continue
		}
		points := decode(t, lines)
		if len(points) != 1 {
			t.Fatalf("%s: %d points of %q", r.Body.Kind(), len(points), lines)
		}
		checkAgainst(t, byKind[r.Body.Kind()], r, points[0])
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
		want := map[Type]lineprotocol.ValueKind{Integer: lineprotocol.Int, Float: lineprotocol.Float, Boolean: lineprotocol.Bool, Text: lineprotocol.String}[f.Type]
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
	renamed := map[string]string{"provenance.interface": "tested_interface"}
	for _, r := range goldens(t) {
		kind := r.Body.Kind()
		known := map[string]bool{}
		for _, tag := range byKind[kind].Tags {
			known[tag.Name] = true
		}
		for _, f := range byKind[kind].Fields {
			known[f.Name] = true
		}
		for _, l := range byKind[kind].LeftOut {
			known[l.Name] = true
		}
		typ := reflect.TypeOf(r.Body).Elem()
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if to, ok := renamed[kind+"."+name]; ok {
				name = to
			}
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
	for _, m := range Schema() {
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

func TestDocumentIsUpToDate(t *testing.T) {
	const path = "../wire/INFLUX.md"
	if *update {
		if err := os.WriteFile(path, []byte(Document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Document() {
		t.Errorf("%s does not agree with the schema: go test ./protocols/influx -run Document -update", path)
	}
}

func TestUnknownIsAbsent(t *testing.T) {
	r := wire.Record{Header: wire.Header{Node: "car", Seq: 7, TBootNs: 5_000_000_000}, Body: &wire.GPS{}}
	lines, err := NewEncoder().Append(nil, r, offset)
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
	for _, text := range []string{`a "quoted" \ word`, "two\nlines", "tab\tand\x00nul", "Grüße, =x y", `ends in \`, strings.Repeat("ü", 6000), "\xff\xfe"} {
		r := wire.Record{Header: wire.Header{Node: "car, one=1", Run: "r", Seq: 1, TBootNs: 1}, Body: &wire.Event{Level: text, Text: text}}
		lines, err := e.Append(nil, r, offset)
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
		"no body":      {Header: wire.Header{Node: "a", Seq: 1}},
		"unknown kind": {Header: wire.Header{Node: "a", Seq: 1}, Body: wire.Unknown{Name: "moon"}},
		"out of range": {Header: wire.Header{Node: "a", Seq: 1, TBootNs: math.MaxInt64}, Body: &wire.GPS{}},
		"before 1970":  {Header: wire.Header{Node: "a", Seq: 1, TBootNs: -2 * offset}, Body: &wire.GPS{}},
		"seq":          {Header: wire.Header{Node: "a", Seq: math.MaxUint64}, Body: &wire.GPS{}},
	} {
		got, err := e.Append(before, r, offset)
		if err == nil || !bytes.Equal(got, before) {
			t.Errorf("%s: error %v, lines %q", name, err, got)
		}
		if name == "unknown kind" && !errors.Is(err, ErrNoMeasurement) {
			t.Errorf("unknown kind: %v", err)
		}
	}
	// A value that a field cannot hold is absent, and its record stays.
	big := wire.Record{Header: wire.Header{Node: "a", Seq: 1}, Body: &wire.Interface{Name: "w", RxBytes: math.MaxUint64, TxBytes: 5}}
	lines, err := e.Append(nil, big, offset)
	if err != nil {
		t.Fatal(err)
	}
	p := decode(t, lines)[0]
	if _, there := p.fields["rx_bytes"]; there || p.fields["tx_bytes"].IntV() != 5 {
		t.Errorf("fields %v", p.fields)
	}
}

func FuzzAppend(f *testing.F) {
	for _, r := range goldens(f) {
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line, offset)
	}
	f.Fuzz(func(t *testing.T, line []byte, offset int64) {
		var r wire.Record
		if json.Unmarshal(line, &r) != nil {
			return
		}
		lines, err := NewEncoder().Append(nil, r, offset)
		if err != nil {
			return
		}
		if bytes.Count(lines, []byte("\n")) != 1 || len(decode(t, lines)) != 1 {
			t.Errorf("record %q became %q", line, lines)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	records := goldens(b)
	e := NewEncoder()
	var buf []byte
	for b.Loop() {
		buf = buf[:0]
		for _, r := range records {
			buf, _ = e.Append(buf, r, offset)
		}
	}
}
