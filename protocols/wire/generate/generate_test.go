package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const wire = ".."

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	files, err := generated(wire)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(wire, path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s does not agree with the record kinds: go generate ./protocols/wire", path)
		}
	}
}

func TestEveryKindHasASample(t *testing.T) {
	all, err := read(wire)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.records {
		if s.kind == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(wire, "golden", "record_"+s.kind+".json")); err != nil {
			t.Errorf("record kind %q has no sample in sample_test.go: %v", s.kind, err)
		}
	}
}

// source writes a package of one file and an empty description.
func source(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"a.go": "package wire\n" + text, "openapi.yaml": "info:\n" + openAPIMark}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOneDeclarationMakesEverything(t *testing.T) {
	files, err := generated("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for path, parts := range map[string][]string{
		"kinds.go": {"\tcase \"tide\":\n\t\treturn &Tide{}\n"},
		"../../internal/influx/records.go": {
			`Name: "fm_tide", Kind: "tide",`, `Meaning: "How high the water stands.",`,
			"{\"port\", \"where; else `sea`\", \"sea\"},",
			`{"level_m", Float, "m", "", ""},
				{"count", Integer, "", "", ""},
				{"why", Text, "", "it goes: up or down; seen (` + "`cause`" +
				` in the record: that name is a tag elsewhere)", "cause"},
			},`, `{"moon", "several values; whole in the archive and the report"},`,
			`{"ships", "too many"},`,
		},
		"openapi.yaml": {
			"info:\n" + openAPIMark +
				"    Tide:\n      description: 'Tide is how high the water stands. It is predicted.'\n",
			"required: [port, cause, count, ships]", "level_m: {type: number}",
			"cause: {type: string, enum: [up, down], description: 'it goes: up or down; seen'}",
			"count: {type: integer, minimum: 0, maximum: 9}", "moon: {$ref: '#/components/schemas/Moon'}",
			"ships: {type: object, additionalProperties: {type: integer, minimum: 0}}",
			"    Moon:\n", "phase: {type: string, description: 'new | …'}",
		},
	} {
		for _, part := range parts {
			if !strings.Contains(string(files[path]), part) {
				t.Errorf("%s has no\n%s\nin\n%s", path, part, files[path])
			}
		}
	}
}

func TestBadDeclarations(t *testing.T) {
	const kind = "\nfunc (*T) Kind() string { return \"t\" }"
	whole := func(fields string) string { return "// T is it.\ntype T struct { " + fields + " }" + kind }
	for text, want := range map[string]string{
		"type": "expected",
		kind:   `record kind "t": no struct "T"`,
		"type T struct { A int `json:\"a\"` }" + kind:                               `its comment does not begin with "T is"`,
		whole("A int `json:\",omitempty\"`"):                                        "T.A: no name in JSON",
		whole("A [][]int `json:\"a\"`"):                                             `record kind "t": a: no struct ""`,
		whole("A int `json:\"a\" influx:\"tags\"`"):                                 `a: influx:"tags": no option "tags"`,
		whole("A []int `json:\"a\" influx:\"tag\"`"):                                "only in the archive",
		whole("A int `json:\"a\" influx:\"tag\" archive:\"x\"`"):                    "only in the archive",
		whole("C int `json:\"c\" influx:\"after=z\"`"):                              `c: no field "z" to come after`,
		strings.ReplaceAll(whole("A json.RawMessage `json:\"a\"`"), `"t"`, `"gps"`): `record kind "gps": a: the app has no type for it`,
	} {
		if _, err := generated(source(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v, want %s", text, err, want)
		}
	}
}
