package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/strict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// FuzzDecode: what is accepted is read as encoding/json reads it, and survives
// being written and read again.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"run_plan", "lease", "verdicts", "trial_key"} {
		f.Add([]byte(golden(f, name)))
	}
	f.Add([]byte(`{"run":"a","nodes":[{"name":"b"},{}],"key":"AAAA","trials":[{"gate":{"place_m":1}}]}`))
	f.Add([]byte(`{"nodes":[[[[[[[[`))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		for _, target := range []any{&wire.RunPlan{}, &wire.Lease{}, &[]wire.Verdict{}, &wire.TrialKey{}} {
			if strict.Decode(data, target) != nil {
				continue
			}
			text, err := wire.Encode(target)
			if err != nil {
				t.Fatal(err)
			}
			plain := reflect.New(reflect.TypeOf(target).Elem()).Interface()
			if err := json.Unmarshal(data, plain); err != nil || !reflect.DeepEqual(plain, target) {
				t.Errorf("%s is read as %+v, by encoding/json as %+v, %v", data, target, plain, err)
			}
			again := reflect.New(reflect.TypeOf(target).Elem()).Interface()
			if err := strict.Decode(text, again); err != nil {
				t.Errorf("%s is written as %s, and that is refused: %v", data, text, err)
			}
		}
	})
}

//attack:network JSON in JSON without an end, to use up the stack or the time of who reads it | no value lies deeper
//attack:and than the body's own
func TestNestingWithoutAnEndIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"arrays":                  strings.Repeat("[", 500_000),
		"objects":                 strings.Repeat(`{"a":`, 200_000),
		"in a name that is known": `{"nodes":` + strings.Repeat("[", 500_000),
		"arrays that end":         `{"trials":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}",
	} {
		if err := strict.Decode([]byte(text), &wire.RunPlan{}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
