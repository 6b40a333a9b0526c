package plan

import (
	"encoding/json"
	"strconv"
	"strings"
)

// shape is what a node of the file is.
type shape int

const (
	shapeNull shape = iota
	shapeText
	shapeNumber
	shapeBool
	shapeList
	shapeMap
)

func (s shape) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a list", "a mapping"}[s]
}

// node is one value of the file with its place. The tree is our own, and not
// the parser's, so that overrides can be merged into it and still tell where
// each value came from.
type node struct {
	shape   shape
	at      position // of the value
	home    position // of the key that holds it; of the value itself in a list
	text    string   // a scalar as it stands in the file
	number  float64
	truth   bool
	entries []entry
	items   []*node
	bad     bool // a fault of it was reported already; later checks pass it over
	strange bool // a mapping with an unknown key: what it seems to lack may be there, misspelt
}

// entry is one key of a mapping.
type entry struct {
	key   string
	at    position
	value *node
}

// child finds a key of a mapping, nil when it is absent.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// lookup finds a dotted path below a mapping, nil when it is absent.
func (n *node) lookup(path string) *node {
	for key := range strings.SplitSeq(path, ".") {
		if n = n.child(key); n == nil {
			return nil
		}
	}
	return n
}

// show is the value for a message: scalars as written, the rest by its shape.
func (n *node) show() string {
	switch n.shape {
	case shapeText:
		return strconv.Quote(shorten(n.text))
	case shapeNumber, shapeBool:
		return shorten(n.text)
	}
	return n.shape.String()
}

func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// merge lays override over base and leaves both as they were: mappings are
// joined key by key, anything else is replaced. Places come along, so that a
// fault of the result points at the line that caused it.
func merge(base, override *node) *node {
	if base == nil || override == nil || base.shape != shapeMap || override.shape != shapeMap {
		if override != nil {
			return override
		}
		return base
	}
	out := *base
	out.bad = base.bad || override.bad
	out.strange = base.strange || override.strange
	out.entries = append([]entry(nil), base.entries...)
	for _, e := range override.entries {
		found := false
		for i := range out.entries {
			if out.entries[i].key == e.key {
				out.entries[i] = entry{e.key, e.at, merge(out.entries[i].value, e.value)}
				found = true
			}
		}
		if !found {
			out.entries = append(out.entries, e)
		}
	}
	return &out
}

// without drops dotted paths from a tree and leaves the tree as it was.
func without(n *node, paths ...string) *node {
	for _, path := range paths {
		key, rest, deeper := strings.Cut(path, ".")
		out := *n
		out.entries = nil
		for _, e := range n.entries {
			switch {
			case e.key != key:
			case deeper:
				e.value = without(e.value, rest)
			default:
				continue
			}
			out.entries = append(out.entries, e)
		}
		n = &out
	}
	return n
}

// nest wraps a value into mappings so that it stands at a dotted path; every
// wrapper has the value's own place.
func nest(path string, value *node) *node {
	keys := strings.Split(path, ".")
	for i := len(keys) - 1; i >= 0; i-- {
		value = mapNode(value.home, entry{keys[i], value.home, value})
	}
	return value
}

// leaves lists the dotted paths of all scalars and lists below a node.
func leaves(n *node, prefix string) []string {
	if n == nil {
		return nil
	}
	if n.shape != shapeMap {
		return []string{prefix}
	}
	var out []string
	for _, e := range n.entries {
		path := e.key
		if prefix != "" {
			path = prefix + "." + e.key
		}
		out = append(out, leaves(e.value, path)...)
	}
	return out
}

// numberNode makes a number that the plan itself decides on.
func numberNode(x float64, at position) *node {
	return &node{shape: shapeNumber, at: at, home: at, number: x, text: formatNumber(x)}
}

func textNode(s string, at position) *node {
	return &node{shape: shapeText, at: at, home: at, text: s}
}

func mapNode(at position, entries ...entry) *node {
	return &node{shape: shapeMap, at: at, home: at, entries: entries}
}

// formatNumber writes a number without an exponent, as short as it is exact.
func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// fine reports whether a value is there and without a reported fault.
func (n *node) fine() bool { return n != nil && !n.bad }

// atFault reports whether a value is there and its fault was reported.
func (n *node) atFault() bool { return n != nil && n.bad }

// numberAt is the number at a dotted path, nil when absent or at fault.
func (n *node) numberAt(path string) *float64 {
	if v := n.lookup(path); v.fine() && v.shape == shapeNumber {
		x := v.number
		return &x
	}
	return nil
}

// wholeAt is the whole number at a dotted path, nil when absent or at fault.
func (n *node) wholeAt(path string) *int {
	if x := n.numberAt(path); x != nil {
		i := int(*x)
		return &i
	}
	return nil
}

// into reads a mapping into a struct whose JSON has the keys of the file. What
// is absent or at fault leaves the struct's field as it is. The rules have seen
// to it that the rest fits.
func (n *node) into(f *findings, out any) {
	if n == nil || n.shape != shapeMap {
		return
	}
	raw, err := json.Marshal(n.plain())
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		f.add(n.at, "cannot be read: %v", err)
	}
}

// read is into for a struct that may be absent.
func read[T any](f *findings, n *node) *T {
	if n == nil {
		return nil
	}
	out := new(T)
	n.into(f, out)
	return out
}

// plain is a value without its places, and without what is at fault in it.
func (n *node) plain() any {
	switch n.shape {
	case shapeMap:
		out := map[string]any{}
		for _, e := range n.entries {
			if e.value.fine() {
				out[e.key] = e.value.plain()
			}
		}
		return out
	case shapeList:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.plain()
		}
		return out
	case shapeNumber:
		return n.number
	case shapeBool:
		return n.truth
	case shapeText:
		return n.text
	}
	return nil
}

// textAt is the text at a dotted path, empty when absent or at fault.
func (n *node) textAt(path string) string {
	if v := n.lookup(path); v.fine() && v.shape == shapeText {
		return v.text
	}
	return ""
}

// boolAt is the truth value at a dotted path, nil when absent or at fault.
func (n *node) boolAt(path string) *bool {
	if v := n.lookup(path); v.fine() && v.shape == shapeBool {
		b := v.truth
		return &b
	}
	return nil
}
