package wire_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/contract"
)

var update = flag.Bool("update", false, "write the golden files again")

func TestGoldenBodies(t *testing.T) {
	for name, sample := range bodies() {
		t.Run(name, func(t *testing.T) {
			checkFilled(t, name, reflect.ValueOf(sample))
			contract.Held(t, "body_"+name, sample, *update)
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
			text := contract.Text(t, "record_"+body.Kind(), record, *update)
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
