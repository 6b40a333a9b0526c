package plan

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on the file itself. A campaign is a page or two; the bounds keep a
// hostile file from costing more than a moment.
const (
	maxFileBytes = 256 << 10
	maxDepth     = 24
)

// readTree parses YAML into a tree. On a fault of syntax there is no tree.
func readTree(raw []byte, f *findings) *node {
	if !fitToParse(raw, f) {
		return nil
	}
	file, err := parser.ParseBytes(raw, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := position{1, 1}, err.Error()
		var located yaml.Error
		if errors.As(err, &located) {
			at, message = place(located.GetToken()), located.GetMessage()
		}
		f.add(at, "not valid YAML: %s", message)
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			f.add(place(doc.Start), "a second YAML document begins here; allowed: one document in a file")
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		f.add(position{1, 1}, "the file is empty; allowed: a mapping that begins with fieldmesh: %d", formatVersion)
		return nil
	}
	root := convert(body, position{1, 1}, 0, f)
	if root.shape != shapeMap {
		f.add(root.at, "the file holds %s; allowed: a mapping that begins with fieldmesh: %d", root.shape,
			formatVersion)
		return nil
	}
	return root
}

// fitToParse turns away what the YAML parser should not be given: it recurses
// without a bound of its own.
func fitToParse(raw []byte, f *findings) bool {
	if len(raw) > maxFileBytes {
		f.add(position{1, 1}, "the file has %d bytes; allowed: at most %d", len(raw), maxFileBytes)
		return false
	}
	line, column, depth := 1, 0, 0
	lineStart := true
	marks := 0
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		i += size
		column++
		if (r == utf8.RuneError && size == 1) || (r < ' ' && r != '\n' && r != '\t' && r != '\r') {
			f.add(position{line, column}, "byte 0x%02x is not text; allowed: UTF-8 without control characters",
				raw[i-1])
			return false
		}
		switch {
		case r == '\n':
			line, column, lineStart, marks = line+1, 0, true, 0
			continue
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			depth = max(0, depth-1)
		case lineStart && (r == '-' || r == '?'):
			marks++
		}
		lineStart = lineStart && (r == ' ' || r == '-' || r == '?' || r == '\t')
		if depth+marks > 4*maxDepth {
			f.add(position{line, column}, "nested too deeply; allowed: %d levels", maxDepth)
			return false
		}
	}
	return true
}

func place(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{max(1, t.Position.Line), max(1, t.Position.Column)}
}

// convert copies one node of the parser's tree, reporting what the format
// does not know: anchors, aliases, tags, repeated keys.
func convert(n ast.Node, home position, depth int, f *findings) *node {
	out := &node{at: home, home: home}
	if n == nil || n.GetToken() == nil {
		return out
	}
	out.at = place(n.GetToken())
	if depth > maxDepth {
		f.add(out.at, "nested too deeply; allowed: %d levels", maxDepth)
		out.bad = true
		return out
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		out.shape = shapeMap
		convertEntries(out, v.Values, depth, f)
		if v.IsFlowStyle && v.Start != nil {
			out.at = place(v.Start)
		}
	case *ast.MappingValueNode:
		out.shape = shapeMap
		convertEntries(out, []*ast.MappingValueNode{v}, depth, f)
	case *ast.SequenceNode:
		out.shape = shapeList
		for _, item := range v.Values {
			child := convert(item, out.at, depth+1, f)
			child.home = child.at
			out.items = append(out.items, child)
		}
	default:
		convertScalar(out, n, f)
	}
	return out
}

func convertEntries(out *node, values []*ast.MappingValueNode, depth int, f *findings) {
	first := map[string]position{}
	for _, mv := range values {
		if mv == nil || mv.Key == nil || mv.Key.GetToken() == nil {
			continue
		}
		at := place(mv.Key.GetToken())
		if len(first) == 0 {
			out.at = at
		}
		key := mv.Key.GetToken().Value
		if mv.Key.IsMergeKey() {
			f.add(at, `merge key "<<" is not part of the format; allowed: each value written out, or a factor's level`)
			continue
		}
		switch mv.Key.(type) {
		case *ast.MappingKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
			f.add(at, "key %q is not plain text; allowed: a plain key", key)
			continue
		}
		if before, twice := first[key]; twice {
			f.add(at, "key %q is given twice, first in line %d; allowed: once", key, before.line)
			continue
		}
		first[key] = at
		child := convert(mv.Value, at, depth+1, f)
		child.home = at
		out.entries = append(out.entries, entry{key: key, at: at, value: child})
	}
}

// plainNumber keeps to the one notation that every reader of a measurement
// campaign takes for the same number: no octal, hexadecimal or underscores.
var plainNumber = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func convertScalar(out *node, n ast.Node, f *findings) {
	out.text = n.GetToken().Value
	switch v := n.(type) {
	case *ast.NullNode:
		out.shape = shapeNull
	case *ast.BoolNode:
		out.shape, out.truth = shapeBool, v.Value
	case *ast.StringNode:
		out.shape, out.text = shapeText, v.Value
	case *ast.LiteralNode:
		out.shape = shapeText
		if v.Value != nil {
			out.text = v.Value.Value
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.shape = shapeNumber
		x, err := strconv.ParseFloat(out.text, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) || !plainNumber.MatchString(out.text) {
			f.add(out.at, "%s is not a plain number; allowed: decimal digits such as 12 or 2.8", shorten(out.text))
			out.bad = true
		}
		out.number = x
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		f.add(out.at, "%q begins an anchor, alias or tag, which are not part of the format; allowed: the value "+
			"written out", shorten(out.text))
		out.bad = true
	default:
		f.add(out.at, "%q is not understood here; allowed: a value, a list or a mapping", shorten(out.text))
		out.bad = true
	}
}
