package tree

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"fieldmesh.dev/fieldmesh/internal/yamlfault"
)

// Bounds on the file itself. A campaign is a page or two; the bounds keep a
// hostile file from costing more than a moment.
const (
	MaxFileBytes = 256 << 10
	maxDepth     = 24
)

// Read parses YAML into a tree; begins is for messages, what a file begins with.
// On a fault of syntax there is no tree.
func Read(raw []byte, begins string, f *Findings) *Node {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff")) // which some editors begin a file with
	if !fitToParse(raw, f) {
		return nil
	}
	file, err := parser.ParseBytes(raw, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := Position{1, 1}, err.Error()
		var located yaml.Error
		if errors.As(err, &located) {
			at, message = place(located.GetToken()), located.GetMessage()
		}
		f.Add(at, "not valid YAML: %s", yamlfault.Explain(message))
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			f.Add(place(doc.Start), "a second YAML document begins here; allowed: one document in a file")
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		f.Add(Position{1, 1}, "the file is empty; allowed: a mapping that begins with %s", begins)
		return nil
	}
	root := convert(body, Position{1, 1}, 0, f)
	if root.Shape != Map {
		f.Add(root.At, "the file holds %s; allowed: a mapping that begins with %s", root.Shape, begins)
		return nil
	}
	return root
}

// fitToParse turns away what the YAML parser should not be given: it recurses
// without a bound of its own.
func fitToParse(raw []byte, f *Findings) bool {
	if len(raw) > MaxFileBytes {
		f.Add(Position{1, 1}, "the file has %d bytes; allowed: at most %d", len(raw), MaxFileBytes)
		return false
	}
	if bytes.HasPrefix(raw, []byte{0xff, 0xfe}) || bytes.HasPrefix(raw, []byte{0xfe, 0xff}) {
		f.Add(Position{1, 1}, "the file is UTF-16; save it as UTF-8")
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
			f.Add(Position{line, column}, "byte 0x%02x is not text; allowed: UTF-8 without control characters",
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
			f.Add(Position{line, column}, "nested too deeply; allowed: %d levels", maxDepth)
			return false
		}
	}
	return true
}

func place(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{1, 1}
	}
	return Position{max(1, t.Position.Line), max(1, t.Position.Column)}
}

// convert copies one node of the parser's tree, reporting what the format
// does not know: anchors, aliases, tags, repeated keys.
func convert(n ast.Node, home Position, depth int, f *Findings) *Node {
	out := &Node{At: home, Home: home}
	if n == nil || n.GetToken() == nil {
		return out
	}
	out.At = place(n.GetToken())
	if depth > maxDepth {
		f.Add(out.At, "nested too deeply; allowed: %d levels", maxDepth)
		out.Bad = true
		return out
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		out.Shape = Map
		convertEntries(out, v.Values, depth, f)
		if v.IsFlowStyle && v.Start != nil {
			out.At = place(v.Start)
		}
	case *ast.MappingValueNode:
		out.Shape = Map
		convertEntries(out, []*ast.MappingValueNode{v}, depth, f)
	case *ast.SequenceNode:
		out.Shape = List
		for _, item := range v.Values {
			child := convert(item, out.At, depth+1, f)
			child.Home = child.At
			out.Items = append(out.Items, child)
		}
		findDecimalComma(out.Items, f)
	default:
		convertScalar(out, n, f)
	}
	return out
}

// findDecimalComma reports the first two whole numbers of a list between which only a comma
// stands, if a space follows another comma of the list: [2,8, 5,6] may be two numbers or four.
func findDecimalComma(items []*Node, f *Findings) {
	tight, spaced := -1, false
	for i := 1; i < len(items); i++ {
		left, right := items[i-1], items[i]
		if left.Shape != Number || right.Shape != Number || left.At.line != right.At.line {
			return
		}
		switch between := right.At.column - left.At.column - len(left.Text); {
		case between > 1:
			spaced = true
		case tight < 0 && isDigits(left.Text) && isDigits(right.Text):
			tight = i
		}
	}
	if tight < 0 || !spaced {
		return
	}
	left, right := items[tight-1].Text, items[tight].Text
	f.Add(items[tight-1].At, "%s,%s may be one number or two; allowed: %[1]s.%[2]s, or a space behind each comma", left,
		right)
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func convertEntries(out *Node, values []*ast.MappingValueNode, depth int, f *Findings) {
	first := map[string]Position{}
	for _, mv := range values {
		if mv == nil || mv.Key == nil || mv.Key.GetToken() == nil {
			continue
		}
		at := place(mv.Key.GetToken())
		if len(first) == 0 {
			out.At = at
		}
		key := mv.Key.GetToken().Value
		if mv.Key.IsMergeKey() {
			f.Add(at, `merge key "<<" is not part of the format; allowed: each value written out, or a factor's level`)
			continue
		}
		switch mv.Key.(type) {
		case *ast.MappingKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
			f.Add(at, "key %q is not plain text; allowed: a plain key", key)
			continue
		}
		if before, twice := first[key]; twice {
			f.Add(at, "key %q is given twice, first in line %d; allowed: once", key, before.line)
			continue
		}
		first[key] = at
		child := convert(mv.Value, at, depth+1, f)
		child.Home = at
		out.Entries = append(out.Entries, Entry{key, at, child})
	}
}

// plainNumber keeps to the one notation that every reader of a measurement
// campaign takes for the same number: no octal, hexadecimal or underscores.
var plainNumber = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func convertScalar(out *Node, n ast.Node, f *Findings) {
	out.Text = n.GetToken().Value
	switch v := n.(type) {
	case *ast.NullNode:
		out.Shape = Null
	case *ast.BoolNode:
		out.Shape, out.Truth = Bool, v.Value
	case *ast.StringNode:
		out.Shape, out.Text = Text, v.Value
	case *ast.LiteralNode:
		out.Shape = Text
		if v.Value != nil {
			out.Text = v.Value.Value
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.Shape = Number
		x, err := strconv.ParseFloat(out.Text, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) || !plainNumber.MatchString(out.Text) {
			f.Add(out.At, "%s is not a plain number; allowed: decimal digits such as 12 or 2.8", Shorten(out.Text))
			out.Bad = true
		}
		out.Number = x
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		f.Add(out.At, "%q begins an anchor, alias or tag, which are not part of the format; allowed: the value "+
			"written out", Shorten(out.Text))
		out.Bad = true
	default:
		f.Add(out.At, "%q is not understood here; allowed: a value, a list or a mapping", Shorten(out.Text))
		out.Bad = true
	}
}
