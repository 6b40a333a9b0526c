// Package scales judges what a campaign's scales do to its factors.
package scales

import (
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// OnlyLevels keeps of a factor's labelled levels those that the chosen scale names with the key "only". Of levels in a
// list the scale gives its own list. An archived run may name a level twice.
func OnlyLevels(f *tree.Findings, scaled, chosen *tree.Node, label func(*tree.Node) string, archived bool) *tree.Node {
	for _, e := range chosen.Child("factors").EntriesOrNone() {
		labels, path := e.Value.Child("only"), "factors."+e.Key+".levels"
		if labels == nil {
			continue
		}
		scaled = tree.Without(scaled, "factors."+e.Key+".only")
		all := scaled.Lookup(path)
		if labels.Shape != tree.List || all == nil || all.Shape != tree.Map {
			f.Add(labels.At, "factors.%s.only: %s is not allowed; allowed: a list of labels of levels that are a "+
				"mapping", e.Key, labels.Show())
			continue
		}
		few := *all
		few.Entries = nil
		for _, item := range labels.Items {
			name := label(item)
			l := all.Child(name)
			if l == nil {
				f.Add(item.At, "factors.%s.only: there is no level %s; allowed: %s", e.Key, item.Show(),
					strings.Join(all.Keys(), ", "))
				continue
			}
			few.Entries = append(few.Entries, tree.Entry{Key: name, At: item.At, Value: l})
		}
		// not over what is there: levels that are not named go
		scaled = tree.Merge(tree.Without(scaled, path), tree.Nest(path, &few))
	}
	return scaled
}

// KeepRadio refuses a scale that would change the radio of a trial or of some
// level: its results could not stand beside those of the full campaign.
func KeepRadio(f *tree.Findings, scales *tree.Node) {
	for _, e := range scales.EntriesOrNone() {
		for _, path := range tree.Leaves(e.Value, "") {
			if strings.HasPrefix(path, "trial.radio") || strings.HasPrefix(path, "factors.") &&
				strings.Contains(path, ".radio") {
				f.Add(e.At, "scales.%s.%s: a scale may not change the radio; allowed: durations, repetitions, levels, "+
					"movements", e.Key, path)
			}
		}
	}
}
