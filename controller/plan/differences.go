package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// differences warns where the levels of a factor differ in a setting of TCP that
// none of them names: the factor's effect would be that setting's too.
func (p *parse) differences(trials []wire.Trial) tree.Problems {
	var f tree.Findings
	for _, x := range p.factors {
		said := x.paths()
		for _, d := range differing(x, trials) {
			if !slices.Contains(said, d.key) {
				f.Add(x.at, "factors.%s: levels differ also in %s: %s; set %s to make them equal", x.name, d.name,
					d.text, d.key)
			}
		}
	}
	return f.Problems(p.file, 0)
}

// difference is a setting that is not the same for all levels of a factor.
type difference struct{ key, name, text string }

// differing compares trials that are alike in all other factors.
func differing(x factor, trials []wire.Trial) []difference {
	var out []difference
	cells := map[string]map[string]map[string]string{} // other factors' levels → setting's key → level → value
	for _, t := range trials {
		level, there := t.Factors[x.name]
		if !there { // a calibration pass
			continue
		}
		others := maps.Clone(t.Factors)
		delete(others, x.name)
		cell := fmt.Sprint(others)
		if cells[cell] == nil {
			cells[cell] = map[string]map[string]string{}
		}
		for _, k := range tcpcc.Knobs(t.TCP) {
			if cells[cell][k.Key] == nil {
				cells[cell][k.Key] = map[string]string{}
			}
			values := cells[cell][k.Key]
			values[level] = k.Value
			known := slices.ContainsFunc(out, func(d difference) bool { return d.key == k.Key })
			if len(distinct(values)) > 1 && !known {
				out = append(out, difference{key: k.Key, name: k.Name})
			}
		}
	}
	for i := range out {
		for _, cell := range slices.Sorted(maps.Keys(cells)) {
			if values := cells[cell][out[i].key]; len(distinct(values)) > 1 {
				out[i].text = byValue(x, values)
				break
			}
		}
	}
	return out
}

func distinct(values map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(values)))
}

// byValue lists levels by what they have, in the file's order.
func byValue(x factor, values map[string]string) string {
	var order []string
	levels := map[string][]string{}
	for _, l := range x.levels {
		value, there := values[l.label]
		if !there {
			continue
		}
		if levels[value] == nil {
			order = append(order, value)
		}
		levels[value] = append(levels[value], l.label)
	}
	parts := make([]string, len(order))
	for i, value := range order {
		parts[i] = strings.Join(levels[value], ", ") + " " + value
	}
	return strings.Join(parts, "; ")
}
