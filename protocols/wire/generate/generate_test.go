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
		"bounds.go": {
			"func (x *Trial) bounds(c *checker) {\n\tc.integer(\"number\", x.Number, 1, most)\n",
			"if x.Word != \"\" {\n\t\tc.oneOf(\"word\", x.Word, \"a\", \"b\")\n" +
				"\t\tc.match(\"word\", x.Word, wordForm)\n\t}\n\tc.text(\"word\", x.Word, 0, 8)",
			"if x.Depth != nil {\n\t\tc.numberAbove(\"depth_m\", *x.Depth, 0, 2*most)",
			"for i := range x.Parts {\n\t\tc.element(\"parts\", i)\n\t\tx.Parts[i].bounds(c)\n\t\tc.leave()\n\t}",
			`c.oneOf("of", x.Of, listed()...)`, `c.bytes("key", x.Key, 32)`, `c.oneOf("named", string(x.Named), "x", "y")`,
		},
		"../../controller/plan/keys.go": {
			`required("depth_m", number{0, 50, true, false, "m"}, "How deep"),`,
			`optional("word", choice{"a", "b"}, "It is: a or b").or(first),`, `optional("parts", s.parts(), "Some parts"),`,
			"func (s schema) partKeys() []field {",
		},
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
			openAPIMark + "    Trial:",
			"    Tide:\n      description: 'Tide is how high the water stands. It is predicted.'\n",
			"required: [port, cause, count, ships]", "level_m: {type: number}",
			"cause: {type: string, enum: [up, down], description: 'it goes: up or down; seen'}",
			"count: {type: integer, minimum: 0, maximum: 9}", "moon: {$ref: '#/components/schemas/Moon'}",
			"ships: {type: object, additionalProperties: {type: integer, minimum: 0}}",
			"    Moon:\n", "phase: {type: string, description: 'new | …'}",
			"    Trial:\n      description: ''\n      type: object\n      additionalProperties: false\n" +
				"      required: [number, parts, key, named]\n",
			"word: {type: string, enum: ['', a, b], pattern: '^([a-z])?$', maxLength: 8, description: 'it is: a or b'}",
			"depth_m: {type: number, exclusiveMinimum: 0, maximum: 10, description: 'how deep'}",
			"key: {type: string, contentEncoding: base64, minLength: 44, maxLength: 44, " +
				"pattern: '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$'}",
			"parts: {type: array, items: {$ref: '#/components/schemas/Part'}, minItems: 1, maxItems: 5, " +
				"description: 'some parts'}",
			"named: {type: string, enum: [x, y], description: 'x or y'}",
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
	untyped := strings.ReplaceAll(whole("A json.RawMessage `json:\"a\"`"), `"t"`, `"gps"`)
	for text, want := range map[string]string{
		"type": "expected",
		kind:   `record kind "t": no struct "T"`,
		"type T struct { A int `json:\"a\"` }" + kind:                  `its comment does not begin with "T is"`,
		whole("A int `json:\",omitempty\"`"):                           "T.A: no name in JSON",
		whole("A [][]int `json:\"a\"`"):                                `record kind "t": a: no struct ""`,
		whole("A int `json:\"a\" influx:\"tags\"`"):                    `a: influx:"tags": no option "tags"`,
		whole("A []int `json:\"a\" influx:\"tag\"`"):                   "only in the archive",
		whole("A int `json:\"a\" influx:\"tag\" archive:\"x\"`"):       "only in the archive",
		strings.ReplaceAll(whole("A int `json:\"a\"`"), "*T", "T"):     "method Kind of T declares no record kind",
		strings.ReplaceAll(whole("A int `json:\"a\"`"), `"t"`, "kind"): "method Kind of *T declares no record kind",
		whole("A int `json:\"a\" max:\"most\"`"):                       `T.a: max: "most" is neither a number nor a constant`,
		whole("A string `json:\"a\" form:\"f\"`"):                      `T.a: form:"f": the package has no such form`,
		whole("A string `json:\"a\" words:\"f\"`"):                     `T.a: words:"f": no function that returns nothing but a list`,
		"type Trial struct { A int `json:\"a\"`\n}":                    "Trial.a: it has not both bounds",
		"type Trial struct { A string `json:\"a\"`\n}":                 "Trial.a: no rule follows from its type",
		"type Trial struct { A bool `json:\"a\"`\n}":                   "Trial.a: no comment says what it means",
		"type Trial struct { A bool `json:\"a\" campaign:\"or=1\"`\n}": `Trial.a: campaign:"or=1": no option "or"`,
		whole("C int `json:\"c\" influx:\"after=z\"`"):                 `c: no field "z" to come after`,
		untyped: `record kind "gps": a: the app has no type for it`,
	} {
		if _, err := generated(source(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v, want %s", text, err, want)
		}
	}
}
