package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// first are the files whose kinds come before those of the others in all documents.
var first = []string{"sampled.go", "stated.go"}

// structure is a record's body, or a struct that is part of one.
type structure struct {
	name   string   // in Go
	kind   string   // of the record; "" for a part
	doc    []string // the paragraphs of its comment
	fields []field
}

// field is a field of a structure.
type field struct {
	name     string // in JSON
	optional bool   // absent when it is empty
	of       string // "" for one value, "list" or "map"
	elem     string // the Go type of the value or of the elements; "" for one that no record has
	doc      []string
	tag      reflect.StructTag
}

// read returns the record kinds in the order of documents, each followed by those of its parts that are new.
func read(folder string) ([]structure, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, "_test.go") })
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	var kinds []structure
	specs := map[string]structure{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if s, ok := kindOf(d); ok {
				kinds = append(kinds, s)
			} else if err := declared(specs, d); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return withParts(kinds, specs)
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
// declares.
func kindOf(d ast.Decl) (structure, bool) {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil || f.Name.Name != "Kind" || len(f.Body.List) != 1 {
		return structure{}, false
	}
	star, pointer := f.Recv.List[0].Type.(*ast.StarExpr)
	result, returns := f.Body.List[0].(*ast.ReturnStmt)
	if !pointer || !returns {
		return structure{}, false
	}
	literal, ok := result.Results[0].(*ast.BasicLit)
	if !ok {
		return structure{}, false
	}
	kind, err := strconv.Unquote(literal.Value)
	return structure{name: star.X.(*ast.Ident).Name, kind: kind}, err == nil
}

// declared adds the structs of a declaration to specs, without the embedded ones and those that are not JSON.
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
	out := field{tag: reflect.StructTag(text), doc: paragraphs(f.Doc, f.Comment)}
	name, options, _ := strings.Cut(out.tag.Get("json"), ",")
	out.name, out.optional = name, options == "omitempty" || options == "omitzero"
	if name == "" {
		return field{}, fmt.Errorf("no name in JSON")
	}
	expr := f.Type
	switch t := expr.(type) {
	case *ast.StarExpr:
		expr = t.X
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
	return out, nil
}

// withParts completes the kinds by their declarations, and adds the structs that they are made of.
func withParts(kinds []structure, specs map[string]structure) ([]structure, error) {
	var out []structure
	var add func(name, kind string) error
	add = func(name, kind string) error {
		s, ok := specs[name]
		if !ok {
			return fmt.Errorf("no struct %q in the package", name)
		}
		if slices.ContainsFunc(out, func(had structure) bool { return had.name == name }) {
			return nil
		}
		s.kind = kind
		out = append(out, s)
		for _, f := range s.fields {
			if _, single := jsonTypes[f.elem]; single {
				continue
			}
			if err := add(f.elem, ""); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	}
	for _, k := range kinds {
		if err := add(k.name, k.kind); err != nil {
			return nil, fmt.Errorf("record kind %q: %w", k.kind, err)
		}
	}
	return out, nil
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
var alternatives = regexp.MustCompile(`\w+(?: \| [\w…]+)+`)

// words are the only words that the field may hold; none where its comment does not list them all.
func (f field) words() []string {
	if jsonTypes[f.elem] != jsonTypes["string"] || f.of != "" || len(f.doc) == 0 {
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

// sentence begins with a capital, unless it begins with a name such as tcp_info.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.Contains(word, "_") || word == "iperf3" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
