package plan

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// A rule says what may stand at a place of the file. The format is a tree of
// rules (schema.go), so that the file itself, a factor's dotted key and a
// level's overrides are all held to the same text.
type rule interface {
	// check reports each fault of n, which stands at path, and marks n bad.
	check(f *findings, path string, n *node)
	// allowed says in words what may stand here.
	allowed() string
}

// object is a mapping with known keys.
type object struct{ fields []field }

// field declares a key. Only its rule has effect when a file is read; what it
// means and what stands for it when it is absent go into the JSON Schema.
type field struct {
	key      string
	rule     rule
	meaning  string
	required bool // in every file; keys of a trial are required per cell instead, since levels may bring them
	standard any  // what holds when the key is absent; nil: nothing, or what the meaning says
}

func required(key string, r rule, meaning string) field {
	return field{key: key, rule: r, meaning: meaning, required: true}
}

func optional(key string, r rule, meaning string) field {
	return field{key: key, rule: r, meaning: meaning}
}

func (f field) or(standard any) field {
	f.standard = standard
	return f
}

func (o object) keys() []string {
	out := make([]string, len(o.fields))
	for i, f := range o.fields {
		out[i] = f.key
	}
	return out
}

func (o object) field(key string) rule {
	for _, f := range o.fields {
		if f.key == key {
			return f.rule
		}
	}
	return nil
}

func (o object) allowed() string { return "a mapping with the keys " + strings.Join(o.keys(), ", ") }

func (o object) check(f *findings, path string, n *node) {
	if !wantShape(f, path, n, shapeMap, o.allowed()) {
		return
	}
	var meant []string // known keys that unknown ones seem to mean
	for _, e := range n.entries {
		if r := o.field(e.key); r != nil {
			r.check(f, join(path, e.key), e.value)
			continue
		}
		near := nearest(e.key, o.keys())
		if now := presentName(path, e.key); now != "" {
			f.add(e.at, "%s: key %q is called %q now", section(path), e.key, now)
			e.value.bad = true
			continue
		}
		f.add(e.at, "%s: unknown key %q; %sallowed: %s", section(path), shorten(e.key), didYouMean(near),
			strings.Join(o.keys(), ", "))
		meant = append(meant, near)
		n.strange, e.value.bad = true, true
	}
	for _, fl := range o.fields {
		if !fl.required || n.child(fl.key) != nil {
			continue
		}
		if !slices.Contains(meant, fl.key) {
			f.add(n.home, "%s: key %q is missing; allowed: %s", section(path), fl.key, fl.rule.allowed())
		}
		n.bad = true
	}
}

func didYouMean(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q? ", near)
}

// table is a mapping whose keys are names that the file chooses.
type table struct {
	what     string         // what a key names, for messages
	name     *regexp.Regexp // what a key may be
	names    string         // the same in words
	reserved []string       // keys that mean something else
	row      rule
}

func (t table) allowed() string {
	return fmt.Sprintf("a mapping from the name of a %s to: %s", t.what, t.row.allowed())
}

func (t table) check(f *findings, path string, n *node) {
	if !wantShape(f, path, n, shapeMap, t.allowed()) {
		return
	}
	if len(n.entries) == 0 {
		f.add(n.home, "%s is empty; allowed: at least one %s", path, t.what)
		n.bad = true
	}
	for _, e := range n.entries {
		if !t.name.MatchString(e.key) {
			f.add(e.at, "%s: %q cannot name a %s; allowed: %s", path, shorten(e.key), t.what, t.names)
		} else if slices.Contains(t.reserved, e.key) {
			f.add(e.at, "%s: %q cannot name a %s because it has a meaning of its own; allowed: any other name than %s",
				path, e.key, t.what, strings.Join(t.reserved, ", "))
		}
		t.row.check(f, join(path, e.key), e.value)
	}
}

// list is a list of like values.
type list struct {
	least, most int
	item        rule
	distinct    bool
}

func (l list) allowed() string {
	return fmt.Sprintf("a list of %d to %d values, each %s", l.least, l.most, l.item.allowed())
}

func (l list) check(f *findings, path string, n *node) {
	if !wantShape(f, path, n, shapeList, l.allowed()) {
		return
	}
	if len(n.items) < l.least || len(n.items) > l.most {
		f.add(n.home, "%s: a list of %d is not allowed; allowed: %s", path, len(n.items), l.allowed())
		n.bad = true
	}
	seen := map[string]bool{}
	for _, item := range n.items {
		l.item.check(f, path, item)
		n.bad = n.bad || item.bad
		if l.distinct && !item.bad && seen[label(item)] {
			f.add(item.at, "%s: %s is given twice; allowed: each value once", path, item.show())
		}
		seen[label(item)] = true
	}
}

// number is a range of numbers.
type number struct {
	least, most float64
	above       bool // least itself is not allowed
	whole       bool
	unit        string
}

