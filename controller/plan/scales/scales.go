// Package scales judges what a campaign's scales do to its factors.
package scales

import (
	"slices"
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
			if all.Child(name) == nil { // 20.0, as the file has it
				name = item.Text
			}
			l := all.Child(name)
			if l != nil && few.Child(name) != nil && !archived {
				f.Add(item.At, "factors.%s.only: %s is given twice; allowed: each level once", e.Key, item.Show())
				continue
			}
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
// level: its results could not stand beside those of the full campaign. It may
// leave levels of a factor out that sets a key of the radio.
func KeepRadio(f *tree.Findings, root *tree.Node, label func(*tree.Node) string, archived bool) {
	for _, e := range root.Child("scales").EntriesOrNone() {
		refuse := func(path string) {
			f.Add(e.At, "scales.%s.%s: a scale may not change the radio; allowed: durations, repetitions, levels, "+
				"movements", e.Key, path)
		}
		for _, path := range tree.Leaves(e.Value, "") {
			keys := strings.Split(path, ".")
			if strings.HasPrefix(path, "trial.radio") || len(keys) > 4 && keys[0] == "factors" && keys[2] == "levels" &&
				slices.Contains(keys[3:], "radio") {
				refuse(path)
			}
		}
		if archived {
			continue
		}
		for _, x := range e.Value.Child("factors").EntriesOrNone() {
			full, path := root.Lookup("factors."+x.Key), "factors."+x.Key
			if ofRadio(x.Value.TextAt("key")) && x.Value.TextAt("key") != full.TextAt("key") {
				refuse(path + ".key")
			} else if ofRadio(full.TextAt("key")) {
				if level := foreign(full.Child("levels"), x.Value.Child("levels"), label); level != "" {
					refuse(path + ".levels, " + level)
				}
			}
		}
	}
}

// ofRadio reports whether a key of a trial is one of the radio's.
func ofRadio(key string) bool { return key == "radio" || strings.HasPrefix(key, "radio.") }

// foreign is a level of some whose value none of all has; "": there is none.
func foreign(all, some *tree.Node, label func(*tree.Node) string) string {
	same := func(a, b *tree.Node) bool { return a.Shape == b.Shape && label(a) == label(b) }
	known := func(v *tree.Node) bool {
		is := func(of *tree.Node) bool { return same(of, v) }
		return v.Shape != tree.Map && v.Shape != tree.List && (slices.ContainsFunc(all.ItemsOrNone(), is) ||
			slices.ContainsFunc(all.EntriesOrNone(), func(e tree.Entry) bool { return is(e.Value) }))
	}
	for _, e := range some.EntriesOrNone() {
		of := all.Child(e.Key)
		if e.Value.Shape != tree.Null && (!known(e.Value) || of != nil && !same(of, e.Value)) {
			return e.Key
		}
	}
	for _, item := range some.ItemsOrNone() {
		if !known(item) {
			return label(item)
		}
	}
	return ""
}
