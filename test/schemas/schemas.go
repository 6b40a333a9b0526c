// Package schemas writes JSON Schemas of the files that people write, and holds
// files to them as an editor does. It is for tests only: the declarations that
// the schemas come from lie with the readers of the files.
package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Keywords are keywords of a JSON Schema with their values.
type Keywords = map[string]any

// Current compares a committed schema with the one that the declarations make,
// after it has written it where that is asked for.
func Current(file, title string, schema Keywords, update bool) error {
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = title
	want, err := layOut(schema, "")
	if err != nil {
		return fmt.Errorf("write schema: %w", err)
	}
	want = append(want, '\n')
	if update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			return fmt.Errorf("write schema: %w", err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s is not what the declarations say; run go generate in this package", file)
	}
	return nil
}

// layOut makes JSON that a person can read: what is short stands on one line.
func layOut(v any, indent string) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil || len(indent)+len(text) <= 160 {
		return text, err
	}
	var members map[string]json.RawMessage
	var items []json.RawMessage
	var parts [][]byte
	add := func(key string, v json.RawMessage) {
		part, failure := layOut(v, indent+"  ")
		parts, err = append(parts, append([]byte(key), part...)), errors.Join(err, failure)
	}
	ends := "[]"
	switch {
	case json.Unmarshal(text, &members) == nil:
		ends = "{}"
		for _, key := range slices.Sorted(maps.Keys(members)) {
			add(strconv.Quote(key)+": ", members[key])
		}
	case json.Unmarshal(text, &items) == nil:
		for _, item := range items {
			add("", item)
		}
	default:
		return text, nil
	}
	glue := []byte(",\n  " + indent)
	return slices.Concat([]byte(ends[:1]), glue[1:], bytes.Join(parts, glue), []byte("\n"+indent+ends[1:])), err
}

// Compile reads a schema; what it returns holds a YAML file to it.
func Compile(file string) (validate func(raw []byte) error, err error) {
	schema, err := jsonschema.NewCompiler().Compile(file)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return func(raw []byte) error {
		var content any
		if err := yaml.Unmarshal(raw, &content); err != nil {
			return fmt.Errorf("read YAML: %w", err)
		}
		text, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("turn YAML into JSON: %w", err)
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		return schema.Validate(instance)
	}, nil
}

// Source is Go code whose structs declare a file. A field's comment says what
// its key means; its tags are yaml (the key), min and max, unit, kind (its form,
// one of Forms), zero (what 0 means), required, and missing (what is said where a key
// that is required is not there).
type Source struct {
	Comments map[string]string // "Config.Node" → comment
	Forms    map[string]Keywords
}

// Read reads the comments of a file of Go code.
func Read(path string, forms map[string]Keywords) (Source, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return Source{}, fmt.Errorf("read comments: %w", err)
	}
	out := Source{map[string]string{}, forms}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					words := strings.Fields(f.Doc.Text() + f.Comment.Text())
					out.Comments[spec.Name.Name+"."+name.Name] = strings.Join(words, " ")
				}
			}
		}
		return true
	})
	return out, nil
}

// Of is the schema of a struct; v has the defaults of its keys.
func (s Source) Of(v reflect.Value) (Keywords, error) {
	properties, required := Keywords{}, []string{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "-" {
			continue
		}
		p, err := s.value(f.Tag, v.Field(i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		comment := s.Comments[v.Type().Name()+"."+f.Name]
		if comment == "" || key == "" {
			return nil, fmt.Errorf("%s.%s: it has no comment or no key", v.Type().Name(), f.Name)
		}
		if zero := f.Tag.Get("zero"); zero != "" {
			comment += "; 0: " + zero
		}
		p["description"] = comment
		if unit := f.Tag.Get("unit"); unit != "" {
			p["unit"], p["description"] = unit, fmt.Sprintf("%s (%s)", comment, unit)
		}
		if !v.Field(i).IsZero() && f.Type.Kind() != reflect.Struct {
			p["default"] = v.Field(i).Interface()
		}
		if _, missed := f.Tag.Lookup("missing"); missed || f.Tag.Get("required") == "true" {
			required = append(required, key)
		}
		properties[key] = p
	}
	out := Keywords{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out, nil
}

func (s Source) value(tag reflect.StructTag, v reflect.Value) (Keywords, error) {
	switch v.Kind() {
	case reflect.Map:
		row, err := s.value(tag, reflect.New(v.Type().Elem()).Elem())
		return Keywords{"type": "object", "additionalProperties": row}, err
	case reflect.Slice:
		item, err := s.value(tag, reflect.New(v.Type().Elem()).Elem())
		return Keywords{"type": "array", "items": item}, err
	}
	out := maps.Clone(s.Forms[tag.Get("kind")])
	if out == nil {
		out = Keywords{}
	}
	for name, keyword := range map[string]string{"min": "minimum", "max": "maximum"} {
		if bound, there := tag.Lookup(name); there {
			out[keyword] = json.Number(bound)
		}
	}
	switch k := v.Kind(); {
	case out["type"] != nil: // the form says it all
	case k == reflect.String:
		out["type"] = "string"
	case k == reflect.Bool:
		out["type"] = "boolean"
	case v.CanInt():
		out["type"] = "integer"
	case v.CanFloat():
		out["type"] = "number"
	case k == reflect.Struct:
		return s.Of(v)
	default:
		return nil, fmt.Errorf("type %s has no JSON Schema", v.Type())
	}
	return out, nil
}

// FieldDefaults are the defaults of section field in the campaigns' schema, which lies in a file.
func FieldDefaults(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	var schema struct {
		Properties struct {
			Field struct {
				Properties map[string]struct{ Default any }
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	out := map[string]any{}
	for key, p := range schema.Properties.Field.Properties {
		out[key] = p.Default
	}
	return out, nil
}
