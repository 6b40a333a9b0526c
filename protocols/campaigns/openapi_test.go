package campaigns_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestDescriptionHasWhatTheGoTypesHave(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]reflect.Type{}
	collect(reflect.TypeFor[wire.Error](), types)
	for name, body := range bodies() {
		collect(reflect.TypeOf(body).Elem(), types)
		text, err := os.ReadFile(filepath.Join("golden", "body_"+name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		schema := doc.Components.Schemas[reflect.TypeOf(body).Elem().Name()]
		if schema == nil {
			continue // told below
		}
		if err := schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("body_%s.json: %v", name, err)
		}
	}
	got, want := slices.Sorted(maps.Keys(doc.Components.Schemas)), slices.Sorted(maps.Keys(types))
	if !slices.Equal(got, want) {
		t.Fatalf("openapi.yaml has the schemas %v, for the types %v", got, want)
	}
	for name, of := range types {
		var fields, required []string
		for i := range of.NumField() {
			field, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			fields = append(fields, field)
			if options == "" {
				required = append(required, field)
			}
		}
		slices.Sort(fields)
		schema := doc.Components.Schemas[name].Value
		if got := slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(got, fields) {
			t.Errorf("%s: openapi.yaml has %v, the Go type %v", name, got, fields)
		}
		if !slices.Equal(schema.Required, required) {
			t.Errorf("%s: openapi.yaml requires %v, the Go type always writes %v", name, schema.Required, required)
		}
	}
}

// collect finds a struct and those in it, by name.
func collect(t reflect.Type, into map[string]reflect.Type) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	into[t.Name()] = t
	for i := range t.NumField() {
		collect(t.Field(i).Type, into)
	}
}
