package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// openAPIMark is the line of openapi.yaml after which everything is generated.
const openAPIMark = "    # What follows is made by go generate from the Go types.\n"

var schemaName = regexp.MustCompile(`#/components/schemas/(\w+)`)

// bodies are the structs that the hand-written part of openapi.yaml names, each followed by those of its parts that
// are new; records come apart.
type bodies struct {
	structs []structure
	strict  []structure // those that are in a request, which is read strictly
}

func bodiesOf(byHand []byte, c *contract) (bodies, error) {
	var b bodies
	for _, m := range schemaName.FindAllSubmatch(byHand, -1) {
		var err error
		if b.structs, err = join(b.structs, c.structs, string(m[1]), ""); err != nil {
			return b, fmt.Errorf("openapi.yaml: %s: %w", m[0], err)
		}
	}
	var paths struct {
		Paths map[string]map[string]struct {
			Body any `yaml:"requestBody"`
		}
	}
	if err := yaml.Unmarshal(byHand, &paths); err != nil {
		return b, fmt.Errorf("openapi.yaml: %w", err)
	}
	var asked []string
	for _, calls := range paths.Paths {
		for _, call := range calls {
			for _, m := range schemaName.FindAllStringSubmatch(fmt.Sprint(call.Body), -1) {
				asked = append(asked, m[1])
			}
		}
	}
	slices.Sort(asked)
	for _, name := range asked {
		var err error
		if b.strict, err = join(b.strict, c.structs, name, ""); err != nil {
			return b, err
		}
	}
	b.structs = slices.DeleteFunc(b.structs, func(s structure) bool { return has(c.records, s.name) })
	return b, nil
}

// openAPI is the part of openapi.yaml from the mark on.
func openAPI(api bodies, records []structure) []byte {
	var b bytes.Buffer
	b.WriteString(openAPIMark)
	for _, s := range slices.Concat(api.structs, records) {
		strict := has(api.strict, s.name)
		fmt.Fprintf(&b, "    %s:\n      description: %s\n      type: object\n", s.name,
			quoted(strings.Join(s.doc, " ")))
		if strict {
			b.WriteString("      additionalProperties: false\n")
		}
		var required []string
		for _, f := range s.fields {
			if !f.optional {
				required = append(required, f.name)
			}
		}
		if len(required) > 0 {
			fmt.Fprintf(&b, "      required: [%s]\n", strings.Join(required, ", "))
		}
		b.WriteString("      properties:\n")
		for _, f := range s.fields {
			fmt.Fprintf(&b, "        %s: {%s}\n", f.name, strings.Join(f.property(strict), ", "))
		}
	}
	return b.Bytes()
}

// property is the schema of a field, strict in a request.
func (f field) property(strict bool) []string {
	elem, single := jsonTypes[f.elem]
	if !single {
		elem = "$ref: '#/components/schemas/" + f.elem + "'"
	}
	var out []string
	switch f.of {
	case "list":
		out = append([]string{"type: array", "items: {" + elem + "}"}, f.bounds("Items")...)
	case "map":
		out = append([]string{"type: object", "additionalProperties: {" + elem + "}"}, f.bounds("Properties")...)
	case "bytes":
		out = f.base64()
	default:
		if elem != "" {
			out = []string{elem}
		}
		out = append(out, f.single(strict)...)
	}
	if len(f.doc) > 0 {
		out = append(out, "description: "+quoted(f.description()))
	}
	return out
}

// single is what bounds a field of one value. In a request a text that may be
// absent may be empty too: Go reads the two alike.
func (f field) single(strict bool) []string {
	if f.elem != "string" {
		return f.bounds("imum")
	}
	empty := strict && f.optional && !f.pointer
	var out []string
	if f.limits.words != nil {
		var words []string
		if empty {
			words = []string{"''"}
		}
		for _, w := range f.limits.words {
			words = append(words, scalar(w))
		}
		out = append(out, "enum: ["+strings.Join(words, ", ")+"]")
	}
	if pattern := f.limits.pattern; pattern != "" {
		if empty {
			pattern = orEmpty(pattern)
		}
		out = append(out, "pattern: "+quoted(pattern))
	}
	return append(out, f.bounds("Length")...)
}

// bounds are the keywords of what lies at most and at least in a field: of is what they end in.
func (f field) bounds(of string) []string {
	var out []string
	for _, bound := range []struct {
		key string
		limit
	}{{"min" + of, f.limits.min}, {"exclusiveMin" + of, f.limits.above}, {"max" + of, f.limits.max}} {
		if bound.is() && !(bound.key == "minLength" && bound.number == "0") {
			out = append(out, bound.key+": "+bound.number)
		}
	}
	return out
}

// base64 is the schema of bytes: as many as max says.
func (f field) base64() []string {
	n, err := strconv.Atoi(f.limits.max.number)
	if err != nil {
		return []string{"type: string", "contentEncoding: base64"}
	}
	whole, end := 4*(n/3)+n%3, []string{"", "[AQgw]==", "[AEIMQUYcgkosw048]="}[n%3] // RFC 4648, 4
	length := 4 * ((n + 2) / 3)
	return []string{"type: string", "contentEncoding: base64",
		fmt.Sprintf("minLength: %d", length), fmt.Sprintf("maxLength: %d", length),
		"pattern: " + quoted(fmt.Sprintf("^[A-Za-z0-9+/]{%d}%s$", whole, end))}
}

// jsonTypes are the schemas of values of types in Go.
var jsonTypes = map[string]string{
	"string":          "type: string",
	"bool":            "type: boolean",
	"float64":         "type: number",
	"int":             "type: integer, format: int64",
	"int64":           "type: integer, format: int64",
	"uint64":          "type: integer, minimum: 0",
	"uint32":          "type: integer, minimum: 0",
	"json.RawMessage": "", // any
}

// description is the whole of the field's comment.
func (f field) description() string {
	text := f.meaning()
	if len(f.doc) > 1 {
		text += ". " + strings.Join(f.doc[1:], " ")
	}
	return text
}

// scalar is a word in YAML, quoted where it would be read as something else than text.
func scalar(word string) string {
	if slices.Contains([]string{"", "on", "off", "yes", "no", "true", "false", "null"}, word) {
		return quoted(word)
	}
	return word
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
