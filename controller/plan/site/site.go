// Package site says from which node's place the starts of a run's car are measured.
package site

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Unplaced reports whether the car must have stood at its start, which the campaign says from a roadside node whose
// place it does not say.
func Unplaced(t wire.Trial) bool { return t.Gate.AtStart && t.Course.SiteLatDeg == nil }

// Roadside is the node that says where it stands when a run begins, "" where no trial needs it. There is none where
// nodes swap their places: one of those beside the road is in the car then.
func Roadside(trials []wire.Trial) (node string, err error) {
	for _, t := range trials {
		switch {
		case !Unplaced(t):
		case node != "" && node != t.Roadside:
			return "", fmt.Errorf("the car's start is measured from where the roadside node stands, which is %s in "+
				"some trials and %s in others", node, t.Roadside)
		default:
			node = t.Roadside
		}
	}
	return node, nil
}
