package plan

import (
	"regexp"
	"slices"
	"strings"
)

// factor is one factor with what each level lays over the trial.
type factor struct {
	name   string
	key    string
	at     position
	levels []level
}

type level struct {
	label    string
	at       position
	override *node // a partial trial
}

// Bounds on a design. They are far above what a person can drive and keep a
// slip of a digit from filling the memory.
const (
	maxFactors = 12
	maxLevels  = 100
	maxCells   = 2000
	maxTrials  = 20000
)

const levelsAllowed = "a mapping from labels to partial trials, or, with a key, a list of values"

func factorRule() object {
	return object{[]field{
		optional("key", text{200}, "The key of a trial that the levels set, dotted; absent: each level is a "+
			"partial trial"),
		required("levels", anything{levelsAllowed}, "The levels: labels with what each sets, or a list of the "+
			"key's values"),
	}}
}

// reservedFactors are labels that calibration passes carry.
var reservedFactors = []string{"calibration", "mark_m"}

// readFactors checks the factors and turns every level into an override.
func (p *parse) readFactors(root *node) {
	n := root.child("factors")
	if n == nil {
		return
	}
	f := &p.findings
	before := len(f.list)
	defer func() { p.unsure = len(f.list) > before }()
	if !wantShape(f, "factors", n, shapeMap, "a mapping from a factor's name to its levels") {
		return
	}
	if len(n.entries) > maxFactors {
		f.add(n.home, "factors: %d factors are not allowed; allowed: at most %d", len(n.entries), maxFactors)
		return
	}
	nameOf := regexp.MustCompile(wordForm)
	for _, e := range n.entries {
		path := join("factors", e.key)
		if !nameOf.MatchString(e.key) || slices.Contains(reservedFactors, e.key) {
			f.add(e.at, "factors: %q cannot name a factor; allowed: %s, other than %s", shorten(e.key), wordWords,
				strings.Join(reservedFactors, ", "))
		}
		factorRule().check(f, path, e.value)
		if e.value.shape != shapeMap {
			continue
		}
		x := factor{name: e.key, at: e.at}
		target := rule(nil)
		if key := e.value.child("key"); key != nil {
			if target = p.keyRule(root, path+".key", key); target == nil {
				continue
			}
			x.key = key.text
		}
		x.levels = p.readLevels(path+".levels", e.value.child("levels"), x.key, target)
		p.factors = append(p.factors, x)
	}
	p.checkOverlap()
}

// keyRule finds the rule of a dotted key of a trial, nil (and reported) when
// there is no such key.
func (p *parse) keyRule(root *node, path string, key *node) rule {
	if !key.fine() || key.shape != shapeText {
		return nil
	}
	var here rule = p.schema.override()
	base := p.base(root)
	walked := ""
	for word := range strings.SplitSeq(key.text, ".") {
		known := []string(nil)
		var next rule
		switch r := here.(type) {
		case object:
			known, next = r.keys(), r.field(word)
		case table:
			// A level may change a flow, and must not invent one by a slip.
			for _, e := range base.lookup(walked).entriesOrNone() {
				known = append(known, e.key)
			}
			if slices.Contains(known, word) {
				next = r.row
			}
		}
		if next == nil {
			p.findings.add(key.at, "%s: %s is not a key of a trial: %s has no %q; %sallowed there: %s",
				path, key.show(), orElse(walked, "a trial"), shorten(word), didYouMean(nearest(word, known)),
				orNone(known))
			key.bad = true
			return nil
		}
		walked, here = joinPlain(walked, word), next
	}
	return here
}

func (n *node) entriesOrNone() []entry {
	if n == nil {
		return nil
	}
	return n.entries
}

func orNone(known []string) string {
	if len(known) == 0 {
		return "nothing"
	}
	return strings.Join(known, ", ")
}

func joinPlain(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// readLevels reads a list of values (labelled by themselves) or a mapping
// from labels to values; without a key the values are partial trials.
func (p *parse) readLevels(path string, n *node, key string, target rule) []level {
	f := &p.findings
	if n == nil || n.bad {
		return nil
	}
	var out []level
	switch {
	case n.shape == shapeList && target != nil:
		out = p.listedLevels(path, n.items, key, target)
	case n.shape == shapeMap:
		out = p.labelledLevels(path, n.entries, key, target)
	default:
		reject(f, path, n, levelsAllowed)
		return nil
	}
	if size := max(len(n.items), len(n.entries)); size == 0 || size > maxLevels {
		f.add(n.home, "%s: a number of levels of %d is not allowed; allowed: 1 to %d", path, size, maxLevels)
	}
	return out
}

func (p *parse) listedLevels(path string, items []*node, key string, target rule) (out []level) {
	f := &p.findings
	seen := map[string]bool{}
	for _, item := range items {
		target.check(f, path, item)
		if item.bad {
			continue
		}
		if item.shape == shapeMap || item.shape == shapeList || seen[label(item)] {
			f.add(item.at, "%s: %s cannot label a level; allowed: distinct single values, or a mapping from labels "+
				"to values", path, item.show())
			continue
		}
		seen[label(item)] = true
		out = append(out, level{label(item), item.at, nest(key, item)})
	}
	return out
}

func (p *parse) labelledLevels(path string, entries []entry, key string, target rule) (out []level) {
	f := &p.findings
	labelOf := regexp.MustCompile(labelForm)
	for _, e := range entries {
		if !labelOf.MatchString(e.key) {
			f.add(e.at, "%s: %q cannot label a level; allowed: %s", path, shorten(e.key), labelWord)
		}
		held := target
		if target == nil {
			held = p.schema.override()
		}
		held.check(f, join(path, e.key), e.value)
		override := e.value
		if target != nil {
			override = nest(key, e.value)
		}
		out = append(out, level{e.key, e.at, override})
	}
	return out
}

// checkOverlap reports a key that two factors set: which of them won would
// hang on their order, and neither's effect could be told.
func (p *parse) checkOverlap() {
	owner := map[string]string{}
	for _, x := range p.factors {
		for _, path := range x.paths() {
			if other, taken := owner[path]; taken {
				p.findings.add(x.at, "factors.%s sets %s, which factor %s sets too; allowed: one factor for a key",
					x.name, path, other)
				continue
			}
			owner[path] = x.name
		}
	}
}

// paths lists the keys that any of the factor's levels sets, each once.
func (x factor) paths() []string {
	var out []string
	for _, l := range x.levels {
		for _, path := range leaves(l.override, "") {
			if !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

// base is the trial without any factor: the section trial with the
// acceptance rules beside it.
func (p *parse) base(root *node) *node {
	trial := root.child("trial")
	if trial == nil || trial.shape != shapeMap {
		return nil
	}
	acceptance := root.child("acceptance")
	if acceptance == nil || acceptance.shape != shapeMap {
		return trial
	}
	rules := without(acceptance, "attempts_max")
	return merge(trial, mapNode(trial.home, entry{"acceptance", acceptance.home, rules}))
}

// publicFactors is the factors as others may know them.
func (p *parse) publicFactors() []Factor {
	var out []Factor
	for _, x := range p.factors {
		f := Factor{Name: x.name, Key: x.key}
		for _, l := range x.levels {
			f.Levels = append(f.Levels, l.label)
		}
		out = append(out, f)
	}
	return out
}
