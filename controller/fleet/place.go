package fleet

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"fieldmesh.dev/fieldmesh/internal/yamlfault"
)

// fault is a fault of a value, before its place in the file is looked up.
type fault struct {
	path []string // keys from the top
	err  error
}

func (f *fault) Error() string { return strings.Join(f.path, ".") + ": " + f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// under puts a fault below further keys; another error becomes one.
func under(err error, keys ...string) error {
	if err == nil {
		return nil
	}
	var f *fault
	if errors.As(err, &f) {
		return &fault{append(keys, f.path...), f.err}
	}
	return &fault{keys, err}
}

// locate says where in a file an error of reading it lies, FILE:LINE:COL: message,
// which editors can jump to.
func locate(name string, data []byte, err error) error {
	line, column, message := 0, 0, err.Error()
	var f *fault
	var decoding yaml.Error
	var torn *yaml.SyntaxError
	switch {
	case errors.As(err, &f):
		line, column = place(data, f.path)
	case errors.As(err, &decoding):
		message = yamlfault.Explain(decoding.GetMessage())
		if errors.As(err, &torn) {
			message = "not valid YAML: " + message
		}
		token := decoding.GetToken()
		if token == nil || token.Position == nil {
			break
		}
		line, column = token.Position.Line, token.Position.Column
		if strings.HasPrefix(message, "unknown field") {
			message = fmt.Sprintf("unknown key %q; allowed: %s at the top, %s in a node", token.Value, keysOf[file](),
				keysOf[Node]())
		}
	}
	if line == 0 { // no place in the file can be named
		return fmt.Errorf("%s: %s", name, message)
	}
	return fmt.Errorf("%s:%d:%d: %s", name, line, column, message)
}

// place finds the deepest key of a path that the file has: what is missing is
// missing there. Line 0 means none.
func place(data []byte, path []string) (line, column int) {
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return 0, 0
	}
	for ; len(path) > 0; path = path[:len(path)-1] {
		builder := (&yaml.PathBuilder{}).Root()
		for _, key := range path {
			builder = builder.Child(key)
		}
		node, err := builder.Build().FilterFile(parsed)
		if err == nil && node != nil && node.GetToken() != nil {
			at := node.GetToken().Position
			return at.Line, at.Column
		}
	}
	return 0, 0
}

// keysOf lists the keys of a part of the file.
func keysOf[T any]() string {
	var out []string
	for i := range reflect.TypeFor[T]().NumField() {
		if key, _, _ := strings.Cut(reflect.TypeFor[T]().Field(i).Tag.Get("yaml"), ","); key != "-" {
			out = append(out, key)
		}
	}
	return strings.Join(out, ", ")
}