func (r number) allowed() string {
	kind := "a number"
	if r.whole {
		kind = "a whole number"
	}
	from := fmt.Sprintf("from %s", formatNumber(r.least))
	if r.above {
		from = fmt.Sprintf("above %s", formatNumber(r.least))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s up to %s %s", kind, from, formatNumber(r.most), r.unit))
}

func (r number) check(f *findings, path string, n *node) {
	if !wantShape(f, path, n, shapeNumber, r.allowed()) {
		return
	}
	x := n.number
	if x < r.least || x > r.most || (r.above && x == r.least) || (r.whole && x != math.Trunc(x)) {
		reject(f, path, n, r.allowed())
	}
}

// choice is one of some words.
type choice []string

func (c choice) allowed() string { return strings.Join(c, ", ") }

func (c choice) check(f *findings, path string, n *node) {
	allowed := c.allowed()
	if !wantShape(f, path, n, shapeText, allowed) {
		return
	}
	if slices.Contains(c, n.text) {
		return
	}
	if near := nearest(n.text, c); near != "" {
		allowed = fmt.Sprintf("%s (did you mean %q?)", allowed, near)
	}
	reject(f, path, n, allowed)
}

// numberChoice is one of some numbers.
type numberChoice struct {
	values []float64
	unit   string
}

func (c numberChoice) allowed() string {
	return strings.TrimSpace(joinNumbers(c.values) + " " + c.unit)
}

func (c numberChoice) check(f *findings, path string, n *node) {
	if wantShape(f, path, n, shapeNumber, c.allowed()) && !slices.Contains(c.values, n.number) {
		reject(f, path, n, c.allowed())
	}
}

// boolean is true or false.
type boolean struct{}

func (boolean) allowed() string { return "true or false" }

func (b boolean) check(f *findings, path string, n *node) {
	wantShape(f, path, n, shapeBool, b.allowed())
}

// text is free text of a bounded length in bytes.
type text struct{ most int }

func (r text) allowed() string { return fmt.Sprintf("text of 1 to %d bytes", r.most) }

func (r text) check(f *findings, path string, n *node) {
	allowed := r.allowed()
	if n.shape == shapeNumber || n.shape == shapeBool {
		allowed += ", in quotes where it looks like a number or a truth value"
	}
	if wantShape(f, path, n, shapeText, allowed) && (len(n.text) == 0 || len(n.text) > r.most) {
		reject(f, path, n, allowed)
	}
}

// pattern is text of a certain form.
type pattern struct {
	form  *regexp.Regexp
	words string // the same in words
}

func (r pattern) allowed() string { return r.words }

func (r pattern) check(f *findings, path string, n *node) {
	if wantShape(f, path, n, shapeText, r.words) && !r.form.MatchString(n.text) {
		reject(f, path, n, r.words)
	}
}

// reference is the name of something that the file defines elsewhere.
type reference struct {
	what    string   // node, unit …
	defined []string // nil: the definitions are themselves at fault, so nothing is said
}

func (r reference) allowed() string { return orNone(r.defined) }

func (r reference) check(f *findings, path string, n *node) {
	allowed := r.allowed()
	if !wantShape(f, path, n, shapeText, "the name of a "+r.what) || r.defined == nil ||
		slices.Contains(r.defined, n.text) {
		return
	}
	if near := nearest(n.text, r.defined); near != "" {
		allowed = fmt.Sprintf("%s (did you mean %q?)", allowed, near)
	}
	f.add(n.at, "%s: %s is not a defined %s; allowed: %s", path, n.show(), r.what, allowed)
	n.bad = true
}

// checked is a rule with a further test.
type checked struct {
	rule
	words string // what is allowed, the rule included
	test  func(n *node) bool
	form  map[string]any // the test as JSON Schema, as far as that can put it
}

func (r checked) allowed() string { return r.words }

func (r checked) check(f *findings, path string, n *node) {
	r.rule.check(f, path, n)
	if !n.bad && !r.test(n) {
		reject(f, path, n, r.words)
	}
}

func wantShape(f *findings, path string, n *node, want shape, allowed string) bool {
	if n.bad {
		return false
	}
	if n.shape == want {
		return true
	}
	reject(f, path, n, allowed)
	return false
}

func reject(f *findings, path string, n *node, allowed string) {
	got := n.show()
	if n.shape == shapeNull {
		f.add(n.home, "%s has no value; allowed: %s", section(path), allowed)
	} else {
		f.add(n.at, "%s: %s is not allowed; allowed: %s", section(path), got, allowed)
	}
	n.bad = true
}

func join(path, key string) string {
	if path == "" {
		return shorten(key)
	}
	return path + "." + shorten(key)
}

// section names a path in a message; the file's outermost mapping has none.
func section(path string) string {
	if path == "" {
		return "the campaign"
	}
	return path
}

// label is a scalar as a table's row or column would be headed.
func label(n *node) string {
	if n.shape == shapeNumber {
		return formatNumber(n.number)
	}
	return n.text
}

func joinNumbers(xs []float64) string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = formatNumber(x)
	}
	return strings.Join(out, ", ")
}
