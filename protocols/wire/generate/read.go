package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// first are the files whose kinds come before those of the others in all documents.
var first = []string{"sampled.go", "stated.go"}

// structure is a body of the API or a record's, or a struct that is part of one.
type structure struct {
	name   string   // in Go
	kind   string   // of the record; "" for all else
	doc    []string // the paragraphs of its comment
	fields []field
}

// field is a field of a structure.
type field struct {
	name     string // in JSON
	goName   string // "" for an embedded struct, which elem names
	optional bool   // absent when it is empty
	pointer  bool
	of       string // "" for one value, "list", "map" or "bytes"
	elem     string // the Go type of the value or of the elements; "" for one that no body has
	asString string // what makes a Go string of a value of a type of ours, where elem is string because of it
	doc      []string
	tag      reflect.StructTag
	limits   limits
}

// contract is what the package declares.
type contract struct {
	records []structure // in the order of documents, each kind followed by those of its parts that are new
	structs map[string]structure
	constants
}

// read reads the package in a folder.
func read(folder string) (*contract, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, "_test.go") })
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	var kinds []structure
	c := &contract{structs: map[string]structure{}, constants: newConstants()}
	for _, path := range paths {
		file, err := parser.ParseFile(c.files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.add(file)
		for _, d := range file.Decls {
			s, is, err := kindOf(d)
			if err == nil && !is {
				err = declared(c.structs, d)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if is {
				kinds = append(kinds, s)
			}
		}
	}
	c.evaluate()
	if err := c.complete(); err != nil {
		return nil, err
	}
	c.records, err = withParts(kinds, c.structs)
	return c, err
}

// complete puts embedded structs' fields in their places, and reads what the
// fields' types and tags name.
func (c *contract) complete() error {
	for name, s := range c.structs {
		var whole []field
		for _, f := range s.fields {
			if f.goName == "" {
				whole = append(whole, c.structs[f.elem].fields...)
				continue
			}
			whole = append(whole, f)
		}
		s.fields = whole
		c.structs[name] = s
	}
	for name, s := range c.structs {
		for i := range s.fields {
			f := &s.fields[i]
			if conversion := c.texts[f.elem]; conversion != "" {
				f.asString, f.elem = conversion, "string"
			}
			var err error
			if f.limits, err = c.limitsOf(*f); err != nil {
				return fmt.Errorf("%s.%s: %w", name, f.name, err)
			}
		}
	}
	return nil
}

func place(path string) int {
	if i := slices.Index(first, filepath.Base(path)); i >= 0 {
		return i
	}
	return len(first)
}

// kindOf returns the kind that a method such as
//
//	func (*GPS) Kind() string { return "gps" }
//
// declares. A method Kind in any other form is an error: nothing would be made
// of it.
func kindOf(d ast.Decl) (s structure, is bool, err error) {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil || f.Name.Name != "Kind" {
		return structure{}, false, nil
	}
	receiver := f.Recv.List[0].Type
	if name, ok := receiver.(*ast.Ident); ok && name.Name == "Unknown" {
		return structure{}, false, nil // whose kind is the header's
	}
	if star, ok := receiver.(*ast.StarExpr); ok && len(f.Body.List) == 1 {
		name, named := star.X.(*ast.Ident)
		result, returns := f.Body.List[0].(*ast.ReturnStmt)
		if named && returns && len(result.Results) == 1 {
			if literal, ok := result.Results[0].(*ast.BasicLit); ok {
				kind, err := strconv.Unquote(literal.Value)
				return structure{name: name.Name, kind: kind}, true, err
			}
		}
	}
	return structure{}, false, fmt.Errorf(
		"method Kind of %s declares no record kind: write it as func (*T) Kind() string { return \"t\" }",
		types.ExprString(receiver))
}

// declared adds the structs of a declaration to specs, without the fields that are not JSON.
func declared(specs map[string]structure, d ast.Decl) error {
	g, ok := d.(*ast.GenDecl)
	if !ok {
		return nil
	}
	for _, s := range g.Specs {
		t, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		body, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		out := structure{name: t.Name.Name, doc: paragraphs(g.Doc)}
		for _, f := range body.Fields.List {
			if name, ok := f.Type.(*ast.Ident); ok && f.Tag == nil && len(f.Names) == 0 {
				out.fields = append(out.fields, field{elem: name.Name})
			}
			if f.Tag == nil || len(f.Names) != 1 {
				continue
			}
			made, err := fieldOf(f)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", t.Name.Name, f.Names[0].Name, err)
			}
			out.fields = append(out.fields, made)
		}
		specs[out.name] = out
	}
	return nil
}

