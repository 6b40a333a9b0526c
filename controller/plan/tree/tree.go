// Package tree reads a campaign file into a tree of values that know their places
// in the file, and collects what is at fault in it. What may stand in a file, and
// what it means, is for package plan to say.
package tree

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Shape is what a node of the file is.
type Shape int

// The shapes.
const (
	Null Shape = iota
	Text
	Number
	Bool
	List
	Map
)

func (s Shape) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a list", "a mapping"}[s]
}

// Node is one value of the file with its place. The tree is our own, and not
// the parser's, so that overrides can be merged into it and still tell where
// each value came from.
type Node struct {
	Shape   Shape
	At      Position // of the value
	Home    Position // of the key that holds it; of the value itself in a list
	Text    string   // a scalar as it stands in the file
	Number  float64
	Truth   bool
	Entries []Entry
	Items   []*Node
	Bad     bool // a fault of it was reported already; later checks pass it over
	Strange bool // a mapping with an unknown key: what it seems to lack may be there, misspelt
}

// Entry is one key of a mapping.
type Entry struct {
	Key   string
	At    Position
	Value *Node
}

// Child finds a key of a mapping, nil when it is absent.
func (n *Node) Child(key string) *Node {
	for _, e := range n.EntriesOrNone() {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// Lookup finds a dotted path below a mapping, nil when it is absent.
func (n *Node) Lookup(path string) *Node {
	for key := range strings.SplitSeq(path, ".") {
		if n = n.Child(key); n == nil {
			return nil
		}
	}
	return n
}

// Show is the value for a message: scalars as written, the rest by its shape.
func (n *Node) Show() string {
	switch n.Shape {
	case Text:
		return strconv.Quote(Shorten(n.Text))
	case Number, Bool:
		return Shorten(n.Text)
	}
	return n.Shape.String()
}

// Shorten cuts what is too long for a message.
func Shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// Merge lays override over base and leaves both as they were: mappings are
// joined key by key, anything else is replaced, and null takes a key of the base
// away (RFC 7396). Places come along, so that a fault of the result points at the
// line that caused it.
func Merge(base, override *Node) *Node {
	if base == nil || override == nil || base.Shape != Map || override.Shape != Map {
		if override != nil {
			return override
		}
		return base
	}
	out := *base
	out.Bad = base.Bad || override.Bad
	out.Strange = base.Strange || override.Strange
	out.Entries = append([]Entry(nil), base.Entries...)
	for _, e := range override.Entries {
		found := false
		for i := range out.Entries {
			if out.Entries[i].Key == e.Key {
				out.Entries[i] = Entry{e.Key, e.At, Merge(out.Entries[i].Value, e.Value)}
				found = true
			}
		}
		switch {
		case !found:
			out.Entries = append(out.Entries, e)
		case e.Value.Shape == Null:
			out.Entries = slices.DeleteFunc(out.Entries, func(x Entry) bool { return x.Key == e.Key })
		}
	}
	return &out
}

// Without drops dotted paths from a tree and leaves the tree as it was.
func Without(n *Node, paths ...string) *Node {
	for _, path := range paths {
		key, rest, deeper := strings.Cut(path, ".")
		out := *n
		out.Entries = nil
		for _, e := range n.Entries {
			switch {
			case e.Key != key:
			case deeper:
				e.Value = Without(e.Value, rest)
			default:
				continue
			}
			out.Entries = append(out.Entries, e)
		}
		n = &out
	}
	return n
}

// Nest wraps a value into mappings so that it stands at a dotted path; every
// wrapper has the value's own place.
func Nest(path string, value *Node) *Node {
	keys := strings.Split(path, ".")
	for i := len(keys) - 1; i >= 0; i-- {
		value = &Node{Shape: Map, At: value.Home, Home: value.Home, Entries: []Entry{{keys[i], value.Home, value}}}
	}
	return value
}

// Leaves lists the dotted paths of all scalars and lists below a node.
func Leaves(n *Node, prefix string) []string {
	if n == nil {
		return nil
	}
	if n.Shape != Map {
		return []string{prefix}
	}
	var out []string
	for _, e := range n.Entries {
		path := e.Key
		if prefix != "" {
			path = prefix + "." + e.Key
		}
		out = append(out, Leaves(e.Value, path)...)
	}
	return out
}

// NewNumber makes a number that the plan itself decides on.
func NewNumber(x float64, at Position) *Node {
	return &Node{Shape: Number, At: at, Home: at, Number: x, Text: strconv.FormatFloat(x, 'f', -1, 64)}
}

// NewText makes a text that the plan itself decides on.
func NewText(s string, at Position) *Node { return &Node{Shape: Text, At: at, Home: at, Text: s} }

// Fine reports whether a value is there and without a reported fault.
func (n *Node) Fine() bool { return n != nil && !n.Bad }

// AtFault reports whether a value is there and its fault was reported.
func (n *Node) AtFault() bool { return n != nil && n.Bad }

// NumberAt is the number at a dotted path, nil when absent or at fault.
func (n *Node) NumberAt(path string) *float64 {
	if v := n.Lookup(path); v.Fine() && v.Shape == Number {
		return new(v.Number)
	}
	return nil
}

// NumberOrZero is the number at a dotted path, 0 when absent or at fault.
func (n *Node) NumberOrZero(path string) float64 {
	if x := n.NumberAt(path); x != nil {
		return *x
	}
	return 0
}

// WholeAt is the whole number at a dotted path, nil when absent or at fault.
func (n *Node) WholeAt(path string) *int {
	if x := n.NumberAt(path); x != nil {
		return new(int(*x))
	}
	return nil
}

// Into reads a mapping into a struct whose JSON has the keys of the file. What
// is absent or at fault leaves the struct's field as it is. The rules have seen
// to it that the rest fits.
func (n *Node) Into(f *Findings, out any) {
	if n == nil || n.Shape != Map {
		return
	}
	raw, err := json.Marshal(n.Plain())
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		f.Add(n.At, "cannot be read: %v", err)
	}
}

// As is Into for a struct that may be absent.
func As[T any](f *Findings, n *Node) *T {
	if n == nil {
		return nil
	}
	out := new(T)
	n.Into(f, out)
	return out
}

// Plain is a value without its places, and without what is at fault in it.
func (n *Node) Plain() any {
	switch n.Shape {
	case Map:
		out := map[string]any{}
		for _, e := range n.Entries {
			if e.Value.Fine() {
				out[e.Key] = e.Value.Plain()
			}
		}
		return out
	case List:
		out := make([]any, len(n.Items))
		for i, item := range n.Items {
			out[i] = item.Plain()
		}
		return out
	case Number:
		return n.Number
	case Bool:
		return n.Truth
	case Text:
		return n.Text
	}
	return nil
}

// TextAt is the text at a dotted path, empty when absent or at fault.
func (n *Node) TextAt(path string) string {
	if v := n.Lookup(path); v.Fine() && v.Shape == Text {
		return v.Text
	}
	return ""
}

// BoolAt is the truth value at a dotted path, nil when absent or at fault.
func (n *Node) BoolAt(path string) *bool {
	if v := n.Lookup(path); v.Fine() && v.Shape == Bool {
		return new(v.Truth)
	}
	return nil
}

// EntriesOrNone are a mapping's keys, if it is there.
func (n *Node) EntriesOrNone() []Entry {
	if n == nil {
		return nil
	}
	return n.Entries
}

// Keys are those of a mapping, if it is there.
func (n *Node) Keys() []string {
	var out []string
	for _, e := range n.EntriesOrNone() {
		out = append(out, e.Key)
	}
	return out
}

// ItemsOrNone are a list's items, if it is there.
func (n *Node) ItemsOrNone() []*Node {
	if n == nil {
		return nil
	}
	return n.Items
}
