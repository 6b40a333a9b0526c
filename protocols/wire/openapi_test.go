package wire_test

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

func description(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDescriptionIsValid(t *testing.T) { description(t) }

// apiTypes are the Go types behind the description's schemas of the same name.
func apiTypes() []reflect.Type {
	types := []reflect.Type{
		reflect.TypeFor[wire.PlanNode](), reflect.TypeFor[wire.Shard](), reflect.TypeFor[wire.Trial](),
		reflect.TypeFor[wire.Course](),
		reflect.TypeFor[wire.Gate](), reflect.TypeFor[wire.Radio](),
		reflect.TypeFor[wire.Routing](), reflect.TypeFor[wire.TCP](), reflect.TypeFor[wire.Conditions](),
		reflect.TypeFor[wire.Flow](), reflect.TypeFor[wire.Acceptance](), reflect.TypeFor[wire.TrialView](),
		reflect.TypeFor[wire.Live](), reflect.TypeFor[wire.Place](), reflect.TypeFor[wire.Verdict](),
		reflect.TypeFor[wire.Word](), reflect.TypeFor[wire.Check](), reflect.TypeFor[wire.HostStatus](),
		reflect.TypeFor[wire.Ability](), reflect.TypeFor[wire.Caps](), reflect.TypeFor[wire.HeardCell](),
		reflect.TypeFor[wire.Beside](), reflect.TypeFor[wire.TCPInForce](), reflect.TypeFor[wire.Problem](),
		reflect.TypeFor[wire.Header](), reflect.TypeFor[wire.CapturePlan](), reflect.TypeFor[wire.RoutingNeighbor](),
		reflect.TypeFor[wire.App](), reflect.TypeFor[wire.Attachment](),
	}
	for _, body := range bodies() {
		if t := reflect.TypeOf(body).Elem(); t.Kind() == reflect.Struct {
			types = append(types, t)
		}
	}
	for _, body := range kinds() {
		types = append(types, reflect.TypeOf(body).Elem())
	}
	return types
}

func TestDescriptionHasTheFieldsOfTheTypes(t *testing.T) {
	doc := description(t)
	described := map[string]bool{}
	for _, goType := range apiTypes() {
		described[goType.Name()] = true
		ref := doc.Components.Schemas[goType.Name()]
		if ref == nil {
			t.Errorf("openapi.yaml has no schema %s", goType.Name())
			continue
		}
		fields := map[string]string{}
		var required []string
		collect(goType, fields, &required)
		got := map[string]string{}
		for name, property := range ref.Value.Properties {
			got[name] = schemaKind(property)
		}
		if !maps.Equal(fields, got) {
			t.Errorf("%s: openapi.yaml has %v, the Go type %v", goType.Name(), got, fields)
		}
		a, b := slices.Sorted(slices.Values(required)), slices.Sorted(slices.Values(ref.Value.Required))
		if !slices.Equal(a, b) {
			t.Errorf("%s: openapi.yaml requires %v, the Go type always writes %v", goType.Name(), b, a)
		}
	}
	for name := range doc.Components.Schemas {
		if !described[name] {
			t.Errorf("schema %s stands for no Go type", name)
		}
	}
}

func collect(t reflect.Type, fields map[string]string, required *[]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			collect(field.Type, fields, required)
			continue
		}
		fields[name] = goKind(field.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
}

// goKind names a Go type as JSON Schema does; a struct by its own name.
func goKind(t reflect.Type) string {
	if t == reflect.TypeFor[json.RawMessage]() {
		return ""
	}
	if t == reflect.TypeFor[wire.Reason]() {
		return "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return goKind(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Map:
		return "object of " + goKind(t.Elem())
	case reflect.Struct:
		return t.Name()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		return "array of " + goKind(t.Elem())
	}
	return "integer"
}

func schemaKind(ref *openapi3.SchemaRef) string {
	if ref.Ref != "" {
		return ref.Ref[strings.LastIndexByte(ref.Ref, '/')+1:]
	}
	switch s := ref.Value; {
	case s.Type.Is("array"):
		return "array of " + schemaKind(s.Items)
	case s.Type.Is("object"):
		return "object of " + schemaKind(s.AdditionalProperties.Schema)
	case s.Type != nil && len(*s.Type) == 1:
		return (*s.Type)[0]
	}
	return ""
}

func TestGoldenFilesFitTheDescription(t *testing.T) {
	doc := description(t)
	samples := map[string]string{}
	for name, body := range bodies() {
		samples["body_"+name] = reflect.TypeOf(body).Elem().Name()
	}
	for _, body := range kinds() {
		samples["record_"+body.Kind()] = reflect.TypeOf(body).Elem().Name()
	}
	for file, schema := range samples {
		if schema == "" {
			continue // a list; its elements are described, and the API's tests send it
		}
		data, err := os.ReadFile(filepath.Join("golden", file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(data, &value); err != nil {
			t.Fatal(err)
		}
		if err := doc.Components.Schemas[schema].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s against %s: %v", file, schema, err)
		}
	}
}
