package plan

import (
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// renamed are the present names of keys that had another, by the section that they lie in and their former name. A
// file with a former name is refused; the campaign of a run that was begun with it is still read.
var renamed = map[string]map[string]string{"design": {"enough": "stop_when"}}

// renamedChoices are the present names of what a key may say that had another.
var renamedChoices = map[string]string{"dsr-p3": "dsr-ns2"}

// presentName is what a key of a section is called now; "" when it never had another name.
func presentName(path, key string) string { return renamed[path[strings.LastIndex(path, ".")+1:]][key] }

// modernise gives keys of former names their present ones.
func modernise(n *tree.Node, section string) {
	for i := range n.Entries {
		e := &n.Entries[i]
		if now := presentName(section, e.Key); now != "" {
			e.Key = now
		}
		modernise(e.Value, e.Key)
	}
}
