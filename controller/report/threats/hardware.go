package threats

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// otherHardware asks whether each node was the same machine and radio in every result: the campaign's `unit`, by which
// results are told apart, is one word for the whole run.
func otherHardware(d *evidence.Run) (*Threat, string) {
	if d.Info.Place == archive.PlaceRehearsal { // its interfaces are made for it, with addresses of their own
		return nil, ""
	}
	found := map[string]map[string]bool{} // node → "machine X", "MAC address X"
	machines, macs := map[string]map[string]bool{}, map[string]map[string]bool{}
	note := func(of map[string]map[string]bool, node, value string) {
		if of[node] == nil {
			of[node] = map[string]bool{}
		}
		if value != "" {
			of[node][value] = true
		}
	}
	for _, a := range d.Results() {
		for node, p := range a.Node {
			note(machines, node, p.Machine)
			note(macs, node, strings.ToLower(p.MAC))
		}
	}
	for _, of := range []struct {
		what   string
		values map[string]map[string]bool
	}{{"machine", machines}, {"MAC address", macs}} {
		for node, values := range of.values {
			if len(values) > 1 {
				note(found, node, of.what+" "+strings.Join(slices.Sorted(maps.Keys(values)), " and "))
			}
		}
	}
	if len(found) == 0 {
		return nil, ""
	}
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(found)) {
		parts = append(parts, fmt.Sprintf("%s: %s", node, strings.Join(slices.Sorted(maps.Keys(found[node])), "; ")))
	}
	return &Threat{"A node was not the same hardware throughout", "By what the nodes read of themselves: " +
		strings.Join(parts, ". ") + ". The results have one unit for it, the campaign's, and a difference between " +
		"trials may be one between the machines or their radios. An address that differs alone may be the " +
		"same machine's, drawn at its start, as many phones do for a hotspot."}, ""
}
