package wire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A record is read the same whether its kind comes first, as it is written, or
// somewhere else, as another program may write it; and the last of two counts.
func TestARecordIsReadWhereverItsKindStands(t *testing.T) {
	for i, body := range kinds() {
		want := wire.Record{Header: wire.Header{Kind: body.Kind(), Version: wire.SchemaVersion, Node: "car",
			Epoch: sampleEpoch, Seq: uint64(i + 1), TBootNs: 7, Run: "velocity-1", Trial: 2, Attempt: 1}, Body: body}
		line, err := want.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		kind := `"kind":"` + body.Kind() + `",`
		rest, first := strings.CutPrefix(string(line), "{"+kind)
		if !first {
			t.Fatalf("the kind is not the first: %s", line)
		}
		for _, text := range []string{string(line), "{ " + kind + rest, `{"later":0,` + kind + rest,
			`{"kind":"note",` + kind + rest, `{"kind":"no such",` + kind + rest} {
			var got wire.Record
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s is read as %+v, want %+v", text, got, want)
			}
		}
	}
}

// The error of a line that cannot be read says which record it is, or that its
// header is at fault.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"gps","node":"car","seq":7,"mode":"three"}`: "decode gps record car/7",
		`{"kind":"gps","node":7}`:                            "decode record header",
		`{"kind":"gps","node":"car"`:                         "decode record header",
		`{"node":"car"}`:                                     "no kind",
	} {
		var r wire.Record
		if err := r.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