func fieldOf(f *ast.Field) (field, error) {
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return field{}, err
	}
	out := field{goName: f.Names[0].Name, tag: reflect.StructTag(text), doc: paragraphs(f.Doc, f.Comment)}
	name, options, _ := strings.Cut(out.tag.Get("json"), ",")
	out.name, out.optional = name, options == "omitempty" || options == "omitzero"
	if name == "" {
		return field{}, fmt.Errorf("no name in JSON")
	}
	expr := f.Type
	switch t := expr.(type) {
	case *ast.StarExpr:
		out.pointer, expr = true, t.X
	case *ast.ArrayType:
		out.of, expr = "list", t.Elt
	case *ast.MapType:
		out.of, expr = "map", t.Value
	}
	switch t := expr.(type) {
	case *ast.Ident:
		out.elem = t.Name
	case *ast.SelectorExpr:
		out.elem = t.X.(*ast.Ident).Name + "." + t.Sel.Name
	}
	if out.of == "list" && out.elem == "byte" {
		out.of, out.elem = "bytes", "string"
	}
	return out, nil
}

// withParts completes the kinds by their declarations, and adds the structs that they are made of.
func withParts(kinds []structure, specs map[string]structure) ([]structure, error) {
	var out []structure
	for _, k := range kinds {
		var err error
		if out, err = join(out, specs, k.name, k.kind); err != nil {
			return nil, fmt.Errorf("record kind %q: %w", k.kind, err)
		}
	}
	return out, nil
}

// join adds a struct to a list, and after it those that it is made of, if they are not there.
func join(list []structure, specs map[string]structure, name, kind string) ([]structure, error) {
	s, ok := specs[name]
	if !ok {
		return nil, fmt.Errorf("no struct %q in the package", name)
	}
	if has(list, name) {
		return list, nil
	}
	s.kind = kind
	list = append(list, s)
	for _, f := range s.fields {
		if _, single := jsonTypes[f.elem]; single {
			continue
		}
		var err error
		if list, err = join(list, specs, f.elem, ""); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return list, nil
}

func has(list []structure, name string) bool {
	return slices.ContainsFunc(list, func(s structure) bool { return s.name == name })
}

// paragraphs are those of comments, each as one line.
func paragraphs(groups ...*ast.CommentGroup) []string {
	var out []string
	for _, g := range groups {
		for p := range strings.SplitSeq(g.Text(), "\n\n") {
			if words := strings.Fields(p); len(words) > 0 {
				out = append(out, strings.Join(words, " "))
			}
		}
	}
	return out
}

// alternatives are the words that a text may be, as comments list them: "open | close".
var alternatives = regexp.MustCompile(`[\w.]*\w(?: \| (?:[\w.]*\w|…))+`)

// listed are the only words that the field may hold; none where its comment does not list them all.
func (f field) listed() []string {
	if f.elem != "string" || f.of != "" || len(f.doc) == 0 {
		return nil
	}
	list := alternatives.FindString(f.doc[0])
	if list == "" || strings.Contains(list, "…") {
		return nil
	}
	return strings.Split(list, " | ")
}

// meaning is the first paragraph of the field's comment, with a list of words as a person would write it.
func (f field) meaning() string {
	if len(f.doc) == 0 {
		return ""
	}
	return alternatives.ReplaceAllStringFunc(f.doc[0], func(list string) string {
		if strings.Contains(list, "…") {
			return list
		}
		last := strings.LastIndex(list, " | ")
		return strings.ReplaceAll(list[:last], " | ", ", ") + " or " + list[last+len(" | "):]
	})
}

// meaning is the first paragraph of the comment, without the name in Go that such a comment begins with.
func (s structure) meaning() (string, error) {
	if len(s.doc) > 0 {
		for _, verb := range []string{" is ", " are ", " holds "} {
			if rest, ok := strings.CutPrefix(s.doc[0], s.name+verb); ok {
				return sentence(rest), nil
			}
		}
	}
	return "", fmt.Errorf("%s: its comment does not begin with %q", s.name, s.name+" is")
}

// says is the first paragraph of the comment with the name in Go left out.
func (s structure) says() string {
	if len(s.doc) == 0 {
		return ""
	}
	rest := strings.TrimPrefix(s.doc[0], s.name+" ")
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	return sentence(rest)
}

// sentence begins with a capital, unless it begins with a name such as tcp_info.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.Contains(word, "_") || word == "iperf3" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
