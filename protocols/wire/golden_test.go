package wire_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The golden files are the contract in the shape in which other languages'
// tests read it. A change of one is a change of the contract.
var update = flag.Bool("update", false, "write the golden files again")

func TestGoldenBodies(t *testing.T) {
	for name, sample := range bodies() {
		t.Run(name, func(t *testing.T) {
			checkFilled(t, name, reflect.ValueOf(sample))
			text := golden(t, "body_"+name, sample)
			back := reflect.New(reflect.TypeOf(sample).Elem())
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(back.Interface()); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back.Interface(), sample) {
				t.Errorf("read back:\n%+v\nwant:\n%+v", back.Elem().Interface(),
					reflect.ValueOf(sample).Elem().Interface())
			}
		})
	}
}

func TestGoldenRecords(t *testing.T) {
	for i, body := range kinds() {
		t.Run(body.Kind(), func(t *testing.T) {
			checkFilled(t, body.Kind(), reflect.ValueOf(body))
			record := wire.Record{Header: wire.Header{
				Kind: body.Kind(), Version: wire.SchemaVersion, Node: "car", Epoch: sampleEpoch, Seq: uint64(i + 1),
				TBootNs: 7261834512345, Run: "velocity-1", Trial: 2, Attempt: 1,
			}, Body: body}
			text := golden(t, "record_"+body.Kind(), record)
			var line bytes.Buffer
			if err := json.Compact(&line, text); err != nil {
				t.Fatal(err)
			}
			var back wire.Record
			if err := json.Unmarshal(line.Bytes(), &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, record) {
				t.Errorf("read back:\n%+v\nwant:\n%+v", back, record)
			}
		})
	}
}

// A file that no sample stands behind would be tested by nobody.
func TestGoldenFilesAreAllKnown(t *testing.T) {
	known := map[string]bool{}
	for name := range bodies() {
		known["body_"+name+".json"] = true
	}
	for _, body := range kinds() {
		known["record_"+body.Kind()+".json"] = true
	}
	files, err := os.ReadDir("golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("golden/%s belongs to no sample", f.Name())
		}
	}
	if len(files) != len(known) {
		t.Errorf("%d golden files for %d samples", len(files), len(known))
	}
}

// golden compares a value's JSON with its file and returns the file's text.
func golden(t *testing.T, name string, value any) []byte {
	t.Helper()
	data, err := wire.Encode(value)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	text.WriteByte('\n')
	path := filepath.Join("golden", name+".json")
	if *update {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (a new sample? go generate ./protocols/wire)", err)
	}
	if !bytes.Equal(text.Bytes(), want) {
		t.Errorf("%s: the encoding changed:\n%s\nwant:\n%s", path, text.Bytes(), want)
	}
	return want
}

// checkFilled makes sure that a golden file shows every field that there is.
// What may be left out must be there; a false or a 0 that is always written may stay.
func checkFilled(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct {
			checkFilled(t, path+"[0]", v.Index(0))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name := path + "." + field.Name
			if strings.Contains(field.Tag.Get("json"), ",omit") && v.Field(i).IsZero() && !otherKinds(name) {
				t.Errorf("sample %s is not set, so the golden file does not show it", name)
			}
			checkFilled(t, name, v.Field(i))
		}
	}
}

// otherKinds are fields that only another kind of flow, or mode of the radio,
// has than the first trial.
func otherKinds(name string) bool {
	return strings.HasSuffix(name, ".Traffic[0].Background") || strings.HasSuffix(name, ".Traffic[0].BitrateBps") ||
		strings.HasSuffix(name, ".Traffic[0].IntervalMs") || strings.HasSuffix(name, ".Radio.AccessPoint")
}
