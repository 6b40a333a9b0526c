package plan

import (
	"regexp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// FullScale is the campaign as the file has it, without any reduction.
const FullScale = "full"

// Scale is a declared reduction of a campaign that takes longer than there is
// time for: shorter windows, fewer repetitions or levels, never another radio.
type Scale struct {
	Name string `json:"name"`
	Why  string `json:"why"` // what the reduction may change, in the file's words
}

// scaleRule is what a reduction may say. What the radio, the road's model and
// the rules of acceptance are has no key here on purpose: a short campaign asks
// the same question.
func (s schema) scaleRule() object {
	return object{[]field{
		required("why", text{2000}, "What the reduction may change"),
		optional("trial", anything{"a mapping with keys of a trial, but for radio"},
			"Keys of the section trial that this scale sets; null leaves one out"),
		optional("factors", anything{"a mapping from a factor's name to its levels"},
			"Factors whose levels this scale replaces or leaves out"),
		optional("design", anything{"a mapping with keys of design"}, "Keys of the section design that this "+
			"scale sets"),
		optional("field", object{[]field{
			optional("mobility", s.mobilityPart(), "Keys of field.mobility that this scale sets"),
		}}, "What a rehearsal assumes in this scale"),
	}}
}

// mobilityPart is mobility without the model, which stays.
func (s schema) mobilityPart() object {
	o := s.mobility()
	o.fields = slices.DeleteFunc(slices.Clone(o.fields), func(f field) bool { return f.key == "model" })
	return o
}

func (s schema) scales() table {
	return table{what: "scale", name: regexp.MustCompile(wordForm), names: wordWords, reserved: []string{FullScale},
		row: s.scaleRule()}
}

// scaled lays the named scale over the file. The full scale is the file itself;
// in either the section "scales" has done its work and is taken away.
func (p *parse) scaled(root *tree.Node, name string) *tree.Node {
	scales := root.Child("scales")
	if scales != nil {
		p.schema.scales().check(&p.findings, "scales", scales)
		p.keepRadio(scales)
		p.scales = scales.Keys()
	}
	rest := tree.Without(root, "scales")
	if name == "" || name == FullScale {
		return rest
	}
	chosen := scales.Child(name)
	if chosen == nil {
		known := append([]string{FullScale}, scales.Keys()...)
		p.findings.Add(root.At, "the campaign: it has no scale %q; allowed: %s", name, strings.Join(known, ", "))
		return rest
	}
	p.scale = &Scale{Name: name, Why: chosen.TextAt("why")}
	return p.onlyLevels(tree.Merge(rest, tree.Without(chosen, "why")), chosen)
}

// onlyLevels keeps of a factor's labelled levels those that the scale names with
// the key "only". (Of levels in a list the scale gives its own list.)
func (p *parse) onlyLevels(scaled, chosen *tree.Node) *tree.Node {
	for _, e := range chosen.Child("factors").EntriesOrNone() {
		labels, path := e.Value.Child("only"), "factors."+e.Key+".levels"
		if labels == nil {
			continue
		}
		scaled = tree.Without(scaled, "factors."+e.Key+".only")
		all := scaled.Lookup(path)
		if labels.Shape != tree.List || all == nil || all.Shape != tree.Map {
			p.findings.Add(labels.At, "factors.%s.only: %s is not allowed; allowed: a list of labels of levels that "+
				"are a mapping", e.Key, labels.Show())
			continue
		}
		few := *all
		few.Entries = nil
		for _, item := range labels.Items {
			l := all.Child(label(item))
			if l == nil {
				p.findings.Add(item.At, "factors.%s.only: there is no level %s; allowed: %s", e.Key, item.Show(),
					strings.Join(all.Keys(), ", "))
				continue
			}
			few.Entries = append(few.Entries, tree.Entry{Key: label(item), At: item.At, Value: l})
		}
		// not over what is there: levels that are not named go
		scaled = tree.Merge(tree.Without(scaled, path), tree.Nest(path, &few))
	}
	return scaled
}

// keepRadio refuses a scale that would change the radio of a trial or of some
// level: its results could not stand beside those of the full campaign.
func (p *parse) keepRadio(scales *tree.Node) {
	for _, e := range scales.EntriesOrNone() {
		for _, path := range tree.Leaves(e.Value, "") {
			if strings.HasPrefix(path, "trial.radio") || strings.HasPrefix(path, "factors.") &&
				strings.Contains(path, ".radio") {
				p.findings.Add(e.At, "scales.%s.%s: a scale may not change the radio; allowed: durations, "+
					"repetitions, levels, movements", e.Key, path)
			}
		}
	}
}
