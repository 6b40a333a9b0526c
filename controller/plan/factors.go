package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	model "fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/internal/nearest"
)

// factor is one factor with what each level lays over the trial.
type factor struct {
	name   string
	key    string
	at     tree.Position
	levels []level
}

type level struct {
	label    string
	at       tree.Position
	override *tree.Node // a partial trial
}

// Bounds on a design. They are far above what a person can drive and keep a
// slip of a digit from filling the memory.
const (
	maxFactors = 12
	maxLevels  = 100
	maxCells   = 2000
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

// reservedFactors are labels that calibration passes carry, and terms of the model that no factor is.
var reservedFactors = []string{"calibration", "mark_m", model.Block, model.Mean}

// properties are by the names of factors that the model takes for a property of the trial: its words, and its key.
var properties = map[string][2]string{"speed": {"the speed of the car", "speed_mps"},
	"speed_mps": {"the speed of the car", "speed_mps"}, "direction": {"the direction of travel", "direction"}}

// readFactors checks the factors and turns every level into an override.
func (p *parse) readFactors(root *tree.Node) {
	n := root.Child("factors")
	if n == nil {
		return
	}
	f := &p.findings
	before := f.Len()
	defer func() { p.unsure = f.Len() > before }()
	if !wantShape(f, "factors", n, tree.Map, "a mapping from a factor's name to its levels") {
		return
	}
	if len(n.Entries) > maxFactors {
		f.Add(n.Home, "factors: %d factors are not allowed; allowed: at most %d", len(n.Entries), maxFactors)
		return
	}
	nameOf, reserved := regexp.MustCompile(wordForm), reservedFactors
	if p.archived {
		reserved = reserved[:2]
	}
	for _, e := range n.Entries {
		path := join("factors", e.Key)
		if !nameOf.MatchString(e.Key) || slices.Contains(reserved, e.Key) {
			f.Add(e.At, "factors: %q cannot name a factor; allowed: %s, other than %s", tree.Shorten(e.Key), wordWords,
				strings.Join(reserved, ", "))
		}
		factorRule().check(f, path, e.Value)
		if e.Value.Shape != tree.Map {
			continue
		}
		x := factor{name: e.Key, at: e.At}
		target := rule(nil)
		if key := e.Value.Child("key"); key != nil {
			if target = p.keyRule(root, path+".key", key); target == nil {
				continue
			}
			x.key = key.Text
		}
		x.levels = p.readLevels(path+".levels", e.Value.Child("levels"), x.key, target)
		if own, taken := properties[x.name]; taken && !p.archived && len(x.levels) > 0 && !x.sets(own[1]) {
			f.Add(e.At, "%s: the model takes a factor of this name for %s, and not each of its levels sets %s; give "+
				"it another name", path, own[0], own[1])
		}
		p.factors = append(p.factors, x)
	}
	p.checkOverlap()
}

// keyRule finds the rule of a dotted key of a trial, nil (and reported) when
// there is no such key.
func (p *parse) keyRule(root *tree.Node, path string, key *tree.Node) rule {
	if !key.Fine() || key.Shape != tree.Text {
		return nil
	}
	var here rule = p.schema.override()
	base := p.base(root)
	walked := ""
	for word := range strings.SplitSeq(key.Text, ".") {
		var known []string
		var next rule
		switch r := here.(type) {
		case object:
			known, next = r.keys(), r.field(word)
			if next == nil && p.archived && renamed.Gone(walked, word) {
				next = anything{}
			}
		case table:
			// A level may change a flow, and must not invent one by a slip.
			known = base.Lookup(walked).Keys()
			if slices.Contains(known, word) {
				next = r.row
			}
		}
		if next == nil {
			p.findings.Add(key.At, "%s: %s is not a key of a trial: %s has no %q; %sallowed there: %s",
				path, key.Show(), cmp.Or(walked, "a trial"), tree.Shorten(word), didYouMean(nearest.Word(word, known)),
				orNone(known))
			key.Bad = true
			return nil
		}
		walked, here = joinPlain(walked, word), next
	}
	return here
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
func (p *parse) readLevels(path string, n *tree.Node, key string, target rule) []level {
	f := &p.findings
	if n == nil || n.Bad {
		return nil
	}
	var out []level
	switch {
	case n.Shape == tree.List && target != nil:
		out = p.listedLevels(path, n.Items, key, target)
	case n.Shape == tree.Map:
		out = p.labelledLevels(path, n.Entries, key, target)
	default:
		reject(f, path, n, levelsAllowed)
		return nil
	}
	if size := max(len(n.Items), len(n.Entries)); size == 0 || size > maxLevels {
		f.Add(n.Home, "%s: %d levels are not allowed; allowed: 1 to %d", path, size, maxLevels)
	}
	return out
}

func (p *parse) listedLevels(path string, items []*tree.Node, key string, target rule) (out []level) {
	f := &p.findings
	seen := map[string]bool{}
	for _, item := range items {
		target.check(f, path, item)
		if item.Bad {
			continue
		}
		same := label(item)
		if item.Shape == tree.Bool && !p.archived { // on is true
			same = strconv.FormatBool(item.Truth)
		}
		if seen[same] {
			f.Add(item.At, "%s: %s is given twice; allowed: each level once", path, item.Show())
			continue
		}
		if item.Shape == tree.Map || item.Shape == tree.List {
			f.Add(item.At, "%s: %s cannot label a level; allowed: distinct single values, or a mapping from labels "+
				"to values", path, item.Show())
			continue
		}
		seen[same] = true
		out = append(out, level{label(item), item.At, tree.Nest(key, item)})
	}
	return out
}

func (p *parse) labelledLevels(path string, entries []tree.Entry, key string, target rule) (out []level) {
	f := &p.findings
	labelOf := regexp.MustCompile(labelForm)
	for _, e := range entries {
		if !labelOf.MatchString(e.Key) {
			f.Add(e.At, "%s: %q cannot label a level; allowed: %s", path, tree.Shorten(e.Key), labelWord)
		}
		held, override := target, e.Value
		if target == nil {
			held = p.schema.override()
		} else {
			override = tree.Nest(key, e.Value)
		}
		held.check(f, join(path, e.Key), e.Value)
		out = append(out, level{e.Key, e.At, override})
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
				p.findings.Add(x.at, "factors.%s sets %s, which factor %s sets too; allowed: one factor for a key",
					x.name, path, other)
				continue
			}
			owner[path] = x.name
		}
	}
}

// sets reports whether each level sets a key.
func (x factor) sets(key string) bool {
	return !slices.ContainsFunc(x.levels, func(l level) bool {
		return !slices.Contains(tree.Leaves(l.override, ""), key)
	})
}

// paths lists the keys that any of the factor's levels sets, each once.
func (x factor) paths() []string {
	var out []string
	for _, l := range x.levels {
		for _, path := range tree.Leaves(l.override, "") {
			if !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

// base is the trial without any factor: the section trial with the
// acceptance rules beside it.
func (p *parse) base(root *tree.Node) *tree.Node {
	trial := root.Child("trial")
	if trial == nil || trial.Shape != tree.Map {
		return nil
	}
	acceptance := root.Child("acceptance")
	if acceptance == nil || acceptance.Shape != tree.Map {
		return trial
	}
	rules := tree.Without(acceptance, "attempts_max")
	return tree.Merge(trial, tree.Nest("acceptance", rules))
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
