package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strconv"
	"strings"
)

// limits are what a field may hold, by its tags: min, above and max bound a
// number, the length of a text or of a list; form names a form; words names a
// function that lists words, where the comment does not.
type limits struct {
	min, above, max limit
	form            string // the form's name in Go
	pattern         string // its expression; of an answer, which nothing checks, the tag pattern gives it
	words           []string
	listedBy        string // the function that lists the words; "" when the comment does
}

// limit is one bound: as the tag has it, and as a number. Both are "" where there is none.
type limit struct{ code, number string }

func (l limit) is() bool { return l.code != "" }

// constants are what tags may name.
type constants struct {
	files  *token.FileSet
	syntax []*ast.File
	pkg    *types.Package
	info   *types.Info
	texts  map[string]string // types whose values are texts in JSON, with what makes a Go string of one
	forms  map[string]string
	lists  map[string]*ast.CompositeLit
}

func newConstants() constants {
	return constants{files: token.NewFileSet(), texts: map[string]string{}, forms: map[string]string{},
		lists: map[string]*ast.CompositeLit{}}
}

// add notes what a file declares of types that are texts, forms and lists of words.
func (c *constants) add(file *ast.File) {
	c.syntax = append(c.syntax, file)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.addFunction(d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if base, ok := s.Type.(*ast.Ident); ok && base.Name == "string" {
						c.texts[s.Name.Name] = "string(%s)"
					}
				case *ast.ValueSpec:
					c.addForm(s)
				}
			}
		}
	}
}

func (c *constants) addFunction(f *ast.FuncDecl) {
	if f.Recv != nil && f.Name.Name == "MarshalText" {
		if name, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
			c.texts[name.Name] = "%s.String()"
		}
	}
	if f.Recv != nil || f.Body == nil || len(f.Body.List) != 1 {
		return
	}
	if result, ok := f.Body.List[0].(*ast.ReturnStmt); ok && len(result.Results) == 1 {
		if list, ok := result.Results[0].(*ast.CompositeLit); ok {
			c.lists[f.Name.Name] = list
		}
	}
}

// addForm notes a variable such as runForm = formOf(`^[a-z]$`, "a letter").
func (c *constants) addForm(s *ast.ValueSpec) {
	for i, value := range s.Values {
		call, ok := value.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			continue
		}
		function, named := call.Fun.(*ast.Ident)
		literal, plain := call.Args[0].(*ast.BasicLit)
		if !named || !plain || function.Name != "formOf" {
			continue
		}
		if pattern, err := strconv.Unquote(literal.Value); err == nil {
			c.forms[s.Names[i].Name] = pattern
		}
	}
}

// evaluate finds the values of the package's constants. It passes over whatever
// is wrong elsewhere: imports are not followed, and what is generated may be missing.
func (c *constants) evaluate() {
	c.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Error: func(error) {}, Importer: noImports{}}
	c.pkg, _ = config.Check("wire", c.files, c.syntax, c.info)
}

type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("%s is not read", path)
}

func (c *constants) limitsOf(f field) (limits, error) {
	l := limits{form: f.tag.Get("form"), pattern: f.tag.Get("pattern"), listedBy: f.tag.Get("words"), words: f.listed()}
	var err error
	for _, bound := range []struct {
		tag string
		to  *limit
	}{{"min", &l.min}, {"above", &l.above}, {"max", &l.max}} {
		if *bound.to, err = c.limit(f.tag.Get(bound.tag)); err != nil {
			return l, fmt.Errorf("%s: %w", bound.tag, err)
		}
	}
	if l.form != "" {
		if l.pattern = c.forms[l.form]; l.pattern == "" {
			return l, fmt.Errorf("form:%q: the package has no such form", l.form)
		}
	}
	if l.listedBy != "" {
		if l.words, err = c.wordsOf(l.listedBy); err != nil {
			return l, fmt.Errorf("words:%q: %w", l.listedBy, err)
		}
	}
	return l, nil
}

// limit evaluates a tag's expression: a number, or constants of the package.
func (c *constants) limit(expression string) (limit, error) {
	if expression == "" {
		return limit{}, nil
	}
	value, err := types.Eval(c.files, c.pkg, token.NoPos, expression)
	if err != nil || value.Value == nil {
		return limit{}, fmt.Errorf("%q is neither a number nor a constant of the package", expression)
	}
	if whole := constant.ToInt(value.Value); whole.Kind() == constant.Int {
		return limit{expression, whole.ExactString()}, nil
	}
	x, _ := constant.Float64Val(value.Value)
	return limit{expression, strconv.FormatFloat(x, 'f', -1, 64)}, nil
}

func (c *constants) wordsOf(function string) ([]string, error) {
	list := c.lists[function]
	if list == nil {
		return nil, fmt.Errorf("no function that returns nothing but a list")
	}
	var out []string
	for _, e := range list.Elts {
		value := c.info.Types[e].Value
		if value == nil || value.Kind() != constant.String {
			return nil, fmt.Errorf("%s is no constant text", types.ExprString(e))
		}
		out = append(out, constant.StringVal(value))
	}
	return out, nil
}

// orEmpty is a pattern that an empty text fits too.
func orEmpty(pattern string) string {
	if regexp.MustCompile(pattern).MatchString("") {
		return pattern
	}
	return "^(" + strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$") + ")?$"
}
