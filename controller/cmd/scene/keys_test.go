package scene

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
)

// paths are the keys of a type's JSON, each with those that it lies in.
func paths(t reflect.Type, below string, into map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		paths(t.Elem(), below, into)
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			into[below+name] = true
			paths(t.Field(i).Type, below+name+".", into)
		}
	}
}

// Of a campaign's section field, the emulated field knows every key under the same name, and it has no other.
func TestTheFieldHasTheKeysOfTheSection(t *testing.T) {
	section, settings := map[string]bool{}, map[string]bool{}
	paths(reflect.TypeFor[environment.Field](), "", section)
	paths(reflect.TypeFor[field.Settings](), "", settings)
	maps.DeleteFunc(section, func(path string, _ bool) bool {
		return path == "agents" || strings.HasPrefix(path, "calibrated_by")
	})
	got, want := slices.Sorted(maps.Keys(settings)), slices.Sorted(maps.Keys(section))
	if len(want) < 60 || !slices.Equal(got, want) {
		t.Errorf("the field has the keys\n%s\nthe section has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What a section says arrives.
func TestTheFieldIsWhatTheSectionSays(t *testing.T) {
	f, err := assumed(&environment.Field{Agents: "participants", CalibratedBy: &environment.Calibration{Run: "r"},
		UnitPowerOffsetDb: map[string]float64{"u": 1}, UnitGainOffsetDb: map[string]float64{"u": -2},
		UnitNoiseOffsetDb: map[string]float64{"u": 3},
		Shadowing:         &environment.Shadowing{SigmaDb: 4, DecorrelationM: 5, NodeCorrelation: 0.5},
		Fading:            &environment.Fading{Model: "rayleigh", ScattererMps: 6}})
	if err != nil {
		t.Fatal(err)
	}
	if f.UnitPowerOffsetDb["u"] != 1 || f.UnitGainOffsetDb["u"] != -2 || f.UnitNoiseOffsetDb["u"] != 3 ||
		*f.Shadowing != (field.ShadowingConfig{SigmaDb: 4, DecorrelationM: 5, NodeCorrelation: 0.5}) ||
		*f.Fading != (field.FadingConfig{Model: "rayleigh", ScattererMps: 6}) {
		t.Errorf("the field is %+v", f)
	}
	if none, err := assumed(nil); err != nil || none.Radio != "" {
		t.Errorf("of no section: %+v, %v", none, err)
	}
}
