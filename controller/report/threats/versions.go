package threats

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// severalVersions asks whether the results are of one version of Fieldmesh: another one may emulate,
// measure or judge otherwise.
func severalVersions(d *evidence.Run) (*Threat, string) {
	agents := map[string]map[string]bool{} // version → nodes
	for _, a := range d.Results() {
		for node, p := range a.Node {
			if agents[p.Agent] == nil {
				agents[p.Agent] = map[string]bool{}
			}
			agents[p.Agent][node] = true
		}
	}
	delete(agents, "")
	names := slices.Sorted(maps.Keys(agents))
	// Of a run that another version continued, and of shards that differ, they are joined.
	versions := map[string]bool{}
	for _, v := range append(strings.Split(d.Info.Version, " and "), names...) {
		versions[v] = true
	}
	delete(versions, "")
	if len(versions) < 2 {
		if d.Info.Version == "" || len(names) == 0 {
			return nil, ""
		}
		return nil, "One version of Fieldmesh drove the run and ran on its nodes: " + d.Info.Version + "."
	}
	text := "It was driven by " + cmp.Or(d.Info.Version, "an unknown version") + "."
	if slices.ContainsFunc(d.Notes, func(e archive.JournalEntry) bool {
		return strings.HasPrefix(e.Text, archive.Continued)
	}) {
		text += " The run's notes say from when on another one drove it."
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, name+" on "+shortList(slices.Sorted(maps.Keys(agents[name]))))
	}
	if len(parts) > 0 {
		text += " Agents were " + strings.Join(parts, "; ") + "."
	}
	return &Threat{"Several versions of Fieldmesh had a part in it", text +
		" What they emulate, measure and judge by may differ."}, ""
}
