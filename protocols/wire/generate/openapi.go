package main

import (
	"bytes"
	"fmt"
	"strings"
)

// openAPIMark is the line of openapi.yaml after which everything is generated.
const openAPIMark = "    # What follows is made by go generate from the Go types.\n"

// openAPI is the records' part of openapi.yaml, from the mark on.
func openAPI(all []structure) []byte {
	var b bytes.Buffer
	b.WriteString(openAPIMark)
	for _, s := range all {
		fmt.Fprintf(&b, "    %s:\n      description: %s\n      type: object\n", s.name, quoted(strings.Join(s.doc, " ")))
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
			fmt.Fprintf(&b, "        %s: {%s}\n", f.name, strings.Join(f.property(), ", "))
		}
	}
	return b.Bytes()
}

// property is the schema of a field.
func (f field) property() []string {
	elem, single := jsonTypes[f.elem]
	if !single {
		elem = "$ref: '#/components/schemas/" + f.elem + "'"
	}
	var out []string
	switch f.of {
	case "list":
		out = []string{"type: array", "items: {" + elem + "}"}
	case "map":
		out = []string{"type: object", "additionalProperties: {" + elem + "}"}
	default:
		if elem != "" {
			out = []string{elem}
		}
	}
	if words := f.words(); words != nil {
		out = append(out, "enum: ["+strings.Join(words, ", ")+"]")
	}
	for _, bound := range [][2]string{{"min", "minimum"}, {"max", "maximum"}} {
		if limit, ok := f.tag.Lookup(bound[0]); ok {
			out = append(out, bound[1]+": "+limit)
		}
	}
	if len(f.doc) > 0 {
		out = append(out, "description: "+quoted(f.description()))
	}
	return out
}

// jsonTypes are the schemas of values of types in Go.
var jsonTypes = map[string]string{
	"string":          "type: string",
	"Outcome":         "type: string",
	"Reason":          "type: string",
	"State":           "type: string",
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

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
