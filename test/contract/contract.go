// Package contract holds what crosses a link to its golden files, which other languages' tests read. A change of one is
// a change of the contract.
package contract

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Held compares a body's JSON with golden/NAME.json below the test, which update writes again, and reads it back.
func Held(t *testing.T, name string, sample any, update bool) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(Text(t, name, sample, update)))
	d.DisallowUnknownFields()
	back := reflect.New(reflect.TypeOf(sample).Elem()).Interface()
	if err := d.Decode(back); err != nil || !reflect.DeepEqual(back, sample) {
		t.Errorf("%s is read as\n%+v, %v, want\n%+v", name, back, err, sample)
	}
}

// Text compares a value's JSON with its golden file, and returns the file's text.
func Text(t *testing.T, name string, value any, update bool) []byte {
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
	if update {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (a new sample? -update writes it)", err)
	}
	if !bytes.Equal(text.Bytes(), want) {
		t.Errorf("%s: the encoding is now\n%s\nwant:\n%s", path, text.Bytes(), want)
	}
	return want
}
