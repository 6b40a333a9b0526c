package config

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/test/schemas"
)

var update = flag.Bool("update", false, "write the JSON Schema again")

const schemaFile = "agent.schema.json"

// schema is the JSON Schema of agent.yaml as Config declares it.
func schema(t *testing.T) schemas.Keywords {
	t.Helper()
	forms := map[string]schemas.Keywords{"prefix": {"type": "string", "pattern": `/[0-9]+$`}}
	for name, k := range kinds() {
		forms[name] = schemas.Keywords{"type": "string", "pattern": k.form.String()}
	}
	source, err := schemas.Read("config.go", forms)
	if err != nil {
		t.Fatal(err)
	}
	out, err := source.Of(reflect.ValueOf(defaults()))
	if err != nil {
		t.Fatal(err)
	}
	properties := out["properties"].(schemas.Keywords)
	binaries := properties["binaries"].(schemas.Keywords)
	binaries["propertyNames"], binaries["default"] = schemas.Keywords{"enum": Tools()}, DefaultBinaries()
	return out
}

func TestSchemaIsCurrent(t *testing.T) {
	if err := schemas.Current(schemaFile, "Fieldmesh agent.yaml", schema(t), *update); err != nil {
		t.Error(err)
	}
}

func TestSchemaTakesWhatTheAgentTakes(t *testing.T) {
	validate, err := schemas.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	texts := [][]byte{[]byte(whole), []byte("node: car\ninterface: mesh0\nphy_of: wlan0\ngpsd: none\n")}
	for _, path := range []string{"first.yaml", filepath.Join("..", "..", "packaging", "termux", "agent.yaml")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, bytes.ReplaceAll(text, []byte("@UID@"), []byte("10123")))
	}
	for _, text := range texts {
		if _, err := Parse("agent.yaml", text); err != nil {
			t.Error(err)
		}
		if err := validate(text); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

// Which keys go together, and which values have a meaning, is the reader's to say.
func TestSchemaRefusesWhatTheAgentRefuses(t *testing.T) {
	validate, err := schemas.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	faults := faults()
	for _, name := range []string{"empty", "unknown key", "unknown nested key", "type", "port", "node",
		"interface traversal", "phy traversal", "prefix", "relative", "tool", "dead man"} {
		if text, there := faults[name]; !there || validate([]byte(text.file)) == nil {
			t.Errorf("%s: the schema takes it, or it is no fault; there are %v", name, slices.Sorted(maps.Keys(faults)))
		}
	}
}
