package plan

import (
	"regexp"
	"slices"
	"strings"

	scalesof "fieldmesh.dev/fieldmesh/controller/plan/scales"
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
		scalesof.KeepRadio(&p.findings, root, label, p.archived)
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
	scaled := tree.Merge(rest, tree.Without(chosen, "why"))
	return scalesof.OnlyLevels(&p.findings, scaled, chosen, label, p.archived)
}
