package threats

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	several := strings.Contains(d.Info.Version, " and ") // of a run that another continued, or whose shards differ
	if !several && len(names) < 2 {
		if d.Info.Version == "" || len(names) == 0 {
			return nil, ""
		}
		return nil, fmt.Sprintf("One version of Fieldmesh drove the run (%s), and one ran on its nodes (%s).",
			d.Info.Version, names[0])
	}
	text := "It was driven by " + d.Info.Version + "."
	if several {
		text += " The run's notes say which drove what."
	}
	if len(names) > 1 {
		var parts []string
		for _, name := range names {
			parts = append(parts, name+" on "+shortList(slices.Sorted(maps.Keys(agents[name]))))
		}
		text += " Agents were " + strings.Join(parts, "; ") + "."
	}
	return &Threat{"Several versions of Fieldmesh had a part in it", text +
		" What they emulate, measure and judge by may differ."}, ""
}
