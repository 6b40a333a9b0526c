package fleet

import (
	"flag"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/test/schemas"
)

var update = flag.Bool("update", false, "write the JSON Schema again")

const schemaFile = "fleet.schema.json"

func TestSchemaIsCurrent(t *testing.T) {
	source, err := schemas.Read("fleet.go", map[string]schemas.Keywords{
		"version": {"const": fileVersion},
		"pin":     {"pattern": keys.PinForm},
		"address": {"pattern": `.:[0-9]{1,5}$`},
		"netns":   {"pattern": netnsForm.String()},
	})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := source.Of(reflect.ValueOf(file{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"nodes", "apps"} {
		section := schema["properties"].(schemas.Keywords)[key].(schemas.Keywords)
		section["propertyNames"] = schemas.Keywords{"pattern": keys.NameForm}
	}
	if err := schemas.Current(schemaFile, "Fieldmesh fleet.yaml", schema, *update); err != nil {
		t.Error(err)
	}
}

func TestSchemaJudgesAsTheReader(t *testing.T) {
	validate, err := schemas.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	pin := strings.Repeat("a", 64)
	phone := "apps: {phone: {pin: " + strings.Repeat("b", 64) + "}}\n"
	const head = "version: 1\nkeys: .\nnodes:\n"
	for text, fine := range map[string]bool{
		"version: 1\nkeys: .\nnodes: {}\n":                                                      true,
		head + "  car: {address: '10.0.0.1:1', pin: " + pin + ", labels: {colour: red}}\n":      true,
		head + "  car: {address: 'a.example:7443', pin: " + pin + ", unit: laptop-1}\n" + phone: true,
		"keys: .\nnodes: {}\n":             false,
		"version: 2\nkeys: .\nnodes: {}\n": false,
		"version: 1\nnodes: {}\n":          false,
		head + "  car: {address: '10.0.0.1:1', pin: " + pin + ", port: 3}\n":        false,
		head + "  Car: {address: '10.0.0.1:1', pin: " + pin + "}\n":                 false,
		head + "  car: {address: '10.0.0.1:1', pin: abc}\n":                         false,
		head + "  car: {pin: " + pin + "}\n":                                        false,
		head + "  car: {address: ':7443', pin: " + pin + "}\n":                      false,
		head + "  car: {address: '10.0.0.1:1', pin: " + pin + ", netns: ../../x}\n": false,
		head + "  car: {address: '10.0.0.1:1', pin: " + pin + "}\nhosts: {}\n":      false,
	} {
		if _, _, err := parse([]byte(text)); (err == nil) != fine {
			t.Errorf("the reader says %v of\n%s", err, text)
		}
		if err := validate([]byte(text)); (err == nil) != fine {
			t.Errorf("the schema says %v of\n%s", err, text)
		}
	}
}
