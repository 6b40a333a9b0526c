package plan

import "fieldmesh.dev/fieldmesh/controller/plan/tree"

// renamed are the present names of keys that had another, by the section that they lie in and their former name. A
// file with a former name is refused; the campaign of a run that was begun with it is still read.
var renamed = tree.Renamed{"design": {"enough": "stop_when"}}

// renamedChoices are the present names of what a key may say that had another.
var renamedChoices = map[string]string{"dsr-p3": "dsr-ns2"}
