package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// sample is a change of a kind with its undo, as agents in the field have it in
// their journals. What it says is never changed.
type sample struct {
	Scope        string
	Change, Undo json.RawMessage
	Undone       string // what a restore in a later boot says of it
}

// samples have every kind of change and every part of an undo, in an order in
// which changes are made. A new kind's goes to the end.
func samples(t testing.TB) (out []sample) {
	t.Helper()
	data, err := os.ReadFile("change/testdata/samples.json")
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// inNetns stands for the boot and the namespace of a sample's undo.
const inNetns = `"world":{"boot":"4f2a9f0e-0b7e-4a7c-9d55-0c1de0b6a001","netns":4026531840,"cookie":1}`

// body is the sample's undo, with the namespace that it is of.
func (s sample) body() string {
	if rest := bytes.TrimSpace(s.Undo[1 : len(s.Undo)-1]); len(rest) > 0 {
		return "{" + inNetns + "," + string(rest) + "}"
	}
	return "{" + inNetns + "}"
}

// sampleJournal is a journal of all samples.
func sampleJournal(t testing.TB) []byte {
	t.Helper()
	var out []byte
	for i, s := range samples(t) {
		var line bytes.Buffer
		text := fmt.Sprintf(`{"id":%d,"state":"prepared","scope":%q,"change":%s,"undo":%s}`, i+1, s.Scope, s.Change,
			s.body())
		if err := json.Compact(&line, []byte(text)); err != nil {
			t.Fatalf("sample %d, of %q: %v", i+1, s.Undone, err)
		}
		out = append(out, seal(line.Bytes())...)
	}
	return out
}
