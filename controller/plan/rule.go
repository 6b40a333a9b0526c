package plan

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/internal/nearest"
)

// A rule says what may stand at a place of the file. The format is a tree of
// rules (schema.go), so that the file itself, a factor's dotted key and a
// level's overrides are all held to the same text.
type rule interface {
	// check reports each fault of n, which stands at path, and marks n bad.
	check(f *tree.Findings, path string, n *tree.Node)
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

func (o object) check(f *tree.Findings, path string, n *tree.Node) {
	if !wantShape(f, path, n, tree.Map, o.allowed()) {
		return
	}
	var meant []string // known keys that unknown ones seem to mean
	for i, e := range n.Entries {
		if r := o.field(e.Key); r != nil {
			r.check(f, join(path, e.Key), e.Value)
			continue
		}
		near := nearest.Word(e.Key, o.keys())
		if now := renamed.Says(path, e.Key); now != "" {
			f.Add(e.At, "%s: key %q %s", section(path), e.Key, now)
			e.Value.Bad = true
			continue
		}
		f.Add(e.At, "%s: unknown key %q; %sallowed: %s", section(path), tree.Shorten(e.Key), didYouMean(near),
			strings.Join(o.keys(), ", "))
		if near != "" && n.Child(near) == nil { // read as what is meant, whose absence would be other faults
			n.Entries[i].Key = near
			o.field(near).check(f, join(path, near), e.Value)
			n.Strange = true
			continue
		}
		meant = append(meant, near)
		n.Strange, e.Value.Bad = true, true
	}
	for _, fl := range o.fields {
		if !fl.required || n.Child(fl.key) != nil {
			continue
		}
		if !slices.Contains(meant, fl.key) {
			f.Add(n.Home, "%s: key %q is missing; allowed: %s", section(path), fl.key, fl.rule.allowed())
		}
		n.Bad = true
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

func (t table) check(f *tree.Findings, path string, n *tree.Node) {
	if !wantShape(f, path, n, tree.Map, t.allowed()) {
		return
	}
	if len(n.Entries) == 0 {
		f.Add(n.Home, "%s is empty; allowed: at least one %s", path, t.what)
		n.Bad = true
	}
	for _, e := range n.Entries {
		if !t.name.MatchString(e.Key) {
			f.Add(e.At, "%s: %q cannot name a %s; allowed: %s", path, tree.Shorten(e.Key), t.what, t.names)
		} else if slices.Contains(t.reserved, e.Key) {
			f.Add(e.At, "%s: %q cannot name a %s because it has a meaning of its own; allowed: any other name than %s",
				path, e.Key, t.what, strings.Join(t.reserved, ", "))
		}
		t.row.check(f, join(path, e.Key), e.Value)
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

func (l list) check(f *tree.Findings, path string, n *tree.Node) {
	if !wantShape(f, path, n, tree.List, l.allowed()) {
		return
	}
	if len(n.Items) < l.least || len(n.Items) > l.most {
		f.Add(n.Home, "%s: a list of %d is not allowed; allowed: %s", path, len(n.Items), l.allowed())
		n.Bad = true
	}
	seen := map[string]bool{}
	for _, item := range n.Items {
		l.item.check(f, path, item)
		n.Bad = n.Bad || item.Bad
		if l.distinct && !item.Bad && seen[label(item)] {
			f.Add(item.At, "%s: %s is given twice; allowed: each value once", path, item.Show())
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

// decimal is a number as YAML would have read it, had it not been in quotes.
var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// measured is a number with a unit.
var measured = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)? ?[A-Za-zµ%/²]+2?$`)

var kmh = regexp.MustCompile(`^([0-9.]+) ?(?:km/?h|kmh|kph)$`)

// converted says how a text is given as a number: without quotes, and a speed in km/h
// in m/s, and any other number without its unit; "" for any other text.
func (r number) converted(text string) string {
	if decimal.MatchString(text) {
		return ", without quotes"
	}
	found := kmh.FindStringSubmatch(text)
	if found == nil || !strings.HasPrefix(r.unit, "m/s") {
		if !measured.MatchString(text) {
			return ""
		} else if r.unit == "" {
			return "; it has no unit, and 20 % are 0.2"
		}
		return fmt.Sprintf("; write it in %s, without the unit", r.unit)
	}
	x, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (%s km/h is %.2f)", found[1], x/3.6)
}

func (r number) check(f *tree.Findings, path string, n *tree.Node) {
	if !wantShape(f, path, n, tree.Number, r.allowed()+r.converted(n.Text)) {
		return
	}
	x := n.Number
	if x < r.least || x > r.most || (r.above && x == r.least) || (r.whole && x != math.Trunc(x)) {
		reject(f, path, n, r.allowed())
	}
}

// choice is one of some words.
type choice []string

// newer802 are standards that nobody means by a slip of the finger.
var newer802 = regexp.MustCompile(`^802\.11(ax|be)$`)

func (c choice) allowed() string { return strings.Join(c, ", ") }

// renamed are the keys and words of campaigns that had another name, or were removed. A file with a former name is
// refused; the campaign of a run that was begun with it is still read.
var renamed = tree.Renamed{"design": {"enough": "stop_when"}, "protocol": {"dsr-p3": "dsr-ns2"},
	"rate_control": {"snr": "genie_snr"}, "radio": {"legacy_rates_only": ""}}

func (c choice) check(f *tree.Findings, path string, n *tree.Node) {
	allowed := c.allowed()
	if !wantShape(f, path, n, tree.Text, allowed) {
		return
	}
	if slices.Contains(c, n.Text) {
		return
	}
	for _, names := range renamed {
		if now := names[n.Text]; slices.Contains(c, now) {
			f.Add(n.At, "%s: %q is called %q now", path, n.Text, now)
			n.Bad = true
			return
		}
	}
	if newer802.MatchString(n.Text) {
		allowed += " (802.11ax and later are not supported: neither the agent nor the emulated radio has their rates)"
	} else if near := nearest.Word(n.Text, c); near != "" {
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

func (c numberChoice) check(f *tree.Findings, path string, n *tree.Node) {
	if wantShape(f, path, n, tree.Number, c.allowed()) && !slices.Contains(c.values, n.Number) {
		reject(f, path, n, c.allowed())
	}
}

// boolean is true or false.
type boolean struct{}

func (boolean) allowed() string { return "true or false" }

func (b boolean) check(f *tree.Findings, path string, n *tree.Node) {
	wantShape(f, path, n, tree.Bool, b.allowed())
}

// text is free text of a bounded length in bytes.
type text struct{ most int }

func (r text) allowed() string { return fmt.Sprintf("text of 1 to %d bytes", r.most) }

func (r text) check(f *tree.Findings, path string, n *tree.Node) {
	allowed := r.allowed()
	if n.Shape == tree.Number || n.Shape == tree.Bool {
		allowed += ", in quotes where it looks like a number or a truth value"
	}
	if wantShape(f, path, n, tree.Text, allowed) && (len(n.Text) == 0 || len(n.Text) > r.most) {
		reject(f, path, n, allowed)
	}
}

// pattern is text of a certain form.
type pattern struct {
	form  *regexp.Regexp
	words string // the same in words
}

func (r pattern) allowed() string { return r.words }

func (r pattern) check(f *tree.Findings, path string, n *tree.Node) {
	if wantShape(f, path, n, tree.Text, r.words) && !r.form.MatchString(n.Text) {
		reject(f, path, n, r.words)
	}
}

// reference is the name of something that the file defines elsewhere.
type reference struct {
	what    string   // node, unit …
	defined []string // nil: the definitions are themselves at fault, so nothing is said
}

func (r reference) allowed() string { return orNone(r.defined) }

func (r reference) check(f *tree.Findings, path string, n *tree.Node) {
	allowed := r.allowed()
	if !wantShape(f, path, n, tree.Text, "the name of a "+r.what) || r.defined == nil ||
		slices.Contains(r.defined, n.Text) {
		return
	}
	if near := nearest.Word(n.Text, r.defined); near != "" {
		allowed = fmt.Sprintf("%s (did you mean %q?)", allowed, near)
	}
	f.Add(n.At, "%s: %s is not a defined %s; allowed: %s", path, n.Show(), r.what, allowed)
	n.Bad = true
}

// checked is a rule with a further test.
type checked struct {
	rule
	words string // what is allowed, the rule included
	test  func(n *tree.Node) bool
	form  map[string]any // the test as JSON Schema, as far as that can put it
}

func (r checked) allowed() string { return r.words }

func (r checked) check(f *tree.Findings, path string, n *tree.Node) {
	r.rule.check(f, path, n)
	if !n.Bad && !r.test(n) {
		reject(f, path, n, r.words)
	}
}

func wantShape(f *tree.Findings, path string, n *tree.Node, want tree.Shape, allowed string) bool {
	if n.Bad {
		return false
	}
	if n.Shape == want {
		return true
	}
	reject(f, path, n, allowed)
	return false
}

func reject(f *tree.Findings, path string, n *tree.Node, allowed string) {
	got := n.Show()
	if n.Shape == tree.Null {
		f.Add(n.Home, "%s has no value; allowed: %s", section(path), allowed)
	} else {
		f.Add(n.At, "%s: %s is not allowed; allowed: %s", section(path), got, allowed)
	}
	n.Bad = true
}

func join(path, key string) string {
	if path == "" {
		return tree.Shorten(key)
	}
	return path + "." + tree.Shorten(key)
}

// section names a path in a message; the file's outermost mapping has none.
func section(path string) string {
	if path == "" {
		return "the campaign"
	}
	return path
}

// label is a scalar as a table's row or column would be headed.
func label(n *tree.Node) string {
	if n.Shape == tree.Number {
		return formatNumber(n.Number)
	}
	return n.Text
}

// formatNumber writes a number without an exponent, as short as it is exact.
func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func joinNumbers(xs []float64) string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = formatNumber(x)
	}
	return strings.Join(out, ", ")
}
