package plan

import "fieldmesh.dev/fieldmesh/controller/plan/tree"

// renamed are the present names of keys that had another, by the section that they lie in and their former name, and
// of what a key may say, by the key. A file with a former name is refused; the campaign of a run that was begun with
// it is still read.
var renamed = tree.Renamed{"design": {"enough": "stop_when"}, "protocol": {"dsr-p3": "dsr-ns2"},
	"rate_control": {"snr": "genie_snr"}}
