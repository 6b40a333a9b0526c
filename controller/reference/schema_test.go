package reference_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/reference"
)

// node is a part of a JSON Schema, as far as the reference needs it.
type node struct {
	Ref                  string           `json:"$ref"`
	Defs                 map[string]*node `json:"$defs"`
	Type                 any              `json:"type"`
	Description          string           `json:"description"`
	Unit                 string           `json:"unit"`
	Properties           map[string]*node `json:"properties"`
	AdditionalProperties json.RawMessage  `json:"additionalProperties"`
	Items                *node            `json:"items"`
	Enum                 []any            `json:"enum"`
	Const                any              `json:"const"`
	Pattern              string           `json:"pattern"`
	Minimum              *json.Number     `json:"minimum"`
	ExclusiveMinimum     *json.Number     `json:"exclusiveMinimum"`
	Maximum              *json.Number     `json:"maximum"`
	MinLength            *int             `json:"minLength"`
	MaxLength            *int             `json:"maxLength"`
	MinItems             *int             `json:"minItems"`
	MaxItems             *int             `json:"maxItems"`
	Default              json.RawMessage  `json:"default"`
	Required             []string         `json:"required"`
}

// walker lists the keys of one schema.
type walker struct {
	format string
	root   *node
	out    []reference.Entry
}

// keysOf lists the keys of a format by its JSON Schema, in the order of their names.
func keysOf(format string, schema []byte) ([]reference.Entry, error) {
	w := &walker{format: format, root: &node{}}
	if err := json.Unmarshal(schema, w.root); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", format, err)
	}
	if err := w.below("", w.root); err != nil {
		return nil, err
	}
	return w.once(), nil
}

// once are the keys without those that a scale has as the campaign has them.
func (w *walker) once() []reference.Entry {
	known := map[string]bool{}
	for _, e := range w.out {
		known[e.Key] = true
	}
	return slices.DeleteFunc(w.out, func(e reference.Entry) bool {
		rest, scale := strings.CutPrefix(e.Key, "scales.NAME.")
		return scale && strings.Contains(rest, ".") && known[rest]
	})
}

// resolved follows a reference within the schema; what stands beside it holds too.
func (w *walker) resolved(n *node) (*node, string, error) {
	if n.Ref == "" {
		return n, "", nil
	}
	at := w.root
	parts := strings.Split(strings.TrimPrefix(n.Ref, "#/"), "/")
	for i := 0; i+1 < len(parts); i += 2 {
		in := at.Properties
		if parts[i] == "$defs" {
			in = at.Defs
		}
		if at = in[parts[i+1]]; at == nil {
			return nil, "", fmt.Errorf("the schema has no %q", n.Ref)
		}
		for i+2 < len(parts) && at.Ref != "" {
			to, _, err := w.resolved(at)
			if err != nil {
				return nil, "", err
			}
			at = to
		}
	}
	to, _, err := w.resolved(at)
	if err != nil {
		return nil, "", err
	}
	out := *to
	if n.Description != "" {
		out.Description = n.Description
	}
	return &out, n.Ref, nil
}

// below lists the keys of an object.
func (w *walker) below(path string, n *node) error {
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		if err := w.one(joined(path, name), n.Properties[name], slices.Contains(n.Required, name)); err != nil {
			return err
		}
	}
	free := &node{}
	if len(n.AdditionalProperties) == 0 || json.Unmarshal(n.AdditionalProperties, free) != nil {
		return nil // none, or true or false
	}
	return w.one(joined(path, "NAME"), free, false)
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (w *walker) one(path string, n *node, needed bool) error {
	of, ref, err := w.resolved(n)
	if err != nil {
		return err
	}
	e := reference.Entry{Format: w.format, Key: path, Type: typeOf(of), Unit: of.Unit, Range: rangeOf(of),
		Needed: needed, Meaning: of.Description, Default: plainJSON(of.Default)}
	if e.Unit != "" {
		e.Meaning = strings.TrimSuffix(e.Meaning, " ("+e.Unit+")")
	}
	if e.Meaning == "" && strings.HasSuffix(path, "NAME") {
		e.Meaning = "one of them, by its name"
	}
	w.out = append(w.out, e)
	switch ref {
	case "#/$defs/level", "#/$defs/balance", "#/$defs/rules":
		if path != "acceptance" {
			return nil // keys of a trial, or of the acceptance, again
		}
	}
	if err := w.below(path, of); err != nil {
		return err
	}
	if of.Items == nil {
		return nil
	}
	items, _, err := w.resolved(of.Items)
	if err != nil {
		return err
	}
	return w.below(path+"[]", items)
}

func typeOf(n *node) string {
	words := map[any]string{"array": "list", "object": "mapping", "string": "text"}
	var out []string
	for _, t := range listOf(n.Type) {
		if n.Enum == nil { // else the words say it
			out = append(out, cmp.Or(words[t], fmt.Sprint(t)))
		}
	}
	return strings.Join(out, " or ")
}

func listOf(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// rangeOf is what a value may be, in words.
func rangeOf(n *node) string {
	var out []string
	switch {
	case n.Enum != nil:
		var words []string
		for _, v := range n.Enum {
			words = append(words, fmt.Sprint(v))
		}
		out = append(out, strings.Join(words, " | "))
	case n.Const != nil:
		out = append(out, fmt.Sprint(n.Const))
	case n.Pattern != "":
		out = append(out, "like `"+n.Pattern+"`")
	}
	switch {
	case n.ExclusiveMinimum != nil && n.Maximum != nil:
		out = append(out, fmt.Sprintf("above %s, to %s", *n.ExclusiveMinimum, *n.Maximum))
	case n.Minimum != nil && n.Maximum != nil:
		out = append(out, fmt.Sprintf("%s to %s", *n.Minimum, *n.Maximum))
	case n.Minimum != nil:
		out = append(out, fmt.Sprintf("at least %s", *n.Minimum))
	case n.ExclusiveMinimum != nil:
		out = append(out, fmt.Sprintf("above %s", *n.ExclusiveMinimum))
	case n.Maximum != nil:
		out = append(out, fmt.Sprintf("at most %s", *n.Maximum))
	}
	return strings.Join(append(out, counts(n)...), ", ")
}

func counts(n *node) []string {
	var out []string
	if n.MinLength != nil && n.MaxLength != nil {
		out = append(out, fmt.Sprintf("%d to %d characters", *n.MinLength, *n.MaxLength))
	}
	if n.MinItems != nil && n.MaxItems != nil {
		out = append(out, fmt.Sprintf("%d to %d of them", *n.MinItems, *n.MaxItems))
	}
	return out
}

// plainJSON is a default on one line.
func plainJSON(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return ""
	}
	if text, ok := v.(string); ok {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
